//! A `metav1.Status` in Kubernetes' protobuf envelope.
//!
//! Field numbers: apimachinery `pkg/apis/meta/v1/generated.proto` and `pkg/runtime/generated.proto`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};

/// The envelope's first four bytes.
const MAGIC: &[u8] = b"k8s\0";

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

/// The Status in its envelope.
pub(super) fn status(status: &Status) -> Vec<u8> {
    let mut type_meta = Message::default();
    type_meta.text(1, Some("v1")).text(2, Some("Status"));
    let mut unknown = Message::default();
    unknown.message(1, &type_meta).message(2, &raw(status)).text(3, Some("")).text(4, Some(""));
    [MAGIC, &unknown.0].concat()
}

fn raw(status: &Status) -> Message {
    let mut raw = Message::default();
    raw.message(1, &Message::default())
        .text(2, status.status.as_deref())
        .text(3, status.message.as_deref())
        .text(4, status.reason.as_deref());
    if let Some(about) = &status.details {
        raw.message(5, &details(about));
    }
    raw.number(6, status.code);
    raw
}

fn details(about: &StatusDetails) -> Message {
    let mut details = Message::default();
    details.text(1, about.name.as_deref()).text(2, about.group.as_deref()).text(3, about.kind.as_deref());
    for one in about.causes.iter().flatten() {
        details.message(4, &cause(one));
    }
    details.number(5, about.retry_after_seconds);
    details
}

fn cause(one: &StatusCause) -> Message {
    let mut cause = Message::default();
    cause.text(1, one.reason.as_deref()).text(2, one.message.as_deref()).text(3, one.field.as_deref());
    cause
}

// === impl Message ===

impl Message {
    fn text(&mut self, field: u8, value: Option<&str>) -> &mut Self {
        if let Some(text) = value {
            self.bytes(field, text.as_bytes());
        }
        self
    }

    fn message(&mut self, field: u8, value: &Message) -> &mut Self {
        self.bytes(field, &value.0)
    }

    /// A number that is never negative: codes and seconds.
    fn number(&mut self, field: u8, value: Option<i32>) -> &mut Self {
        if let Some(number) = value.and_then(|number| u64::try_from(number).ok()) {
            self.0.push(field << 3);
            self.varint(number);
        }
        self
    }

    fn bytes(&mut self, field: u8, value: &[u8]) -> &mut Self {
        self.0.push(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[derive(prost::Message)]
    struct Envelope {
        #[prost(message, optional, tag = "1")]
        type_meta: Option<TypeMeta>,
        #[prost(bytes = "vec", tag = "2")]
        raw: Vec<u8>,
    }

    #[derive(prost::Message)]
    struct TypeMeta {
        #[prost(string, tag = "1")]
        api_version: String,
        #[prost(string, tag = "2")]
        kind: String,
    }

    #[derive(prost::Message)]
    struct Raw {
        #[prost(string, tag = "2")]
        status: String,
        #[prost(string, tag = "3")]
        message: String,
        #[prost(string, tag = "4")]
        reason: String,
        #[prost(message, optional, tag = "5")]
        details: Option<Details>,
        #[prost(int32, tag = "6")]
        code: i32,
    }

    #[derive(prost::Message)]
    struct Details {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(message, repeated, tag = "4")]
        causes: Vec<TypeMeta>,
        #[prost(int32, tag = "5")]
        retry_after_seconds: i32,
    }

    #[test]
    fn an_independent_decoder_reads_every_field_back() {
        let cause = StatusCause { reason: Some("R".into()), message: Some("M".into()), field: None };
        let details = StatusDetails {
            name: Some("web".into()),
            causes: Some(vec![cause]),
            retry_after_seconds: Some(300),
            ..StatusDetails::default()
        };
        let long = "x".repeat(300);
        let made = status(&Status {
            status: Some("Failure".into()),
            message: Some(long.clone()),
            reason: Some("Conflict".into()),
            code: Some(409),
            details: Some(details),
            ..Status::default()
        });
        let envelope = Envelope::decode(&made[4..]).unwrap();
        assert_eq!(&made[..4], MAGIC);
        assert_eq!(envelope.type_meta.unwrap().kind, "Status");
        let raw = Raw::decode(&envelope.raw[..]).unwrap();
        assert_eq!((raw.status.as_str(), raw.message, raw.code), ("Failure", long, 409));
        let details = raw.details.unwrap();
        assert_eq!((details.name.as_str(), details.retry_after_seconds), ("web", 300));
        assert_eq!(details.causes[0].kind, "M");
    }
}
