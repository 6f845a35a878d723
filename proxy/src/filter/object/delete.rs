//! `DeleteOptions`, the body of a delete (apimachinery `meta/v1/types.go`): which uid it demands of its object. The server
//! does not delete an object that has another one.

use crate::filter::json::whole::string_at;
use crate::filter::proto::message::{Envelope, repack};
use crate::filter::proto::wire::{Fields, put_bytes};
use crate::filter::{Encoding, FilterError};
use bytes::Bytes;
use serde_json::{Value, json};

const PRECONDITIONS: u64 = 2;
/// `uid` of the preconditions.
const UID: u64 = 1;

const NOT_OPTIONS: FilterError = FilterError::Malformed("DeleteOptions");

/// The uid that the options demand; none if any will do.
pub fn demanded_uid(bytes: &Bytes, encoding: Encoding) -> Result<Option<String>, FilterError> {
    match encoding {
        Encoding::Json => Ok(string_at(bytes, &["preconditions", "uid"])?.map(String::from)),
        Encoding::Protobuf => demanded_in(Envelope::open(bytes)?.raw),
    }
}

/// The options with the demand for that uid, which they lack so far.
pub fn demand_uid(bytes: &Bytes, encoding: Encoding, uid: &str) -> Result<Bytes, FilterError> {
    if encoding == Encoding::Protobuf {
        let mut preconditions = Vec::new();
        put_bytes(UID, uid.as_bytes(), &mut preconditions);
        // A message that is repeated is merged.
        let demanding = repack(bytes, |options| {
            let mut options = options.to_vec();
            put_bytes(PRECONDITIONS, &preconditions, &mut options);
            Ok(options)
        });
        return demanding.map(Bytes::from);
    }
    // Written anew, so that a member that stands there twice cannot be read in two ways.
    let mut options: Value = serde_json::from_slice(bytes).map_err(|_| NOT_OPTIONS)?;
    let members = options.as_object_mut().ok_or(NOT_OPTIONS)?;
    match members.entry("preconditions").or_insert(Value::Null) {
        Value::Object(preconditions) => drop(preconditions.insert("uid".to_owned(), uid.into())),
        none => *none = json!({"uid": uid}),
    }
    Ok(options.to_string().into())
}

fn demanded_in(options: &[u8]) -> Result<Option<String>, FilterError> {
    let mut uid = None;
    for field in Fields::of(options) {
        let field = field?;
        if field.number != PRECONDITIONS {
            continue;
        }
        for field in Fields::of(field.bytes()?) {
            let field = field?;
            if field.number == UID {
                uid = Some(field.text()?.to_owned());
            }
        }
    }
    Ok(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::proto::reference::packed;

    fn text(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    #[test]
    fn a_demand_is_added_where_there_is_none() {
        for (before, after) in [
            ("{}", r#"{"preconditions":{"uid":"u"}}"#),
            (r#"{"gracePeriodSeconds":0}"#, r#"{"gracePeriodSeconds":0,"preconditions":{"uid":"u"}}"#),
            (r#"{"preconditions":null}"#, r#"{"preconditions":{"uid":"u"}}"#),
            (r#"{"preconditions":{"uid":"a"},"preconditions":{}}"#, r#"{"preconditions":{"uid":"u"}}"#),
            (r#"{"preconditions":{"uid":"a","uid":null}}"#, r#"{"preconditions":{"uid":"u"}}"#),
            (
                r#"{"preconditions":{"resourceVersion":"7"}}"#,
                r#"{"preconditions":{"resourceVersion":"7","uid":"u"}}"#,
            ),
        ] {
            assert_eq!(demanded_uid(&text(before), Encoding::Json), Ok(None), "{before}");
            let demanding = demand_uid(&text(before), Encoding::Json, "u").unwrap();
            assert_eq!(demanding, after, "{before}");
            assert_eq!(demanded_uid(&demanding, Encoding::Json).unwrap().as_deref(), Some("u"));
        }
        let own = text(r#"{"preconditions":{"uid":"a"}}"#);
        assert_eq!(demanded_uid(&own, Encoding::Json).unwrap().as_deref(), Some("a"));
        for bad in ["[]", "1 ", "{"] {
            assert!(demanded_uid(&text(bad), Encoding::Json).is_err(), "{bad}");
            assert!(demand_uid(&text(bad), Encoding::Json, "u").is_err(), "{bad}");
        }
    }

    /// `DeleteOptions` in protobuf, which prost reads back by itself.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Options {
        #[prost(int64, optional, tag = "1")]
        grace_period_seconds: Option<i64>,
        #[prost(message, optional, tag = "2")]
        preconditions: Option<Preconditions>,
        #[prost(string, repeated, tag = "5")]
        dry_run: Vec<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Preconditions {
        #[prost(string, optional, tag = "1")]
        uid: Option<String>,
        #[prost(string, optional, tag = "2")]
        resource_version: Option<String>,
    }

    #[test]
    fn protobuf_keeps_what_it_demands_already() {
        let version = Some(Preconditions { uid: None, resource_version: Some("7".into()) });
        for preconditions in [None, version] {
            let options =
                Options { grace_period_seconds: Some(0), preconditions, dry_run: vec!["All".into()] };
            let before = Bytes::from(packed("DeleteOptions", &options));
            assert_eq!(demanded_uid(&before, Encoding::Protobuf), Ok(None));
            let after = demand_uid(&before, Encoding::Protobuf, "u").unwrap();
            assert_eq!(demanded_uid(&after, Encoding::Protobuf).unwrap().as_deref(), Some("u"));
            let read: Options = crate::filter::proto::reference::unpacked(&after).1;
            let mut wanted = options;
            wanted.preconditions.get_or_insert_default().uid = Some("u".into());
            assert_eq!(read, wanted);
        }
        assert!(demanded_uid(&text("{}"), Encoding::Protobuf).is_err());
    }
}
