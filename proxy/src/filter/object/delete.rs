//! `DeleteOptions`, the body of a delete (apimachinery `meta/v1/types.go`) and a part of an `Eviction` (api
//! `policy/v1/types.go`): which uid it demands of its object. The server does not delete an object that has another one.

use crate::filter::json::whole::string_at;
use crate::filter::proto::message::{Envelope, repack};
use crate::filter::proto::wire::{Fields, put_bytes};
use crate::filter::{Encoding, FilterError};
use bytes::Bytes;
use serde_json::{Value, json};

/// What holds the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The body is nothing else.
    Options,
    /// They are its `deleteOptions`, which may be absent.
    Eviction,
}

/// `deleteOptions` of an `Eviction`.
const DELETE_OPTIONS: u64 = 2;
const PRECONDITIONS: u64 = 2;
/// `uid` of the preconditions.
const UID: u64 = 1;

const NOT_OPTIONS: FilterError = FilterError::Malformed("DeleteOptions");

/// The uid that the options demand; none if any will do.
pub fn demanded_uid(
    bytes: &Bytes,
    encoding: Encoding,
    carrier: Carrier,
) -> Result<Option<String>, FilterError> {
    match encoding {
        Encoding::Json => Ok(string_at(bytes, carrier.json_path())?.map(String::from)),
        Encoding::Protobuf => demanded_in(Envelope::open(bytes)?.raw, carrier.proto_path()),
    }
}

/// The options with the demand for that uid, which they lack so far.
pub fn demand_uid(
    bytes: &Bytes,
    encoding: Encoding,
    carrier: Carrier,
    uid: &str,
) -> Result<Bytes, FilterError> {
    if encoding == Encoding::Protobuf {
        // From the inside out.
        let wrap = |value: Vec<u8>, number: &u64| {
            let mut field = Vec::new();
            put_bytes(*number, &value, &mut field);
            field
        };
        let demand = carrier.proto_path().iter().rev().fold(uid.as_bytes().to_vec(), wrap);
        // A message that is repeated is merged.
        return repack(bytes, |body| Ok([body, &demand].concat())).map(Bytes::from);
    }
    // Written anew, so that a member that stands there twice cannot be read in two ways.
    let mut body: Value = serde_json::from_slice(bytes).map_err(|_| NOT_OPTIONS)?;
    let mut value = &mut body;
    if !value.is_object() {
        return Err(NOT_OPTIONS);
    }
    for key in carrier.json_path() {
        if !value.is_object() {
            *value = json!({});
        }
        value = &mut value[*key];
    }
    *value = uid.into();
    Ok(body.to_string().into())
}

// === impl Carrier ===

impl Carrier {
    fn json_path(self) -> &'static [&'static str] {
        match self {
            Self::Options => &["preconditions", "uid"],
            Self::Eviction => &["deleteOptions", "preconditions", "uid"],
        }
    }

    fn proto_path(self) -> &'static [u64] {
        match self {
            Self::Options => &[PRECONDITIONS, UID],
            Self::Eviction => &[DELETE_OPTIONS, PRECONDITIONS, UID],
        }
    }
}

/// The text at the end of a path of fields; of a repeated one the last counts.
fn demanded_in(message: &[u8], path: &[u64]) -> Result<Option<String>, FilterError> {
    let Some((number, rest)) = path.split_first() else { return Ok(None) };
    let mut uid = None;
    for field in Fields::of(message) {
        let field = field?;
        if field.number != *number {
            continue;
        }
        uid = if rest.is_empty() {
            Some(field.text()?.to_owned())
        } else {
            demanded_in(field.bytes()?, rest)?.or(uid)
        };
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
            assert_eq!(demanded_uid(&text(before), Encoding::Json, Carrier::Options), Ok(None), "{before}");
            let demanding = demand_uid(&text(before), Encoding::Json, Carrier::Options, "u").unwrap();
            assert_eq!(demanding, after, "{before}");
            assert_eq!(
                demanded_uid(&demanding, Encoding::Json, Carrier::Options).unwrap().as_deref(),
                Some("u")
            );
        }
        let own = text(r#"{"preconditions":{"uid":"a"}}"#);
        assert_eq!(demanded_uid(&own, Encoding::Json, Carrier::Options).unwrap().as_deref(), Some("a"));
        for bad in ["[]", "1 ", "{"] {
            assert!(demanded_uid(&text(bad), Encoding::Json, Carrier::Options).is_err(), "{bad}");
            assert!(demand_uid(&text(bad), Encoding::Json, Carrier::Options, "u").is_err(), "{bad}");
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
            assert_eq!(demanded_uid(&before, Encoding::Protobuf, Carrier::Options), Ok(None));
            let after = demand_uid(&before, Encoding::Protobuf, Carrier::Options, "u").unwrap();
            assert_eq!(
                demanded_uid(&after, Encoding::Protobuf, Carrier::Options).unwrap().as_deref(),
                Some("u")
            );
            let read: Options = crate::filter::proto::reference::unpacked(&after).1;
            let mut wanted = options;
            wanted.preconditions.get_or_insert_default().uid = Some("u".into());
            assert_eq!(read, wanted);
        }
        assert!(demanded_uid(&text("{}"), Encoding::Protobuf, Carrier::Options).is_err());
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Eviction {
        #[prost(message, optional, tag = "2")]
        delete_options: Option<Options>,
    }

    #[test]
    fn an_eviction_holds_its_demand_one_level_deeper() {
        for (before, after) in [
            ("{}", r#"{"deleteOptions":{"preconditions":{"uid":"u"}}}"#),
            (
                r#"{"deleteOptions":{"dryRun":["All"]},"preconditions":{"uid":"a"}}"#,
                r#"{"deleteOptions":{"dryRun":["All"],"preconditions":{"uid":"u"}},"preconditions":{"uid":"a"}}"#,
            ),
            (r#"{"deleteOptions":null}"#, r#"{"deleteOptions":{"preconditions":{"uid":"u"}}}"#),
        ] {
            assert_eq!(demanded_uid(&text(before), Encoding::Json, Carrier::Eviction), Ok(None), "{before}");
            let demanding = demand_uid(&text(before), Encoding::Json, Carrier::Eviction, "u").unwrap();
            assert_eq!(demanding, after, "{before}");
        }
        let options = Options { grace_period_seconds: Some(0), preconditions: None, dry_run: Vec::new() };
        for delete_options in [None, Some(options)] {
            let mut wanted = Eviction { delete_options };
            let before = Bytes::from(packed("Eviction", &wanted));
            assert_eq!(demanded_uid(&before, Encoding::Protobuf, Carrier::Eviction), Ok(None));
            let after = demand_uid(&before, Encoding::Protobuf, Carrier::Eviction, "u").unwrap();
            let uid = demanded_uid(&after, Encoding::Protobuf, Carrier::Eviction).unwrap();
            assert_eq!(uid.as_deref(), Some("u"));
            let options = wanted.delete_options.get_or_insert_default();
            options.preconditions.get_or_insert_default().uid = Some("u".into());
            let read: Eviction = crate::filter::proto::reference::unpacked(&after).1;
            assert_eq!(read, wanted);
        }
    }
}
