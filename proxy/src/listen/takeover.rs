//! What a connection does once its client has left HTTP: it is its handler's, and ends with it.

use std::pin::Pin;

use tokio::sync::mpsc;

/// What is left to do with a connection.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the handler of an upgrade leaves it; an extension of the request.
#[derive(Clone)]
pub struct Takeover(mpsc::Sender<Task>);

/// Where the connection finds it.
pub(super) struct Left(mpsc::Receiver<Task>);

/// Both ends, for one connection.
pub(super) fn takeover() -> (Takeover, Left) {
    // After the answer to an upgrade a connection has no other request.
    let (give, left) = mpsc::channel(1);
    (Takeover(give), Left(left))
}

// === impl Takeover ===

impl Takeover {
    /// Has the connection do this when its answer has been sent. It then counts as open for as long as that takes, and
    /// is cut with the others when a drain is over. A connection that is gone drops it.
    pub fn give(&self, task: Task) {
        let _ = self.0.try_send(task);
    }
}

// === impl Left ===

impl Left {
    /// Does what was left, if anything was.
    pub(super) async fn run(&mut self) {
        if let Ok(task) = self.0.try_recv() {
            task.await;
        }
    }
}
