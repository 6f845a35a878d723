//! The events of a JSON watch, each known by the number that was written into its object.

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::connection::{Address, Connection, JSON, Protocol};
use super::data::MARK;
use crate::HarnessError;

/// More than any part has events.
const EVENTS: usize = 4096;
/// An event that is so late does not come.
const PATIENCE: Duration = Duration::from_secs(2);

/// When the events came, by number.
pub(super) type Seen = BTreeMap<u64, Instant>;

/// An open watch, read by a task of its own. Dropping it ends the watch.
pub(super) struct Watcher {
    /// From the request to the head of the response.
    pub(super) head: Duration,
    events: mpsc::Receiver<(u64, Instant)>,
    reader: JoinHandle<()>,
    /// It ends with its last sender.
    _connection: Connection,
}

// === impl Watcher ===

impl Watcher {
    pub(super) async fn open(address: &Address, path: &str) -> Result<Self, HarnessError> {
        let mut connection = Connection::open(address, Protocol::Two).await?;
        // Opens the proxy's own connection for calls; the one for watches is part of the head's time.
        connection.read("/version", JSON).await?;
        let sent = Instant::now();
        let body = connection.get(path, JSON).await?;
        let (head, (to, events)) = (sent.elapsed(), mpsc::channel(EVENTS));
        let reader = tokio::spawn(read(body, to));
        Ok(Self { head, events, reader, _connection: connection })
    }

    /// Waits for so many events. Fewer come back if they stay out; where none are expected, all that come.
    pub(super) async fn collect(&mut self, expected: u32) -> Seen {
        let mut seen = Seen::new();
        while expected == 0 || seen.len() < expected as usize {
            match timeout(PATIENCE, self.events.recv()).await {
                Ok(Some((number, at))) => seen.insert(number, at),
                _ => break,
            };
        }
        seen
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(mut body: Incoming, to: mpsc::Sender<(u64, Instant)>) {
    let mut line = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let now = Instant::now();
        for piece in frame.data_ref().into_iter().flat_map(|data| data.split_inclusive(|byte| *byte == b'\n'))
        {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") {
                if let Some(number) = number(&line) {
                    let _ = to.try_send((number, now));
                }
                line.clear();
            }
        }
    }
}

/// The number in an event's object; a bookmark has none.
fn number(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let (_, rest) = text.split_once(MARK)?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_values_and_not_the_field_managers() {
        let line = br#"{"type":"MODIFIED","object":{"managedFields":[{"f:data":{"f:seq":{}}}],"data":{"seq":"17"}}}"#;
        assert_eq!(number(line), Some(17));
        assert_eq!(number(br#"{"type":"BOOKMARK","object":{}}"#), None);
    }
}
