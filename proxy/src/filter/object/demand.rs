//! What a write demands of its object: a uid, a version. The server refuses the write to an object that has others.
//!
//! A delete says so in its `DeleteOptions` (apimachinery `meta/v1/types.go`), the eviction of a Pod in a part of its
//! `Eviction` (api `policy/v1/types.go`), every other write in the metadata of the object that it sends.

use crate::filter::json::whole::{member_at, put_at, string_at};
use crate::filter::proto::message::{Envelope, METADATA, RESOURCE_VERSION, UID, repack};
use crate::filter::proto::wire::{Fields, put_bytes};
use crate::filter::{Encoding, FilterError};
use bytes::Bytes;
use serde_json::{Value, json};

/// What is demanded. An empty text demands nothing, as at the server.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Demand {
    /// `metadata.uid` of the object.
    pub uid: Option<String>,
    /// Its `metadata.resourceVersion`.
    pub version: Option<String>,
}

/// What holds the demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// `DeleteOptions`, which are the whole body.
    Options,
    /// The `deleteOptions` of an `Eviction`, which may be absent.
    Eviction,
    /// An object, or a patch in the form of one.
    Object,
}

/// `deleteOptions` of an `Eviction`.
const DELETE_OPTIONS: u64 = 2;
const PRECONDITIONS: u64 = 2;
/// `uid` and `resourceVersion` of the preconditions.
const PRECONDITION_UID: u64 = 1;
const PRECONDITION_VERSION: u64 = 2;

/// The version of an object that demands none (apiserver `pkg/registry/generic/registry/store.go`: an unconditional update).
/// As a precondition of a delete it is one like any other.
pub(super) const ANY_VERSION: &str = "0";

const NOT_OPTIONS: FilterError = FilterError::Malformed("DeleteOptions");

/// Where the two texts of a demand are.
struct Place {
    json: &'static [&'static str],
    proto: &'static [u64],
    /// The numbers of the uid and of the version in that message.
    fields: [u64; 2],
}

const UID_AND_VERSION: [&str; 2] = ["uid", "resourceVersion"];

/// What a body demands.
pub fn demanded(bytes: &Bytes, encoding: Encoding, carrier: Carrier) -> Result<Demand, FilterError> {
    let place = carrier.place();
    let text = |index: usize| match encoding {
        Encoding::Json if carrier == Carrier::Object => member_at(bytes, "metadata", UID_AND_VERSION[index]),
        Encoding::Json => {
            let path = [place.json, &[UID_AND_VERSION[index]]].concat();
            Ok(string_at(bytes, &path)?.map(String::from))
        }
        Encoding::Protobuf => {
            let path = [place.proto, &[place.fields[index]]].concat();
            text_in(Envelope::open(bytes)?.raw, &path)
        }
    };
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let any = |version: &String| carrier == Carrier::Object && version == ANY_VERSION;
    Ok(Demand { uid: given(text(0)?), version: given(text(1)?).filter(|version| !any(version)) })
}

/// The body with the demands, which it lacks so far.
pub fn demand(
    bytes: &Bytes,
    encoding: Encoding,
    carrier: Carrier,
    demand: &Demand,
) -> Result<Bytes, FilterError> {
    let texts = [&demand.uid, &demand.version];
    let wanted = || (0..2).filter_map(|index| Some((index, texts[index].as_deref()?)));
    let place = carrier.place();
    match (encoding, carrier) {
        (Encoding::Protobuf, _) => {
            // A message that is repeated is merged.
            let fields: Vec<u8> =
                wanted().flat_map(|(index, text)| nested(place.proto, place.fields[index], text)).collect();
            repack(bytes, |body| Ok([body, &fields].concat())).map(Bytes::from)
        }
        (Encoding::Json, Carrier::Object) => wanted().try_fold(bytes.clone(), |bytes, (index, text)| {
            put_at(&bytes, "metadata", UID_AND_VERSION[index], text)
        }),
        (Encoding::Json, Carrier::Options | Carrier::Eviction) => {
            // Written anew, so that a member that stands there twice cannot be read in two ways.
            let mut body: Value = serde_json::from_slice(bytes).map_err(|_| NOT_OPTIONS)?;
            for (index, text) in wanted() {
                put(&mut body, place.json, UID_AND_VERSION[index], text)?;
            }
            Ok(body.to_string().into())
        }
    }
}

fn put(body: &mut Value, path: &[&str], key: &str, text: &str) -> Result<(), FilterError> {
    let mut value = body;
    if !value.is_object() {
        return Err(NOT_OPTIONS);
    }
    for key in path {
        value = &mut value[*key];
        if !value.is_object() {
            *value = json!({});
        }
    }
    value[key] = text.into();
    Ok(())
}

/// A text as a field of a message within messages.
fn nested(path: &[u64], number: u64, text: &str) -> Vec<u8> {
    let wrap = |value: Vec<u8>, number: u64| {
        let mut field = Vec::new();
        put_bytes(number, &value, &mut field);
        field
    };
    let innermost = wrap(text.as_bytes().to_vec(), number);
    // From the inside out.
    path.iter().rev().fold(innermost, |value, number| wrap(value, *number))
}

/// The text at the end of a path of fields; of a repeated one the last counts.
fn text_in(message: &[u8], path: &[u64]) -> Result<Option<String>, FilterError> {
    let Some((number, rest)) = path.split_first() else { return Ok(None) };
    let mut text = None;
    for field in Fields::of(message) {
        let field = field?;
        if field.number != *number {
            continue;
        }
        text = if rest.is_empty() {
            Some(field.text()?.to_owned())
        } else {
            text_in(field.bytes()?, rest)?.or(text)
        };
    }
    Ok(text)
}

// === impl Demand ===

impl Demand {
    /// Whether it is too little: of an object that is there the version is enough, as no other object has it; a write that
    /// `creates` what is not there needs the uid as well.
    pub fn is_partial(&self, creates: bool) -> bool {
        self.version.is_none() || creates && self.uid.is_none()
    }

    /// What of another demand this one lacks.
    #[must_use]
    pub fn completed_by(&self, other: Self) -> Self {
        let lacks = |own: &Option<String>, other: Option<String>| other.filter(|_| own.is_none());
        Self { uid: lacks(&self.uid, other.uid), version: lacks(&self.version, other.version) }
    }

    /// Demands that too; the newer counts.
    pub fn add(&mut self, newer: &Self) {
        self.uid = newer.uid.clone().or_else(|| self.uid.take());
        self.version = newer.version.clone().or_else(|| self.version.take());
    }
}

// === impl Carrier ===

impl Carrier {
    fn place(self) -> Place {
        match self {
            Self::Options => Place {
                json: &["preconditions"],
                proto: &[PRECONDITIONS],
                fields: [PRECONDITION_UID, PRECONDITION_VERSION],
            },
            Self::Eviction => Place {
                json: &["deleteOptions", "preconditions"],
                proto: &[DELETE_OPTIONS, PRECONDITIONS],
                fields: [PRECONDITION_UID, PRECONDITION_VERSION],
            },
            Self::Object => {
                Place { json: &["metadata"], proto: &[METADATA], fields: [UID, RESOURCE_VERSION] }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::proto::reference::packed;
    use proptest::{prop_assert_eq, proptest};

    fn uid() -> Demand {
        Demand { uid: Some("u".into()), version: None }
    }

    fn demanded_uid(
        bytes: &Bytes,
        encoding: Encoding,
        carrier: Carrier,
    ) -> Result<Option<String>, FilterError> {
        Ok(demanded(bytes, encoding, carrier)?.uid)
    }

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
            let demanding = demand(&text(before), Encoding::Json, Carrier::Options, &uid()).unwrap();
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
            assert!(demand(&text(bad), Encoding::Json, Carrier::Options, &uid()).is_err(), "{bad}");
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
            let after = demand(&before, Encoding::Protobuf, Carrier::Options, &uid()).unwrap();
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
            let demanding = demand(&text(before), Encoding::Json, Carrier::Eviction, &uid()).unwrap();
            assert_eq!(demanding, after, "{before}");
        }
        let options = Options { grace_period_seconds: Some(0), preconditions: None, dry_run: Vec::new() };
        for delete_options in [None, Some(options)] {
            let mut wanted = Eviction { delete_options };
            let before = Bytes::from(packed("Eviction", &wanted));
            assert_eq!(demanded_uid(&before, Encoding::Protobuf, Carrier::Eviction), Ok(None));
            let after = demand(&before, Encoding::Protobuf, Carrier::Eviction, &uid()).unwrap();
            let uid = demanded_uid(&after, Encoding::Protobuf, Carrier::Eviction).unwrap();
            assert_eq!(uid.as_deref(), Some("u"));
            let options = wanted.delete_options.get_or_insert_default();
            options.preconditions.get_or_insert_default().uid = Some("u".into());
            let read: Eviction = crate::filter::proto::reference::unpacked(&after).1;
            assert_eq!(read, wanted);
        }
    }

    #[test]
    fn an_object_demands_by_its_own_metadata() {
        let both = Demand { uid: Some("u".into()), version: Some("7".into()) };
        for (before, after) in [
            ("{}", r#"{"metadata":{"resourceVersion":"7","uid":"u"}}"#),
            (" { } ", r#" {"metadata":{"resourceVersion":"7","uid":"u"} } "#),
            (
                r#"{"spec":{"uid":"x"}}"#,
                r#"{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"uid":"x"}}"#,
            ),
            (r#"{"metadata":{ }}"#, r#"{"metadata":{"resourceVersion":"7","uid":"u" }}"#),
            (
                r#"{"spec":1.0,"metadata":{"name":"a"}}"#,
                r#"{"spec":1.0,"metadata":{"resourceVersion":"7","uid":"u","name":"a"}}"#,
            ),
            (
                r#"{"metadata":{"uid":"","resourceVersion":null}}"#,
                r#"{"metadata":{"uid":"u","resourceVersion":"7"}}"#,
            ),
            (r#"{"metadata":{"resourceVersion":"0"}}"#, r#"{"metadata":{"uid":"u","resourceVersion":"7"}}"#),
            (
                r#"{"metadata":{"uid":"x"},"metadata":{"name":"a"}}"#,
                r#"{"metadata":{"uid":"x"},"metadata":{"resourceVersion":"7","uid":"u","name":"a"}}"#,
            ),
        ] {
            let own = demanded(&text(before), Encoding::Json, Carrier::Object);
            assert_eq!(own, Ok(Demand::default()), "{before}");
            let demanding = demand(&text(before), Encoding::Json, Carrier::Object, &both).unwrap();
            assert_eq!(demanding, after, "{before}");
            assert_eq!(demanded(&demanding, Encoding::Json, Carrier::Object).as_ref(), Ok(&both), "{before}");
        }
        for bad in
            ["[]", "1 ", "{", r#"{"metadata":null}"#, r#"{"metadata":[]}"#, r#"{"metadata":{"uid":1}}"#]
        {
            assert!(demanded(&text(bad), Encoding::Json, Carrier::Object).is_err(), "{bad}");
            assert!(demand(&text(bad), Encoding::Json, Carrier::Object, &both).is_err(), "{bad}");
        }
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Object {
        #[prost(message, optional, tag = "1")]
        metadata: Option<Metadata>,
        #[prost(string, optional, tag = "2")]
        spec: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Metadata {
        #[prost(string, optional, tag = "1")]
        name: Option<String>,
        #[prost(string, optional, tag = "5")]
        uid: Option<String>,
        #[prost(string, optional, tag = "6")]
        resource_version: Option<String>,
    }

    #[test]
    fn protobuf_objects_demand_too() {
        let metadata = Metadata { name: Some("a".into()), uid: Some("u".into()), resource_version: None };
        let mut wanted = Object { metadata: Some(metadata), spec: Some("s".into()) };
        let before = Bytes::from(packed("Pod", &wanted));
        assert_eq!(demanded(&before, Encoding::Protobuf, Carrier::Object), Ok(uid()));
        let version = Demand { uid: None, version: Some("7".into()) };
        let after = demand(&before, Encoding::Protobuf, Carrier::Object, &version).unwrap();
        let both = Demand { version: Some("7".into()), ..uid() };
        assert_eq!(demanded(&after, Encoding::Protobuf, Carrier::Object), Ok(both));
        wanted.metadata.get_or_insert_default().resource_version = Some("7".into());
        assert_eq!(crate::filter::proto::reference::unpacked::<Object>(&after).1, wanted);
    }

    /// Each is a version of the object, or none; what a client sends is kept byte for byte around it.
    #[test]
    fn any_object_demands_what_it_is_told_and_nothing_else_of_it_changes() {
        let texts = ["", "0", "7", "u\u{e9}\"\\", "\u{2028}"];
        let texts = || proptest::sample::select(texts.to_vec());
        let strategy = (texts(), texts(), proptest::bool::ANY, proptest::bool::ANY, "[a-z \"\\\\]{0,9}");
        proptest!(|((uid, version, has_uid, has_version, other) in strategy)| {
            let mut object = json!({"a": [1, {"metadata": {"uid": other}}], "metadata": {"labels": {"uid": other}}});
            if has_uid {
                object["metadata"]["uid"] = uid.into();
            }
            if has_version {
                object["metadata"]["resourceVersion"] = version.into();
            }
            let bytes = Bytes::from(object.to_string());
            let own = demanded(&bytes, Encoding::Json, Carrier::Object).unwrap();
            let kept = |text: &str, has: bool| Some(text.to_owned()).filter(|text| has && !text.is_empty());
            prop_assert_eq!(&own.uid, &kept(uid, has_uid));
            prop_assert_eq!(&own.version, &kept(version, has_version).filter(|version| version != "0"));
            let added = own.completed_by(Demand { uid: Some("n".into()), version: Some("9".into()) });
            let bound = demand(&bytes, Encoding::Json, Carrier::Object, &added).unwrap();
            let mut wanted = object.clone();
            wanted["metadata"]["uid"] = own.uid.unwrap_or("n".into()).into();
            wanted["metadata"]["resourceVersion"] = own.version.unwrap_or("9".into()).into();
            prop_assert_eq!(serde_json::from_slice::<Value>(&bound).unwrap(), wanted);
        });
    }
}
