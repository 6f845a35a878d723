//! How fast the filter is on one core: GB/s, and the ratio to copying the same bytes.

use bytes::Bytes;
use shoal_proxy::filter::{Encoding, Lens, Out, Scan, Scanner, Shape, Verdict, View};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;
use tokio::time::Instant;

/// The size of a chunk, in bytes: a TLS record, or an HTTP/2 frame as most servers cut them.
const CHUNK: usize = 16 << 10;
const ITEMS: u32 = 1_000;

/// The best of so many rounds counts, so a busy machine does not change the figure much.
const ROUNDS: usize = 100;

/// Keeps the namespaces below this number, of 100.
struct Below(u32);

impl Lens for Below {
    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        let number = view.namespace.strip_prefix("namespace-").and_then(|number| number.parse::<u32>().ok());
        if number.is_some_and(|number| number < self.0) { Verdict::Keep } else { Verdict::Drop }
    }
}

fn main() {
    println!("{:<44}{:>9}{:>12}{:>14}", "body", "GB/s", "of memcpy", "ns an object");
    for (name, encoding, shape, chunks) in bodies() {
        let size = chunks.iter().map(Bytes::len).sum::<usize>();
        let copied = best(|| chunks.iter().map(|chunk| black_box(chunk.to_vec()).len()).sum());
        for kept in [0, 50, 100] {
            let taken = best(|| run(Scanner::new(encoding, shape, Below(kept)), &chunks));
            let rate = f64::from(u32::try_from(size).unwrap_or(u32::MAX)) / taken.as_secs_f64() / 1e9;
            let ratio = copied.as_secs_f64() / taken.as_secs_f64();
            let each = taken.as_nanos() / u128::from(ITEMS);
            println!("{:<44}{rate:>9.2}{ratio:>12.2}{each:>14}", format!("{name}, {kept} % kept"));
        }
    }
}

/// The shortest time of a few rounds.
fn best(mut round: impl FnMut() -> usize) -> Duration {
    let timed = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        black_box(round());
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

fn run(mut scan: Scanner<Below>, chunks: &[Bytes]) -> usize {
    let mut out = Out::default();
    let mut passed = 0;
    for chunk in chunks {
        assert!(scan.push(chunk.clone(), &mut out).is_ok(), "a good body");
        while let Some(bytes) = out.pop() {
            passed += black_box(bytes).len();
        }
    }
    assert!(scan.finish(&mut out).is_ok(), "a whole body");
    passed
}

fn bodies() -> [(&'static str, Encoding, Shape, Vec<Bytes>); 6] {
    let pods: Vec<String> = (0..ITEMS).map(pod).collect();
    let list = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#,
        pods.join(",")
    );
    let events: Vec<String> =
        pods.iter().map(|pod| format!("{{\"type\":\"ADDED\",\"object\":{pod}}}\n")).collect();
    let cut = |body: &[u8]| body.chunks(CHUNK).map(Bytes::copy_from_slice).collect();
    let single = events.iter().map(|event| Bytes::copy_from_slice(event.as_bytes())).collect();
    let frames: Vec<_> = (0..ITEMS).map(|number| Bytes::from(proto_frame(number))).collect();
    [
        ("JSON list", Encoding::Json, Shape::List, cut(list.as_bytes())),
        ("JSON watch", Encoding::Json, Shape::Watch, cut(events.concat().as_bytes())),
        ("JSON watch, an event a chunk", Encoding::Json, Shape::Watch, single),
        ("protobuf list", Encoding::Protobuf, Shape::List, cut(&proto_list())),
        ("protobuf watch", Encoding::Protobuf, Shape::Watch, cut(&frames.concat())),
        ("protobuf watch, an event a chunk", Encoding::Protobuf, Shape::Watch, frames),
    ]
}

/// A Pod of about 4 KB as API servers print it: field management, two containers, conditions.
fn pod(number: u32) -> String {
    let mut fields = String::new();
    for port in 0..12 {
        let _ = write!(
            fields,
            r#""k:{{\"containerPort\":{port},\"protocol\":\"TCP\"}}":{{".":{{}},"f:containerPort":{{}},"f:protocol":{{}}}},"#
        );
    }
    let container = r#"{"name":"main","image":"registry.example.com/team/application:v1.2.3","args":["--leader-elect","--v=2"],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"10m","memory":"64Mi"}},"volumeMounts":[{"name":"kube-api-access-abcde","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/healthz","port":8081,"scheme":"HTTP"},"initialDelaySeconds":15,"timeoutSeconds":1,"periodSeconds":20,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}"#;
    let condition = r#"{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"}"#;
    format!(
        r#"{{"metadata":{{"name":"application-7d4b9c6f5d-{number:05}","generateName":"application-7d4b9c6f5d-","namespace":"namespace-{}","uid":"8f14e45f-ceea-467f-a0e6-{number:012}","resourceVersion":"{number}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"application","pod-template-hash":"7d4b9c6f5d"}},"annotations":{{"config":"{{\"a\":[1,2,3],\"b\":\"c\"}}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"application-7d4b9c6f5d","uid":"8f14e45f-ceea-467f-a0e6-000000000000","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{{fields}"f:dnsPolicy":{{}}}}}}}}]}},"spec":{{"containers":[{container},{container}],"restartPolicy":"Always","nodeName":"node-{}"}},"status":{{"phase":"Running","conditions":[{condition},{condition},{condition}],"hostIP":"10.0.0.1","podIP":"10.1.2.3"}}}}"#,
        number % 100,
        number % 50
    )
}

fn bytes_field(tag: u8, value: &[u8]) -> Vec<u8> {
    let size = u32::try_from(value.len()).unwrap_or(u32::MAX);
    // Padded to five bytes, which readers accept.
    let length =
        (0..5).map(|index| (size >> (7 * index) & 0x7f).to_le_bytes()[0] | if index < 4 { 0x80 } else { 0 });
    std::iter::once(tag).chain(length).chain(value.iter().copied()).collect()
}

fn proto_pod(number: u32) -> Vec<u8> {
    let metadata = [
        bytes_field(0x0a, format!("application-7d4b9c6f5d-{number:05}").as_bytes()),
        bytes_field(0x1a, format!("namespace-{}", number % 100).as_bytes()),
        bytes_field(0x2a, b"8f14e45f-ceea-467f-a0e6-000000000000"),
        bytes_field(0x5a, &[b'l'; 300]),
    ];
    [bytes_field(0x0a, &metadata.concat()), bytes_field(0x12, &[b's'; 3000]), bytes_field(0x1a, &[b't'; 700])]
        .concat()
}

fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes_field(0x0a, b"v1"), bytes_field(0x12, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), bytes_field(0x0a, &type_meta), bytes_field(0x12, raw), b"\x1a\0\x22\0".to_vec()]
        .concat()
}

fn proto_list() -> Vec<u8> {
    let items = (0..ITEMS).flat_map(|number| bytes_field(0x12, &proto_pod(number)));
    envelope("PodList", &bytes_field(0x0a, b"\x12\x017").into_iter().chain(items).collect::<Vec<_>>())
}

fn proto_frame(number: u32) -> Vec<u8> {
    let object = bytes_field(0x0a, &envelope("Pod", &proto_pod(number)));
    let event = [bytes_field(0x0a, b"ADDED"), bytes_field(0x12, &object)].concat();
    [u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec(), event].concat()
}
