//! The two answers beside each other: what a shard has to answer, and whether it does.

use std::fmt::{self, Write};

use http::{HeaderMap, HeaderName, StatusCode, header};

use super::difference::Difference;
use super::filtered;
use super::form::Form;
use super::ground::NO_ANSWER;
use super::owner::{Refusal, Shard};
use super::pair::{Guide, Pair, Rule};
use crate::raw::Answer;

/// Of one request: that they are there is compared, not what they say. The server gives a schema two times of its making,
/// by turns.
const OF_THE_REQUEST: [&str; 2] = ["audit-id", "last-modified"];
/// Of one moment or of one connection: not compared.
const OF_ITS_OWN: [&str; 4] = ["date", "connection", "keep-alive", "transfer-encoding"];
/// How much of an answer a failure shows.
const SHOWN: usize = 300;

/// What the API server answered, with what it was asked besides.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    pub(super) answer: Answer,
    /// To the guide's question.
    pub(super) guide: Option<Answer>,
}

/// A pair whose answers differ as no document says.
#[derive(Debug)]
pub(super) struct Mismatch {
    /// In a word or two.
    pub(super) what: String,
    pub(super) expected: String,
    pub(super) seen: String,
}

/// What a shard answers is right; says which of the documented differences were met.
pub(super) fn check(
    pair: &Pair,
    shard: &Shard,
    direct: &Direct,
    seen: &Answer,
) -> Result<Vec<Difference>, Mismatch> {
    let answer = &direct.answer;
    if answer.code == NO_ANSWER && pair.ask.method != "GET" {
        return lost(seen);
    }
    match &pair.rule {
        Rule::Code => code(answer, seen),
        Rule::Unclear => unclear(seen),
        Rule::Write | Rule::DryCreate => match shard.refuses(&pair.about, pair.ask.method) {
            Some(refusal) => refused(pair, refusal, seen),
            None if matches!(pair.rule, Rule::DryCreate) => {
                whole(&without_uid(answer), &without_uid(seen))?;
                Ok(vec![Difference::Uid])
            }
            None => whole(answer, seen),
        },
        Rule::List(_) | Rule::Watch if !pair.about.is_filtered() => whole(answer, seen),
        Rule::List(_) if answer.code.is_success() => list(pair, shard, direct, seen),
        Rule::List(Guide::Json(_)) => yaml_error(direct, seen),
        Rule::Watch if answer.code.is_success() => watch(pair, shard, answer, seen),
        Rule::Same | Rule::List(_) | Rule::Watch => whole(answer, seen),
    }
}

/// What has to be equal for two answers to be the same state of the same server.
pub(super) fn is_same(pair: &Pair, one: &Answer, other: &Answer) -> bool {
    match pair.rule {
        Rule::Watch => one.code == other.code && lasting(one) == lasting(other),
        Rule::DryCreate => whole(&without_uid(one), &without_uid(other)).is_ok(),
        Rule::Code => true,
        _ => whole(one, other).is_ok(),
    }
}

/// The client cannot know whether it was done; nothing may invite it to try again.
fn lost(seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    let reason = seen.status().and_then(|status| status.reason).unwrap_or_default();
    equal("refusal", "502 InternalError", &format!("{} {reason}", seen.code.as_u16()))?;
    equal("Retry-After", "", text(&seen.headers, header::RETRY_AFTER))?;
    Ok(vec![Difference::Lost])
}

fn code(direct: &Answer, seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    equal("status", direct.code.as_str(), seen.code.as_str())?;
    Ok(vec![Difference::Changing])
}

fn whole(direct: &Answer, seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    equal("status", &head(direct), &head(seen))?;
    equal("headers", &headers(&direct.headers, &[]), &headers(&seen.headers, &[]))?;
    bytes("body", &direct.body, &seen.body)?;
    Ok(Vec::new())
}

fn list(pair: &Pair, shard: &Shard, direct: &Direct, seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    let mut met = vec![Difference::Length];
    let mut gone = vec![header::CONTENT_LENGTH];
    let (mut source, mut owners) = (&direct.answer, None);
    let mut wanted = direct.answer.headers.clone();
    match (&pair.rule, &direct.guide) {
        (Rule::List(Guide::Plain(_)), Some(plain)) if is_gzip(&direct.answer) => {
            gone.extend([header::CONTENT_ENCODING, header::VARY]);
            (source, met) = (plain, vec![Difference::Length, Difference::Identity]);
        }
        (Rule::List(Guide::Json(_)), Some(json)) => {
            wanted.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/yaml"));
            (source, met) = (json, vec![Difference::Length, Difference::Yaml]);
        }
        (Rule::List(Guide::Rows(_)), Some(rows)) => owners = filtered::owners(rows),
        _ => {}
    }
    equal("status", &head(&direct.answer), &head(seen))?;
    equal("headers", &headers(&wanted, &gone), &headers(&seen.headers, &gone))?;
    equal("coding", "", text(&seen.headers, header::CONTENT_ENCODING))?;
    let expected = filtered::list(source, shard, &pair.about, owners.as_ref());
    let expected = expected.ok_or_else(|| Mismatch::new("guide", &"a list", &shown(&source.body)))?;
    if filtered::is_null(source) {
        met.push(Difference::Null);
    }
    if pair.ask.target.contains("pretty=true") {
        met.push(Difference::Blanks);
        let read = |body: &[u8]| filtered::unblanked(body).unwrap_or_default();
        bytes("items", read(&expected).as_bytes(), read(&seen.body).as_bytes())?;
    } else {
        bytes("items", &expected, &seen.body)?;
    }
    let kept = Answer { body: expected.into(), ..source.clone() };
    if filtered::count(&kept) < filtered::count(source) {
        met.push(Difference::Items);
    }
    if filtered::says_remaining(source) {
        met.push(Difference::Remaining);
    }
    Ok(met)
}

fn watch(pair: &Pair, shard: &Shard, direct: &Answer, seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    let gone = [header::CONTENT_LENGTH];
    equal("status", &head(direct), &head(seen))?;
    equal("headers", &headers(&direct.headers, &gone), &headers(&seen.headers, &gone))?;
    let read = |answer: &Answer| {
        filtered::events(answer).ok_or_else(|| Mismatch::new("events", &"events", &shown(&answer.body)))
    };
    let (sent, got) = (read(direct)?, read(seen)?);
    let shown = |event: &&filtered::Event| !event.is_progress() && event.is_shown(shard, &pair.about);
    let mut wanted: Vec<filtered::Event> = sent.iter().filter(shown).cloned().collect();
    let mut met = vec![Difference::Bookmarks];
    // The columns came with an event that is hidden.
    if let (Some(opening), Some(event)) = (sent.first(), wanted.first_mut())
        && event.bytes != opening.bytes
        && event.take_columns_of(opening)
    {
        met.push(Difference::Columns);
    }
    let expected: Vec<&filtered::Event> = wanted.iter().collect();
    let got: Vec<_> = got.iter().filter(|event| !event.is_progress()).collect();
    let join = |events: &[&filtered::Event]| {
        events.iter().flat_map(|event| event.bytes.iter().copied()).collect::<Vec<u8>>()
    };
    bytes("events", &join(&expected), &join(&got))?;
    let lasting = sent.iter().filter(|event| !event.is_progress()).count();
    if expected.len() < lasting {
        met.push(Difference::Items);
    }
    Ok(met)
}

/// An error about a list in YAML is written as JSON as well.
fn yaml_error(direct: &Direct, seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    let gone = [header::CONTENT_LENGTH];
    equal("status", &head(&direct.answer), &head(seen))?;
    equal("headers", &headers(&direct.answer.headers, &gone), &headers(&seen.headers, &gone))?;
    bytes("error", direct.guide.as_ref().map_or(&[][..], |json| &json.body), &seen.body)?;
    Ok(vec![Difference::Yaml])
}

fn is_gzip(answer: &Answer) -> bool {
    text(&answer.headers, header::CONTENT_ENCODING) == "gzip"
}

/// A watch without the bookmarks that come when the server likes.
fn lasting(answer: &Answer) -> Option<Vec<filtered::Event>> {
    let events = filtered::events(answer)?;
    Some(events.into_iter().filter(|event| !event.is_progress()).collect())
}

fn unclear(seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    let reason = seen.status().and_then(|status| status.reason).unwrap_or_default();
    equal("refusal", "400 BadRequest", &format!("{} {reason}", seen.code.as_u16()))?;
    Ok(vec![Difference::Unclear])
}

fn refused(pair: &Pair, expected: Refusal, seen: &Answer) -> Result<Vec<Difference>, Mismatch> {
    let Refusal { code, reason, cause } = expected;
    let wrong = |what: &str| Mismatch::new(what, &format!("{code} {reason} {cause}"), &brief(seen));
    let status = seen.status().ok_or_else(|| wrong("refusal"))?;
    let details = status.details.unwrap_or_default();
    let causes = details.causes.unwrap_or_default();
    let name = Some(pair.about.name.as_str()).filter(|name| !name.is_empty());
    let group = Some(pair.about.group.as_str()).filter(|group| !group.is_empty());
    let encoding = if pair.form == Form::Protobuf { Form::Protobuf } else { Form::Json };
    let is_right = [
        ("status", seen.code == code && status.code == Some(i32::from(code.as_u16()))),
        ("encoding", Some(text(&seen.headers, header::CONTENT_TYPE)) == encoding.accept()),
        ("Retry-After", !seen.headers.contains_key(header::RETRY_AFTER)),
        ("reason", status.reason.as_deref() == Some(reason) && status.status.as_deref() == Some("Failure")),
        ("cause", matches!(causes.as_slice(), [one] if one.reason.as_deref() == Some(cause))),
        ("subject", details.name.as_deref() == name && details.kind.as_deref() == Some(&pair.about.resource)),
        ("group", details.group.as_deref() == group),
        ("retryAfterSeconds", details.retry_after_seconds.is_none()),
        (
            "message",
            cause != "ForeignSlot" || status.message.is_some_and(|said| said.contains("does not own slot")),
        ),
    ];
    match is_right.iter().find(|(_, is_right)| !is_right) {
        Some((what, _)) => Err(wrong(what)),
        None if code == StatusCode::FORBIDDEN => Ok(vec![Difference::Broad]),
        None => Ok(vec![Difference::Foreign]),
    }
}

/// The uid of what was created, made the same for both; it has one length, so nothing else moves.
fn without_uid(answer: &Answer) -> Answer {
    let mut body = answer.body.to_vec();
    let uid = answer.metadata().map(|metadata| metadata.uid).filter(|uid| !uid.is_empty());
    // In a table it is in the one row.
    if let Some(uid) = uid.or_else(|| super::mask::value(&body, "uid")) {
        super::mask::replace(&mut body, uid.as_bytes(), b'0');
    }
    super::mask::values(&mut body, &["token"]);
    Answer { body: body.into(), ..answer.clone() }
}

fn head(answer: &Answer) -> String {
    format!("{} {}", answer.code.as_u16(), text(&answer.headers, header::CONTENT_TYPE))
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Sorted by name; several values of one name stay in their order.
fn headers(headers: &HeaderMap, without: &[HeaderName]) -> String {
    let mut names: Vec<&HeaderName> = headers.keys().filter(|name| !without.contains(name)).collect();
    names.sort_by_key(|name| name.as_str());
    let mut all = String::new();
    for name in names {
        match name.as_str() {
            one if OF_THE_REQUEST.contains(&one) => {
                _ = writeln!(all, "{one}: {}", headers.get_all(name).iter().count());
            }
            own if OF_ITS_OWN.contains(&own) => {}
            _ => headers.get_all(name).iter().for_each(|value| _ = writeln!(all, "{name}: {value:?}")),
        }
    }
    all
}

/// Shows only the lines that differ.
fn equal(what: &str, expected: &str, seen: &str) -> Result<(), Mismatch> {
    let beside = |text: &str, other: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !other.lines().any(|one| one == *line)).collect();
        lines.join("; ")
    };
    if expected == seen {
        Ok(())
    } else {
        Err(Mismatch::new(what, &beside(expected, seen), &beside(seen, expected)))
    }
}

/// Shows the first place where they differ.
fn bytes(what: &str, expected: &[u8], seen: &[u8]) -> Result<(), Mismatch> {
    if expected == seen {
        return Ok(());
    }
    let at = expected.iter().zip(seen).take_while(|(one, other)| one == other).count();
    let from = at.saturating_sub(60);
    let part =
        |body: &[u8]| format!("{} B, at {at}: {}", body.len(), shown(body.get(from..).unwrap_or_default()));
    Err(Mismatch::new(what, &part(expected), &part(seen)))
}

/// An answer in one line.
pub(super) fn brief(answer: &Answer) -> String {
    format!("{} {}", head(answer), shown(&answer.body))
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body)).into_owned();
    text.escape_debug().to_string()
}

// === impl Mismatch ===

impl Mismatch {
    pub(super) fn new(what: &str, expected: &dyn fmt::Display, seen: &dyn fmt::Display) -> Self {
        Self { what: what.to_owned(), expected: expected.to_string(), seen: seen.to_string() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n    expected {}\n    seen     {}",
            self.what,
            self.expected.trim_end(),
            self.seen.trim_end()
        )
    }
}
