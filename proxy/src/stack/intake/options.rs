//! The options of a delete that stand in its query, as a body.
//!
//! Read as the API server reads them where there is no body: apimachinery `meta/v1/zz_generated.conversion.go` and
//! `conversion.go` (`Convert_url_Values_To_v1_DeleteOptions`), and `runtime/conversion.go`. Of a key that stands there
//! twice the first value counts, except of `dryRun`. What the server refuses as a value, it refuses in a body as well.

use bytes::Bytes;
use serde_json::{Value, json};

use std::time::Duration;

use super::bad_request;
use crate::{filter::object::demand::Demand, request::query::Query, respond::Refusal};

const GRACE_PERIOD: &str = "gracePeriodSeconds";
const PROPAGATION: &str = "propagationPolicy";
const DRY_RUN: &str = "dryRun";
const BOOLEANS: [&str; 2] = ["orphanDependents", "ignoreStoreReadErrorWithClusterBreakingPotential"];

/// What the query demands.
pub(super) fn demanded(query: &Query) -> Result<Demand, Refusal> {
    let given = |key: &str| Ok::<_, Refusal>(first(query, key)?.filter(|text| !text.is_empty()));
    Ok(Demand { uid: given("uid")?, version: given("resourceVersion")? })
}

/// The options of the query as JSON, with those demands beside its own.
pub(super) fn body(query: &Query, demand: &Demand) -> Result<Bytes, Refusal> {
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    let own = demanded(query)?;
    for (key, text) in [
        ("uid", demand.uid.as_ref().or(own.uid.as_ref())),
        ("resourceVersion", own.version.as_ref().or(demand.version.as_ref())),
    ] {
        if let Some(text) = text {
            options["preconditions"][key] = text.as_str().into();
        }
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

/// Whether a `timeout` is longer than that, or none at all: the server takes 0 for its own limit (apiserver
/// `pkg/endpoints/request/request_deadline.go`). What is no duration in Go's form is not, so that the server refuses it.
pub(super) fn is_longer(text: &str, limit: Duration) -> bool {
    go_duration(text).is_some_and(|seconds| seconds <= 0.0 || seconds > limit.as_secs_f64())
}

/// The seconds of a duration as Go's `time.ParseDuration` reads it: `1h15m30.918s`, or `0`.
fn go_duration(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let number = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (value, unit) = rest.split_at(number);
        let end = unit.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(unit.len());
        let factor = match &unit[..end] {
            "ns" => 1e-9,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += value.parse::<f64>().ok()? * factor;
        rest = &unit[end..];
    }
    (!text.is_empty() && text != "-" && text != "+").then_some(sign * seconds)
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
        let bytes = body(&Query::new(Some(query)), &Demand { uid: Some("u".into()), version: None })
            .map_err(|refusal| refusal.code.as_u16())?;
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
            assert_eq!(demanded(&Query::new(Some(query))).unwrap().uid.as_deref(), uid, "{query}");
        }
    }

    #[test]
    fn only_a_shorter_bound_stays() {
        let limit = Duration::from_secs(5);
        for longer in ["0", "0s", "-1s", "6s", "1m", "5.1s", "4s1500ms", "+1h"] {
            assert!(is_longer(longer, limit), "{longer}");
        }
        for stays in ["5s", "1s", "4.9s", "100ms", "1us", "5", "", "s", "soon", "1d", "1s1", "1.s.2s", "-"] {
            assert!(!is_longer(stays, limit), "{stays}");
        }
    }
}
