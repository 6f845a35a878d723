//! Pods as an API server writes them, in lists and watches, in both encodings, of any size.
//!
//! Field numbers of protobuf are those of `generated.proto` in k8s.io/api and apimachinery. Written by hand, so that
//! half a list can be sent.

use bytes::Bytes;

use crate::ring::HUB;

/// In each Pod exactly once, and nowhere else: whoever counts it counts Pods.
pub const MARK: u8 = b'~';
/// In front of everything in protobuf that is no watch frame.
const MAGIC: &[u8] = b"k8s\0";
/// The last slot of shard `kcm-0` in the example ring.
const LAST_OWNED: u8 = 85;

/// How bodies are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `application/json`
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// The bytes around the items of a list.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Before the first item.
    pub head: Bytes,
    /// Between two.
    pub between: &'static [u8],
    /// Behind the last.
    pub tail: &'static [u8],
}

/// Namespaces that shard `kcm-0` of the example ring owns, or does not.
pub fn namespaces(owned: bool) -> impl Iterator<Item = String> {
    let names = (0..).map(|number: u32| format!("team-{number:04}"));
    names.filter(move |name| (shoal_judge::slot_of(HUB, name) <= LAST_OWNED) == owned)
}

// === impl Form ===

impl Form {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    /// Of a list, and what to accept for one.
    pub fn of_list(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// Of a watch.
    pub fn of_watch(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// A Pod as it stands in a list; `size` bytes, or a little more than `size` if that is too few. Its name has eight digits.
    pub fn pod(self, namespace: &str, number: usize, size: usize) -> Vec<u8> {
        let empty = self.filled(namespace, number, 0).len();
        let filled = self.filled(namespace, number, size.saturating_sub(empty));
        // The length of the filling grows with it.
        let over = filled.len().saturating_sub(size.max(empty));
        self.filled(namespace, number, size.saturating_sub(empty).saturating_sub(over))
    }

    fn filled(self, namespace: &str, number: usize, filling: usize) -> Vec<u8> {
        match self {
            Self::Json => json_pod(namespace, number, filling).into_bytes(),
            Self::Protobuf => proto_pod(namespace, number, filling),
        }
    }

    /// A Pod as an item of a list.
    pub fn item(self, pod: &[u8]) -> Vec<u8> {
        match self {
            Self::Json => pod.to_vec(),
            Self::Protobuf => field(2, pod),
        }
    }

    /// What stands around items of `size` bytes together.
    pub fn frame(self, count: usize, size: usize) -> Frame {
        match self {
            Self::Json => {
                let head =
                    r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":["#;
                Frame { head: Bytes::from_static(head.as_bytes()), between: b",", tail: b"]}\n" }
            }
            Self::Protobuf => {
                let metadata = field(1, &field(2, b"7"));
                let length = varint((metadata.len() + count * size) as u64);
                let head = [MAGIC, &type_meta("PodList"), &[0x12], &length, &metadata].concat();
                Frame { head: head.into(), between: b"", tail: b"\x1a\0\x22\0" }
            }
        }
    }

    /// A whole list of items of the same size.
    pub fn list(self, items: &[Vec<u8>]) -> Vec<u8> {
        let frame = self.frame(items.len(), items.first().map_or(0, Vec::len));
        [&frame.head[..], &items.join(frame.between), frame.tail].concat()
    }

    /// A watch event about a Pod.
    pub fn event(self, kind: &str, pod: &[u8]) -> Vec<u8> {
        match self {
            Self::Json => {
                let head = format!(r#"{{"type":"{kind}","object":{{"kind":"Pod","apiVersion":"v1","#);
                // The Pod's own brace is open already.
                [head.as_bytes(), pod.get(1..).unwrap_or_default(), b"}\n"].concat()
            }
            Self::Protobuf => {
                let object = [MAGIC, &type_meta("Pod"), &field(2, pod)].concat();
                let event = [field(1, kind.as_bytes()), field(2, &field(1, &object))].concat();
                let length = u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes();
                [&length[..], &event].concat()
            }
        }
    }
}

fn json_pod(namespace: &str, number: usize, filling: usize) -> String {
    let uid = format!("00000000-0000-4000-8000-0000{number:08}");
    let metadata = format!(
        r#"{{"name":"web-{number:08}","generateName":"web-","namespace":"{namespace}","uid":"{uid}","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"web"}},"annotations":{{"mark":"~","quoted":"{{\"namespace\":\"other\"}}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"{uid}","controller":true}}]}}"#
    );
    let env: Vec<_> = (0..20)
        .map(|index| format!(r#"{{"name":"SETTING_{index:02}","value":"a \"value\" of {index:02}"}}"#))
        .collect();
    let spec = format!(
        r#"{{"containers":[{{"name":"web","image":"web:1","env":[{}]}}],"nodeName":"node-1"}}"#,
        env.join(",")
    );
    let status = format!(r#"{{"phase":"Running","message":"{}"}}"#, "x".repeat(filling));
    format!(r#"{{"metadata":{metadata},"spec":{spec},"status":{status}}}"#)
}

fn proto_pod(namespace: &str, number: usize, filling: usize) -> Vec<u8> {
    let uid = format!("00000000-0000-4000-8000-0000{number:08}");
    let name = format!("web-{number:08}");
    let annotation = [field(1, b"mark"), field(2, &[MARK])].concat();
    let texts = [(1, name.as_bytes()), (3, namespace.as_bytes()), (5, uid.as_bytes()), (6, b"7")];
    let mut metadata: Vec<u8> = texts.into_iter().flat_map(|(number, text)| field(number, text)).collect();
    metadata.extend(field(12, &annotation));
    let env = |index| {
        let (name, value) = (format!("SETTING_{index:02}"), format!("a value of {index:02}"));
        field(7, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
    };
    let mut container = [field(1, b"web"), field(2, b"web:1")].concat();
    container.extend((0..20).flat_map(env));
    let status = [field(1, b"Running"), field(3, &b"x".repeat(filling))].concat();
    [field(1, &metadata), field(2, &field(2, &container)), field(3, &status)].concat()
}

fn type_meta(kind: &str) -> Vec<u8> {
    field(1, &[field(1, b"v1"), field(2, kind.as_bytes())].concat())
}

/// A length-delimited field.
fn field(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_as_large_as_asked_and_counted_once() {
        for form in Form::ALL {
            for size in [4000, 4096] {
                let pod = form.pod("team-0001", 7, size);
                assert_eq!(pod.len(), size, "{form:?}");
                assert_eq!(memchr::memchr_iter(MARK, &pod).count(), 1, "{form:?}");
            }
        }
    }

    #[test]
    fn json_is_json() {
        let pod = Form::Json.pod("a", 1, 2000);
        let list: serde_json::Value =
            serde_json::from_slice(&Form::Json.list(&[pod.clone(), pod.clone()])).unwrap();
        assert_eq!(list["items"][1]["metadata"]["name"], "web-00000001");
        let event: serde_json::Value = serde_json::from_slice(&Form::Json.event("ADDED", &pod)).unwrap();
        assert_eq!(event["object"]["metadata"]["namespace"], "a");
    }

    #[test]
    fn protobuf_is_protobuf() {
        let pod = Form::Protobuf.pod("a", 1, 2000);
        let item = Form::Protobuf.item(&pod);
        let items = crate::protobuf::items(&Form::Protobuf.list(&[item.clone(), item])).unwrap();
        assert_eq!((items.len(), items[1].name.as_str()), (2, "web-00000001"));
        let (kind, object) = crate::protobuf::event(&Form::Protobuf.event("ADDED", &pod)[4..]).unwrap();
        assert_eq!(
            (kind.as_str(), crate::protobuf::metadata(&object).unwrap().namespace.as_str()),
            ("ADDED", "a")
        );
    }
}
