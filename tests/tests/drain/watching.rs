//! Watches through a proxy, and how each of them ended.

use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, header};
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::pods::Form;
use shoal_tests::{ControlPlane, Proxy, User, soon};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{JSON, load};

/// Watches under load.
pub(crate) const COUNT: usize = 500;
/// How many of them have an HTTP/1.1 connection of their own; the others share few of HTTP/2.
const ALONE: usize = 40;
/// Watches that share an HTTP/2 connection.
const SHARED: usize = 230;
/// Watches that open at once where there are thousands.
const OPENING: usize = 20;

/// Watches under way.
pub(crate) struct Watching(JoinSet<End>);

/// How watches ended.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// By the end of their body.
    pub(crate) clean: usize,
    /// By a reset or a cut.
    pub(crate) broken: usize,
    /// By a clean end with half an event before it, which is a lie.
    pub(crate) within_an_event: usize,
    /// Events in all.
    pub(crate) events: usize,
    /// From the first end to the last.
    pub(crate) spread: Duration,
}

struct End {
    at: Instant,
    is_clean: bool,
    events: usize,
    /// Bytes after the last whole event.
    rest: usize,
}

// === impl Watching ===

impl Watching {
    /// Opens [`COUNT`] watches of what [`load::prepare`] has made: both versions of HTTP, both encodings.
    pub(crate) async fn start(plane: &ControlPlane, proxy: &Proxy) -> Self {
        let token = format!("Bearer {}", plane.token(&User::ADMIN).unwrap());
        let (mut watches, mut shared) = (JoinSet::new(), Wire::connect(proxy, Http::Two).await.unwrap());
        for number in 0..COUNT {
            if number % SHARED == 0 {
                shared = Wire::connect(proxy, Http::Two).await.unwrap();
            }
            let wire =
                if number < ALONE { Wire::connect(proxy, Http::One).await.unwrap() } else { shared.clone() };
            let form = Form::ALL[number % 2];
            let accept = form.of_watch().to_owned();
            let mut request = wire.request(&format!("{}?watch=1", load::collection()));
            request.headers_mut().insert(header::AUTHORIZATION, token.parse().unwrap());
            request.headers_mut().insert(header::ACCEPT, accept.parse().unwrap());
            let response = soon("a watch", wire.send(request)).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            watches.spawn(follow(form, Reader::new(response)));
        }
        Self(watches)
    }

    /// Waits for every end.
    pub(crate) async fn finish(self) -> Ends {
        soon("every watch to end", self.collect()).await
    }

    pub(crate) async fn collect(self) -> Ends {
        let ends = self.0.join_all().await;
        let (first, last) = (ends.iter().map(|end| end.at).min(), ends.iter().map(|end| end.at).max());
        let spread = last.zip(first).map(|(last, first)| last - first).unwrap_or_default();
        ends.iter().fold(Ends { spread, ..Ends::default() }, Ends::add)
    }
}

// === impl Ends ===

impl Ends {
    fn add(mut self, end: &End) -> Self {
        self.clean += usize::from(end.is_clean);
        self.broken += usize::from(!end.is_clean);
        self.within_an_event += usize::from(end.is_clean && end.rest > 0);
        self.events += end.events;
        self
    }
}

/// Opens `count` watches that see no event, over several connections.
pub(crate) async fn idle(proxy: &Proxy, count: usize) -> Watching {
    let opened = Arc::new(Barrier::new(OPENING + 1));
    let mut watches = JoinSet::new();
    for opener in 0..OPENING {
        let (wire, opened) = (Wire::connect(proxy, Http::Two).await.unwrap(), opened.clone());
        watches.spawn(async move {
            let mut readers = Vec::new();
            for number in (opener..count).step_by(OPENING) {
                let target = format!("/api/v1/pods?watch=1&resourceVersion={number}");
                let response = soon("a watch", wire.get(&target, JSON)).await.unwrap();
                readers.push(Reader::new(response));
            }
            opened.wait().await;
            readers
        });
    }
    soon("all of them to be open", opened.wait()).await;
    let readers = watches.join_all().await.into_iter().flatten();
    Watching(readers.map(|reader| follow(Form::Json, reader)).collect())
}

/// Reads a watch to its end and keeps no more than the event under way.
async fn follow(form: Form, mut reader: Reader) -> End {
    let (mut held, mut events) = (Vec::new(), 0);
    loop {
        let next = reader.next().await;
        let is_clean = matches!(next, Ok(None));
        let Ok(Some(bytes)) = next else {
            return End { at: Instant::now(), is_clean, events, rest: held.len() };
        };
        held.extend_from_slice(&bytes);
        while let Some(length) = whole(form, &held) {
            held.drain(..length);
            events += 1;
        }
    }
}

/// The length of the first event if all of it is there.
fn whole(form: Form, held: &[u8]) -> Option<usize> {
    match form {
        Form::Json => {
            let length = held.iter().position(|byte| *byte == b'\n')? + 1;
            serde_json::from_slice::<serde::de::IgnoredAny>(&held[..length]).unwrap();
            Some(length)
        }
        Form::Protobuf => {
            let length = 4 + u32::from_be_bytes(*held.first_chunk()?) as usize;
            shoal_tests::protobuf::event(held.get(4..length)?).unwrap();
            Some(length)
        }
    }
}
