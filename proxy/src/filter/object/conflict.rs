//! What a Status says of a conflict.

use crate::filter::Encoding;
use crate::filter::proto::message::Envelope;
use crate::filter::proto::wire::Fields;
use bytes::Bytes;
use serde_json::Value;

// Of `metav1.Status` and its details (apimachinery, `meta/v1/generated.proto`).
const REASON: u64 = 4;
const DETAILS: u64 = 5;
const CAUSES: u64 = 4;

/// Whether a Status is a Conflict without causes: the object is not at the version, or not the one, that was demanded. One of
/// server-side apply has a cause for each field that another manages.
pub fn is_plain_conflict(bytes: &Bytes, encoding: Encoding) -> bool {
    match encoding {
        Encoding::Json => serde_json::from_slice(bytes).is_ok_and(|status: Value| {
            let causes = status.pointer("/details/causes").and_then(Value::as_array);
            status["reason"] == "Conflict" && causes.is_none_or(Vec::is_empty)
        }),
        Encoding::Protobuf => Envelope::open(bytes).is_ok_and(|envelope| {
            let reason = fields(envelope.raw, REASON).last();
            let causes = fields(envelope.raw, DETAILS).flat_map(|details| fields(details, CAUSES)).next();
            reason == Some(b"Conflict") && causes.is_none()
        }),
    }
}

fn fields(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    let fields = Fields::of(message).map_while(Result::ok).filter(move |field| field.number == number);
    fields.filter_map(|field| field.bytes().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::proto::reference::packed;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Status {
        #[prost(string, optional, tag = "4")]
        reason: Option<String>,
        #[prost(message, optional, tag = "5")]
        details: Option<Details>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Details {
        #[prost(string, repeated, tag = "4")]
        causes: Vec<String>,
    }

    #[test]
    fn a_conflict_with_causes_is_another_manager_s() {
        for (reason, causes, is_plain) in [
            ("Conflict", vec![], true),
            ("Conflict", vec!["a".to_owned()], false),
            ("AlreadyExists", vec![], false),
        ] {
            let json = serde_json::json!({"reason": reason, "details": {"causes": causes}}).to_string();
            assert_eq!(
                is_plain_conflict(&Bytes::from(json), Encoding::Json),
                is_plain,
                "{reason} {causes:?}"
            );
            let status = Status { reason: Some(reason.into()), details: Some(Details { causes }) };
            let bytes = Bytes::from(packed("Status", &status));
            assert_eq!(is_plain_conflict(&bytes, Encoding::Protobuf), is_plain, "{reason}");
        }
        for text in ["", "{}", "[]", r#"{"details":{}}"#] {
            assert!(!is_plain_conflict(&Bytes::copy_from_slice(text.as_bytes()), Encoding::Json), "{text}");
        }
        assert!(is_plain_conflict(&Bytes::from_static(br#"{"reason":"Conflict"}"#), Encoding::Json));
    }
}
