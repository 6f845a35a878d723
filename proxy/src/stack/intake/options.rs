//! The options of a delete that stand in its query, as a body.
//!
//! Read as the API server reads them where there is no body: apimachinery `meta/v1/zz_generated.conversion.go` and
//! `conversion.go` (`Convert_url_Values_To_v1_DeleteOptions`), and `runtime/conversion.go`. Of a key that stands there
//! twice the first value counts, except of `dryRun`. What the server refuses as a value, it refuses in a body as well.

use bytes::Bytes;
use serde_json::{Value, json};

use super::bad_request;
use crate::{request::query::Query, respond::Refusal};

const GRACE_PERIOD: &str = "gracePeriodSeconds";
const PROPAGATION: &str = "propagationPolicy";
const DRY_RUN: &str = "dryRun";
const BOOLEANS: [&str; 2] = ["orphanDependents", "ignoreStoreReadErrorWithClusterBreakingPotential"];

/// The uid that the query demands; none if any will do.
pub(super) fn demanded_uid(query: &Query) -> Result<Option<String>, Refusal> {
    Ok(first(query, "uid")?.filter(|uid| !uid.is_empty()))
}

/// The options of the query as JSON, with the demand for that uid.
pub(super) fn body(query: &Query, uid: &str) -> Result<Bytes, Refusal> {
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
    if let Some(version) = first(query, "resourceVersion")?.filter(|version| !version.is_empty()) {
        options["preconditions"]["resourceVersion"] = version.into();
    }
    if let Some(seconds) = first(query, GRACE_PERIOD)? {
        options[GRACE_PERIOD] = integer(&seconds)?;
    }
    for key in BOOLEANS {
        if let Some(value) = first(query, key)? {
            options[key] = boolean(&value).into();
        }
    }
    if let Some(policy) = first(query, PROPAGATION)? {
        options[PROPAGATION] = policy.into();
    }
    let dry_run = query.all(DRY_RUN).map_err(|error| bad_request(&error))?;
    if !dry_run.is_empty() {
        options[DRY_RUN] = json!(dry_run);
    }
    Ok(options.to_string().into())
}

fn first(query: &Query, key: &str) -> Result<Option<String>, Refusal> {
    let value = query.get(key).map_err(|error| bad_request(&error))?;
    Ok(value.map(String::from))
}

fn integer(text: &str) -> Result<Value, Refusal> {
    let number = text.parse::<i64>().map_err(|error| {
        bad_request(&format!("{GRACE_PERIOD}={text:?} ({error}): send a whole number of seconds"))
    })?;
    Ok(number.into())
}

/// All is true, even the empty value, but `0` and `false` in any case, as Go's `EqualFold` sees it: the long s folds to s.
fn boolean(text: &str) -> bool {
    text != "0" && !text.replace('\u{17f}', "s").eq_ignore_ascii_case("false")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Value, u16> {
        let bytes = body(&Query::new(Some(query)), "u").map_err(|refusal| refusal.code.as_u16())?;
        let mut options: Value = serde_json::from_slice(&bytes).unwrap();
        let members = options.as_object_mut().unwrap();
        assert_eq!(members.remove("kind").unwrap(), "DeleteOptions");
        assert_eq!(members.remove("apiVersion").unwrap(), "v1");
        assert_eq!(members["preconditions"]["uid"], "u");
        if members["preconditions"] == json!({"uid": "u"}) {
            members.remove("preconditions");
        }
        Ok(options)
    }

    #[test]
    fn each_option_means_in_the_body_what_it_meant_in_the_query() {
        for (query, wanted) in [
            ("", json!({})),
            ("pretty=1&uid=&resourceVersion=", json!({})),
            (
                "resourceVersion=7&resourceVersion=8",
                json!({"preconditions": {"uid": "u", "resourceVersion": "7"}}),
            ),
            // The server refuses every dry run but All, so none may get lost.
            ("dryRun=All", json!({"dryRun": ["All"]})),
            ("dryRun=", json!({"dryRun": [""]})),
            ("dryRun", json!({"dryRun": [""]})),
            ("dryRun=&dryRun=All", json!({"dryRun": ["", "All"]})),
            ("dryRun=All&a=b&dry%52un=x", json!({"dryRun": ["All", "x"]})),
            ("orphanDependents=true", json!({"orphanDependents": true})),
            ("orphanDependents=", json!({"orphanDependents": true})),
            ("orphanDependents=no&orphanDependents=0", json!({"orphanDependents": true})),
            ("orphanDependents=00", json!({"orphanDependents": true})),
            ("orphanDependents=0", json!({"orphanDependents": false})),
            ("orphanDependents=False", json!({"orphanDependents": false})),
            ("orphanDependents=fal%C5%BFe", json!({"orphanDependents": false})),
            (
                "ignoreStoreReadErrorWithClusterBreakingPotential",
                json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true}),
            ),
            ("gracePeriodSeconds=0&gracePeriodSeconds=x", json!({"gracePeriodSeconds": 0})),
            ("gracePeriodSeconds=-1", json!({"gracePeriodSeconds": -1})),
            ("gracePeriodSeconds=%2B5", json!({"gracePeriodSeconds": 5})),
            ("propagationPolicy=Foreground&propagationPolicy=x", json!({"propagationPolicy": "Foreground"})),
            ("propagationPolicy=", json!({"propagationPolicy": ""})),
        ] {
            assert_eq!(read(query), Ok(wanted), "{query}");
        }
    }

    #[test]
    fn what_the_server_cannot_read_is_refused() {
        for seconds in ["", "soon", "1.5", "1e3", "null", "+5", "9223372036854775808", "1_000"] {
            assert_eq!(read(&format!("gracePeriodSeconds={seconds}")), Err(400), "{seconds}");
        }
        assert_eq!(read("dryRun=%FF"), Err(400));
    }

    #[test]
    fn a_query_may_demand_a_uid() {
        for (query, uid) in [("uid=a&uid=b", Some("a")), ("uid=&uid=b", None), ("", None)] {
            assert_eq!(demanded_uid(&Query::new(Some(query))).unwrap().as_deref(), uid, "{query}");
        }
    }
}
