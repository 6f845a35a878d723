use serde_json::json;

use super::*;

const CREATE: &str = include_str!("../../tests/fixtures/clean.jsonl");

fn event(verb: &str, level: &str, uri: &str, subresource: &str, body: Option<&Value>) -> Event {
    let line = json!({
        "level": level, "auditID": "a", "stage": "ResponseComplete", "requestURI": uri, "verb": verb, "user": {},
        "objectRef": {"resource": "pods", "subresource": subresource}, "requestObject": body,
    });
    serde_json::from_value(line).unwrap()
}

fn lines(log: &[u8]) -> Vec<Result<Event, u64>> {
    read_events(log).map(|event| event.map_err(|cut| cut.line)).collect()
}

#[test]
fn reads_what_the_api_server_writes() {
    let events: Vec<_> = read_events(CREATE.as_bytes()).map(Result::unwrap).collect();
    assert_eq!(events.len(), 22);
    let create = &events[1];
    assert_eq!((create.stage, create.verb.as_str(), create.code()), (Stage::ResponseComplete, "create", 201));
    assert_eq!(create.user.username, "system:serviceaccount:kube-system:replicaset-controller");
    let owner = create.request_object.as_ref().unwrap().pointer("/metadata/ownerReferences/0/uid");
    assert_eq!(owner, Some(&json!("7d0a4a6e-0d3f-4e53-9a39-0c9d6f3b2a11")));
    assert!(!events[0].is_final() && create.is_final());
}

#[test]
fn a_broken_line_is_told_by_number_and_the_next_is_read() {
    let whole = CREATE.lines().next().unwrap();
    let log = format!("{whole}\n{}\n\n{{}}\n{whole}{whole}\n{whole}", &whole[..300]);
    let found: Vec<_> = lines(log.as_bytes()).into_iter().map(Result::err).collect();
    assert_eq!(found, [None, Some(2), Some(3), Some(4), Some(5), None]);
    assert!(lines(b"").is_empty());
    assert_eq!(lines(b"\xff\xfe\n").len(), 1);
}

#[test]
fn an_error_of_the_reader_ends_the_log_as_a_cut() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let whole = CREATE.lines().next().unwrap();
    let log = io::BufReader::new(io::Cursor::new(format!("{whole}\n")).chain(Broken));
    let found: Vec<_> = read_events(log).map(|event| event.map_err(|cut| cut.to_string())).collect();
    assert_eq!(found.len(), 2);
    assert!(
        found[1].as_ref().unwrap_err().contains("line 2")
            && found[1].as_ref().unwrap_err().contains("the disk")
    );
}

#[test]
fn a_trial_is_told_by_the_query() {
    assert!(event("create", "Metadata", "/api/v1/pods?fieldManager=x&dryRun=All", "", None).is_dry_run());
    assert!(!event("create", "Request", "/api/v1/pods?fieldManager=dryRun", "", None).is_dry_run());
    assert!(!event("create", "Request", "/api/v1/pods", "", Some(&json!({"dryRun": ["All"]}))).is_dry_run());
}

#[test]
fn a_delete_with_a_body_takes_its_options_from_there() {
    let uri = "/api/v1/namespaces/x/pods/web-1?dryRun=All";
    assert!(event("delete", "Request", uri, "", None).is_dry_run());
    assert!(!event("delete", "Metadata", uri, "", None).is_dry_run(), "the body is not in the log");
    assert!(!event("delete", "Request", uri, "", Some(&json!({"kind": "DeleteOptions"}))).is_dry_run());
    assert!(
        event("delete", "Request", "/api/v1/namespaces/x/pods/web-1", "", Some(&json!({"dryRun": ["All"]})))
            .is_dry_run()
    );
}

#[test]
fn an_eviction_is_a_deletion_and_may_be_a_trial() {
    let uri = "/api/v1/namespaces/x/pods/web-1/eviction";
    let eviction = event("create", "Request", uri, "eviction", Some(&json!({"kind": "Eviction"})));
    assert!(eviction.is_deletion() && !eviction.is_dry_run());
    let trial = json!({"kind": "Eviction", "deleteOptions": {"dryRun": ["All"]}});
    assert!(event("create", "Request", uri, "eviction", Some(&trial)).is_dry_run());
    assert!(!event("create", "Request", uri, "binding", None).is_deletion());
}
