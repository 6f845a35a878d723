//! What a kubeconfig and a pod's own files say of an API server.

use std::fs;

use super::*;

fn kubeconfig(cluster: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{token: s3cret}}}}]\n"
    )
}

/// A kubeconfig with an authority and a token file beside it.
fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.crt"), "an authority").unwrap();
    fs::write(folder.path().join("token"), "from-file\n").unwrap();
    fs::write(folder.path().join("kubeconfig"), text).unwrap();
    Source::Kubeconfig(folder.path().join("kubeconfig")).read(ForwardIdentity::Own)
}

fn error(text: &str) -> String {
    endpoint(text).err().unwrap().to_string()
}

#[test]
fn the_server_may_have_a_path_and_the_authority_lies_beside_the_file() {
    let found = endpoint(&kubeconfig("server: 'https://[::1]:6443/k8s/c-1/', certificate-authority: ca.crt"))
        .unwrap();
    assert_eq!((found.authority.as_str(), found.base_path.as_str()), ("[::1]:6443", "/k8s/c-1"));
    assert_eq!(found.authorities, b"an authority");
    assert_eq!(found.server_name, server_name("::1").unwrap());
}

#[test]
fn the_users_token_may_be_in_the_file_or_beside_it() {
    let inline = kubeconfig("server: 'https://a', certificate-authority: ca.crt");
    let token = |text: &str| endpoint(text).unwrap().credential.map(|credential| credential.header());
    assert_eq!(token(&inline).unwrap(), "Bearer s3cret");
    let file = inline.replace("token: s3cret", "token: s3cret, tokenFile: token");
    assert_eq!(token(&file).unwrap(), "Bearer from-file");
}

/// Nobody becomes anonymous by a file that is half written.
#[test]
fn who_logs_in_by_a_token_needs_one() {
    let good = kubeconfig("server: 'https://a', certificate-authority: ca.crt");
    for without in ["{}", "{token: ''}", "{token: ' '}", "{tokenFile: ca.crt, token: ''}"] {
        let found = endpoint(&good.replace("{token: s3cret}", without));
        assert_eq!(found.is_err(), without != "{tokenFile: ca.crt, token: ''}", "{without}");
    }
    assert!(error(&good.replace("user: u", "user: x")).contains("token or tokenFile"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.crt"), "an authority").unwrap();
    fs::write(folder.path().join("kubeconfig"), good.replace("token: s3cret", "tokenFile: gone")).unwrap();
    let source = Source::Kubeconfig(folder.path().join("kubeconfig"));
    assert!(source.read(ForwardIdentity::Own).unwrap_err().to_string().contains("gone"));
    assert_eq!(source.read(ForwardIdentity::Client).unwrap().credential, None, "its token is not asked for");
}

/// As kubectl reads them: a relative path starts at the kubeconfig's folder, which may be relative itself.
#[test]
fn a_relative_path_is_relative_to_a_relative_kubeconfig() {
    let folder = tempfile::tempdir_in(".").unwrap();
    fs::write(folder.path().join("ca.crt"), "an authority").unwrap();
    let text = kubeconfig("server: 'https://a', certificate-authority: ca.crt");
    fs::write(folder.path().join("kubeconfig"), text).unwrap();
    let relative = Path::new(folder.path().file_name().unwrap()).join("kubeconfig");
    let found = Source::Kubeconfig(relative).read(ForwardIdentity::Client).unwrap();
    assert_eq!(found.authorities, b"an authority");
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let insecure = "server: 'https://a', insecure-skip-tls-verify: true";
    assert!(error(&kubeconfig(insecure)).contains("not supported"));
    assert!(error(&kubeconfig("server: 'https://a'")).contains("is needed"));
    assert!(error(&kubeconfig("server: 'http://a', certificate-authority: ca.crt")).contains("https://HOST"));
    assert!(error(&kubeconfig("server: 'https://a', certificate-authority: gone")).contains("gone"));
    let elsewhere = kubeconfig("server: 'https://a'").replace("cluster: k", "cluster: x");
    assert!(error(&elsewhere).contains("current-context"));
}

/// Whatever is wrong with the file, its credentials never reach a log.
#[test]
fn no_error_and_no_debug_form_quotes_a_credential() {
    let good = kubeconfig("server: 'https://a', certificate-authority: ca.crt");
    for broken in [
        good.replace("token: s3cret", "token: s3cret: x"),
        good.replace("{token: s3cret}", "{token: [s3cret]}"),
        good.replace("{token: s3cret}", "{token: \"s3cret\\u0001\"}"),
        good.replace("users: [", "users: [s3cret, "),
        format!("{good}  - s3cret\n :"),
        good.replace("https://a", "https://user:s3cret@a"),
        good.replace("https://a", "http://user:s3cret@a"),
    ] {
        let error = error(&broken);
        assert!(!error.contains("s3cret"), "{error}");
    }
    let shown = format!("{:?}", endpoint(&good).unwrap());
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_pod_finds_its_own_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let authority: Authority = "10.0.0.1:443".parse().unwrap();
    let found = |identity| in_cluster(authority.clone(), identity, folder.path());
    assert!(found(ForwardIdentity::Client).unwrap_err().to_string().contains("ca.crt"));
    fs::write(folder.path().join("ca.crt"), "an authority").unwrap();
    assert_eq!(found(ForwardIdentity::Client).unwrap().credential, None);
    assert!(found(ForwardIdentity::Own).unwrap_err().to_string().contains("token"));
    fs::write(folder.path().join("token"), "pod").unwrap();
    assert_eq!(found(ForwardIdentity::Own).unwrap().credential.unwrap().header(), "Bearer pod");
}
