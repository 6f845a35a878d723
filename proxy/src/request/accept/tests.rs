//! Negotiation tables. The headers are those that client-go, kube-rs, kubectl and browsers send.

use proptest::prelude::*;

use super::*;

const PROTO: &str = "application/vnd.kubernetes.protobuf";
const META_PROTO: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const META_JSON: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What kubectl sends.
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

fn readable(accept: &str) -> Option<String> {
    Asked::of(Some(accept), true).accept.ok()
}

#[test]
fn what_the_filter_reads_stays_as_it_came() {
    for accept in [
        "application/json",
        PROTO,
        "application/vnd.kubernetes.protobuf,application/json",
        "application/json;q=0.5,application/vnd.kubernetes.protobuf; q=0.9",
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch;pretty=1",
        META_PROTO,
        META_JSON,
        "application/json;v=v1beta1;g=meta.k8s.io;as=PartialObjectMetadata",
        KUBECTL,
    ] {
        assert_eq!(readable(accept).as_deref(), Some(accept));
    }
    let both = format!("{META_PROTO},{META_JSON},application/json");
    assert_eq!(readable(&both), Some(both));
}

#[test]
fn what_it_does_not_read_goes() {
    for (accept, left) in [
        (
            "application/json;as=Table;g=meta.k8s.io;v=v2,application/json;as=Table, application/json",
            "application/json",
        ),
        (
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json",
            "application/json",
        ),
        ("*/*;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1"),
        ("application/cbor, application/json", "application/json"),
        ("application/yaml,application/vnd.kubernetes.protobuf", PROTO),
        (
            "application/json;as=PartialObjectMetadata;g=example.com;v=v1,application/json;q=0.1",
            "application/json;q=0.1",
        ),
        ("application/json;g=meta.k8s.io;v=v1, application/json", "application/json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json;q=0.8"),
        ("*/*", "application/json"),
        ("*", "application/json"),
        ("application/*;pretty=1", "application/json;pretty=1"),
    ] {
        assert_eq!(readable(accept).as_deref(), Some(left), "{accept}");
    }
    for accept in [None, Some("")] {
        let asked = Asked { accept: Ok("application/json".to_owned()), is_yaml: false, is_table: false };
        assert_eq!(Asked::of(accept, false), asked);
    }
}

#[test]
fn tables_are_expected_where_they_are_asked_for() {
    assert!(Asked::of(Some(KUBECTL), false).is_table && Asked::of(Some(KUBECTL), true).is_table);
    assert!(!Asked::of(Some(META_JSON), false).is_table);
}

#[test]
fn yaml_is_asked_for_as_json_where_the_client_takes_no_json() {
    for (accept, left, is_yaml) in [
        ("application/yaml", "application/json", true),
        (
            "application/yaml;as=Table;g=meta.k8s.io;v=v1",
            "application/json;as=Table;g=meta.k8s.io;v=v1",
            true,
        ),
        (
            "application/vnd.kubernetes.protobuf,application/yaml;q=0.5",
            "application/vnd.kubernetes.protobuf,application/json;q=0.5",
            true,
        ),
        ("application/yaml,application/json;q=0.1", "application/json;q=0.1", false),
        ("application/yaml,*/*", "application/json", false),
    ] {
        let asked = Asked::of(Some(accept), false);
        assert_eq!((asked.accept.as_deref(), asked.is_yaml), (Ok(left), is_yaml), "{accept}");
    }
    let watch = Asked::of(Some("application/vnd.kubernetes.protobuf,application/yaml"), true);
    assert_eq!((watch.accept.as_deref(), watch.is_yaml), (Ok(PROTO), false));
}

#[test]
fn nothing_left_is_not_acceptable() {
    for accept in [
        "application/cbor",
        "application/yaml",
        "application/json;as=Table;g=example.com;v=v1",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/JSON",
        "text/plain",
        "application",
        "application/json/x",
        ",",
    ] {
        let none = Err(NotAcceptable { accept: accept.to_owned() });
        assert_eq!(Asked::of(Some(accept), true).accept, none);
    }
}

#[test]
fn parameters_are_those_that_the_server_sees() {
    let transform = |params: &str| parse(&format!("application/json;{params}")).first().map(|t| t.transform);
    let meta = "g=meta.k8s.io;v=v1";
    assert_eq!(transform(&format!(" as = Table ;{meta}")), Some(Transform::Table));
    assert_eq!(transform(&format!("as=Table=;{meta}")), Some(Transform::Table));
    assert_eq!(transform("as=Table"), Some(Transform::Other));
    assert_eq!(transform("as=;as=a=b;as"), Some(Transform::Object));
    assert_eq!(transform("as=="), Some(Transform::Other));
    assert_eq!(transform(&format!("as=\"Table\";{meta}")), Some(Transform::Other));
    assert_eq!(
        transform(&format!("as=Table;as=PartialObjectMetadata;{meta}")),
        Some(Transform::PartialObjectMetadata)
    );
    assert_eq!(parse("application/json;stream=watch").first().map(|t| t.stream), Some("watch"));
    for (params, q) in [("", 1.0), ("q=0.5", 0.5), ("q=x", 0.0), ("q= 1", 0.0), ("q=1;q=.25", 0.25)] {
        assert_eq!(parse(&format!("application/json;{params}")).first().map(|t| t.q), Some(q), "{params}");
    }
}

#[test]
fn errors_follow_the_first_acceptable_type() {
    for accept in [
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/json;q=0.5,application/vnd.kubernetes.protobuf",
        "*/*,application/vnd.kubernetes.protobuf;q=0.1",
        "application/cbor,application/vnd.kubernetes.protobuf;stream=watch,application/json",
        "application/json;as=Table;g=meta.k8s.io;v=v1,application/vnd.kubernetes.protobuf",
    ] {
        assert_eq!(StatusEncoding::of(Some(accept)), StatusEncoding::Protobuf, "{accept}");
    }
    let metadata_client = format!("{META_PROTO},{META_JSON},application/json");
    for accept in [
        "application/json,application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;q=0.5,application/json",
        "application/vnd.kubernetes.protobuf;stream=other",
        "application/vnd.kubernetes.protobuf;sv=v1",
        "text/html",
        "",
        META_PROTO,
        &metadata_client,
    ] {
        assert_eq!(StatusEncoding::of(Some(accept)), StatusEncoding::Json, "{accept}");
    }
    assert_eq!(StatusEncoding::of(None), StatusEncoding::Json);
    for accept in ["application/yaml", "application/yaml,application/vnd.kubernetes.protobuf"] {
        assert_eq!(StatusEncoding::of(Some(accept)), StatusEncoding::Yaml, "{accept}");
    }
}

#[test]
fn bodies() {
    for (content_type, body) in [
        (None, BodyType::Json),
        (Some(""), BodyType::Json),
        (Some("application/json; charset=utf-8"), BodyType::Json),
        (Some(" Application/JSON"), BodyType::Json),
        (Some("application/vnd.kubernetes.protobuf;stream=watch"), BodyType::Protobuf),
        (Some("application/cbor-seq"), BodyType::Cbor),
        (Some("application/yaml"), BodyType::Yaml),
        (Some("application/json-patch+json"), BodyType::JsonPatch),
        (Some("application/merge-patch+json"), BodyType::MergePatch),
        (Some("application/strategic-merge-patch+json"), BodyType::StrategicMergePatch),
        (Some("application/apply-patch+yaml"), BodyType::ApplyYaml),
        (Some("application/apply-patch+cbor"), BodyType::ApplyCbor),
        (Some("text/plain"), BodyType::Other),
    ] {
        assert_eq!(BodyType::of(content_type), body, "{content_type:?}");
    }
}

proptest! {
    #[test]
    fn what_is_left_is_readable_and_stays(accept in "([a-z*/;=, .]|application/json|;as=Table|;q=0\\.[0-9]){0,20}") {
        if let Ok(left) = Asked::of(Some(&accept), false).accept {
            let known = |clause: &MediaType<'_>| matches!(clause.encoding, Encoding::Json | Encoding::Protobuf);
            prop_assert!(parse(&left).iter().all(known));
            prop_assert_eq!(readable(&left), Some(left));
        }
        let _ = StatusEncoding::of(Some(&accept));
    }
}
