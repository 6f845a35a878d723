//! Who holds a leader election lock.

use crate::filter::Encoding;
use crate::filter::proto::{message::Envelope, wire::Fields};
use bytes::Bytes;
use serde_json::Value;

/// Where a lock that is no Lease keeps its record (client-go `tools/leaderelection/resourcelock`).
const RECORD: &str = "/metadata/annotations/control-plane.alpha.kubernetes.io~1leader";

// Of `coordination.v1.Lease` (kubernetes `staging/src/k8s.io/api/coordination/v1/generated.proto`).
const LEASE_SPEC: u64 = 2;
const HOLDER_IDENTITY: u64 = 1;

/// The identity that a Lease, or the record of another lock, names as its holder. None if it names none or cannot be
/// read: the server refuses what is no object.
pub fn lock_holder(bytes: &Bytes, encoding: Encoding) -> Option<String> {
    let holder = match encoding {
        Encoding::Json => in_json(&serde_json::from_slice(bytes).ok()?),
        Encoding::Protobuf => {
            let spec = last(Envelope::open(bytes).ok()?.raw, LEASE_SPEC)?;
            std::str::from_utf8(last(spec, HOLDER_IDENTITY)?).ok().map(str::to_owned)
        }
    };
    holder.filter(|holder| !holder.is_empty())
}

fn in_json(object: &Value) -> Option<String> {
    if let Some(holder) = object.pointer("/spec/holderIdentity") {
        return holder.as_str().map(str::to_owned);
    }
    let record: Value = serde_json::from_str(object.pointer(RECORD)?.as_str()?).ok()?;
    record.get("holderIdentity")?.as_str().map(str::to_owned)
}

fn last(message: &[u8], number: u64) -> Option<&[u8]> {
    let fields = Fields::of(message).map_while(Result::ok).filter(|field| field.number == number);
    fields.filter_map(|field| field.bytes().ok()).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::proto::reference::packed;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Lease {
        #[prost(message, optional, tag = "2")]
        spec: Option<Spec>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Spec {
        #[prost(string, optional, tag = "1")]
        holder: Option<String>,
    }

    #[test]
    fn each_kind_of_lock_names_its_holder() {
        let json = |text: &str| lock_holder(&Bytes::copy_from_slice(text.as_bytes()), Encoding::Json);
        let record = r#"{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"a_1\"}"}}}"#;
        assert_eq!(json(r#"{"spec":{"holderIdentity":"a_1"}}"#).as_deref(), Some("a_1"));
        assert_eq!(json(record).as_deref(), Some("a_1"));
        for none in ["", "[]", "{}", r#"{"spec":{"holderIdentity":""}}"#, r#"{"spec":{"holderIdentity":1}}"#]
        {
            assert_eq!(json(none), None, "{none}");
        }
        for holder in [Some("a_1"), Some(""), None] {
            let lease = Lease { spec: Some(Spec { holder: holder.map(str::to_owned) }) };
            let bytes = Bytes::from(packed("Lease", &lease));
            let wanted = holder.filter(|holder| !holder.is_empty());
            assert_eq!(lock_holder(&bytes, Encoding::Protobuf).as_deref(), wanted);
        }
        assert_eq!(lock_holder(&Bytes::from_static(b"k8s\0\x12"), Encoding::Protobuf), None);
    }
}
