//! Runs a fault against every form of request, and compares with a table what was seen.

use http::{HeaderMap, Response, header};
use hyper::body::Incoming;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use shoal_tests::protobuf;
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::pods::Form as Coding;
use shoal_tests::scripted::{Exchange, Gone, PING, PONG, STREAMS, Stage};
use shoal_tests::soon;
use tokio::task::JoinHandle;

use crate::form::Form;

const HTTP: [Http; 2] = [Http::One, Http::Two];
/// What a healthy server gives.
pub(crate) const UNHARMED: &str = "
    GET             whole                                  1
    LIST json       whole                                  1
    LIST protobuf   whole                                  1
    WATCH json      whole                                  1
    WATCH protobuf  whole                                  1
    POST            whole                                  1
    PUT             whole                                  1
    PATCH           whole                                  1
    DELETE          whole                                  1
";

/// How many deliveries of a request a fault strikes; the others are answered well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strikes {
    First,
    Each,
}

/// One fault against every form, over both versions of HTTP, one request at a time.
pub(crate) async fn each_form(
    test: &str,
    strikes: Strikes,
    strike: impl AsyncFn(Form, Exchange) -> Result<(), Gone>,
    table: &str,
) {
    let mut stage = Stage::start(test, STREAMS).await.unwrap();
    let mut number = 0;
    for http in HTTP {
        let mut seen = Vec::new();
        for form in Form::ALL {
            number += 1;
            seen.push(one(&mut stage, http, form, number, strikes, &strike).await);
        }
        compare(&format!("{test}, {http:?}"), &seen, table);
    }
}

/// A request under way.
pub(crate) struct Asked {
    pub(crate) form: Form,
    pub(crate) target: String,
    outcome: JoinHandle<String>,
}

/// A row of what was seen: the client's outcome and the number of deliveries.
pub(crate) struct Row {
    form: Form,
    outcome: String,
    deliveries: usize,
}

async fn one(
    stage: &mut Stage,
    http: Http,
    form: Form,
    number: usize,
    strikes: Strikes,
    strike: &impl AsyncFn(Form, Exchange) -> Result<(), Gone>,
) -> Row {
    let what = format!("{http:?} {}", form.name());
    let client = stage.client(http).await.unwrap();
    let mut asked = ask(&client, form, number);
    let mut struck = false;
    let outcome = loop {
        tokio::select! {
            outcome = soon(&what, &mut asked.outcome) => break outcome.unwrap(),
            exchange = stage.next() => {
                let mut exchange = exchange.unwrap();
                // A peer that is gone needs neither: the table tells.
                let _ = exchange.read().await;
                let spared = struck && strikes == Strikes::First;
                let _ = if spared { form.answer().send(exchange).await } else { strike(form, exchange).await };
                struck = true;
            }
        }
    };
    ping(stage).await;
    Row { form, outcome, deliveries: stage.upstream.seen().count(&asked.target) }
}

/// Sends a request; its outcome comes later.
pub(crate) fn ask(client: &Wire, form: Form, number: usize) -> Asked {
    let request = form.request(client, number);
    let target = request.uri().path_and_query().unwrap().to_string();
    let client = client.clone();
    let outcome = tokio::spawn(async move {
        match client.send(request).await {
            Ok(response) => outcome(form, response).await,
            Err(_) => "broken".to_owned(),
        }
    });
    Asked { form, target, outcome }
}

/// Sends every form at once.
pub(crate) fn ask_all(client: &Wire, first: usize) -> Vec<Asked> {
    Form::ALL.iter().zip(first..).map(|(form, number)| ask(client, *form, number)).collect()
}

/// Waits for the outcomes. What still arrives upstream is answered well.
pub(crate) async fn settled(stage: &mut Stage, mut asked: Vec<Asked>) -> Vec<Row> {
    let forms: Vec<_> = asked.iter().map(|asked| (asked.target.clone(), asked.form)).collect();
    let mut seen = Vec::new();
    for asked in &mut asked {
        let outcome = loop {
            tokio::select! {
                outcome = soon(asked.form.name(), &mut asked.outcome) => break outcome.unwrap(),
                exchange = stage.next() => {
                    let exchange = exchange.unwrap();
                    let (_, form) = forms.iter().find(|(target, _)| target == exchange.target()).unwrap();
                    form.answer().send(exchange).await.unwrap();
                }
            }
        };
        seen.push(Row { form: asked.form, outcome, deliveries: 0 });
    }
    let book = stage.upstream.seen();
    for (row, asked) in seen.iter_mut().zip(asked) {
        row.deliveries = book.count(&asked.target);
    }
    seen
}

/// Another client is served.
pub(crate) async fn ping(stage: &Stage) {
    let client = stage.client(Http::Two).await.unwrap();
    let response = soon("a ping", client.get(PING, "application/json")).await.unwrap();
    assert_eq!(soon("a pong", Reader::new(response).rest()).await.unwrap(), PONG);
}

/// Prints what was seen, and fails if the table says otherwise.
pub(crate) fn compare(title: &str, seen: &[Row], table: &str) {
    let line = |row: &Row| format!("{:<15} {:<45} {}", row.form.name(), row.outcome, row.deliveries);
    let seen: Vec<_> = seen.iter().map(line).collect();
    println!("{title}\n    {}", seen.join("\n    "));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let seen: Vec<_> = seen.iter().map(|line| words(line)).collect();
    let expected: Vec<_> = table.trim().lines().map(words).collect();
    assert_eq!(seen, expected, "{title}");
}

/// In words: the whole truth, a watch that can be resumed, a broken transfer, a Status, or what passed as it came.
/// Anything else is a lie.
async fn outcome(form: Form, response: Response<Incoming>) -> String {
    let (code, headers) = (response.status(), response.headers().clone());
    let (body, ended) = read(response).await;
    if !code.is_success() {
        return refusal(form, code.as_u16(), &headers, &body);
    }
    let shown = form.answer().shown;
    if ended && body != shown && form.has_events(&body) {
        return "ends between events".to_owned();
    }
    match (ended, body == shown, shown.starts_with(&body)) {
        (false, _, true) => "broken".to_owned(),
        (true, true, _) => "whole".to_owned(),
        (true, ..) if body.is_empty() => "empty".to_owned(),
        (true, ..) if code == 200 && is_error_event(&body) => "ERROR event".to_owned(),
        (ended, ..) => format!("{} ended={ended} after {:?}", code, String::from_utf8_lossy(&body)),
    }
}

async fn read(response: Response<Incoming>) -> (Vec<u8>, bool) {
    let (mut reader, mut body) = (Reader::new(response), Vec::new());
    loop {
        match reader.next().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Ok(None) => return (body, true),
            Err(_) => return (body, false),
        }
    }
}

fn is_error_event(body: &[u8]) -> bool {
    let message = b"shoal: the watch cannot be filtered";
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    has(b"ERROR") && has(message)
}

/// A Status counts only in the encoding that the caller asked for.
fn refusal(form: Form, code: u16, headers: &HeaderMap, body: &[u8]) -> String {
    let text = |name| headers.get(name).map_or("", |value| value.to_str().unwrap());
    let retry = match text(header::RETRY_AFTER) {
        "" => String::new(),
        seconds => format!(", retry after {seconds}"),
    };
    let content_type = text(header::CONTENT_TYPE);
    let status: Option<Status> = match form.coding() {
        _ if content_type != form.coding().of_list() => None,
        Coding::Json => serde_json::from_slice(body).ok(),
        Coding::Protobuf => protobuf::status(body),
    };
    match status {
        Some(status) => {
            assert_eq!(status.code, Some(i32::from(code)));
            let seconds = status.details.and_then(|details| details.retry_after_seconds);
            assert_eq!(
                seconds.map(|seconds| seconds.to_string()).unwrap_or_default(),
                text(header::RETRY_AFTER)
            );
            format!("{code} {}{retry}", status.reason.unwrap_or_default())
        }
        None => format!("{code} {content_type} as it came{retry}"),
    }
}
