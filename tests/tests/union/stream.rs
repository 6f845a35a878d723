//! Lists and watches, asked for and read as bytes.

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use shoal_tests::raw::{Answer, Http, RawClient};

/// A watch, read event by event.
#[derive(Debug)]
pub(crate) struct Stream {
    body: Incoming,
    /// What came and is no whole event yet.
    read: Vec<u8>,
}

/// Asks for a path with its query; any status is an answer.
pub(crate) async fn get(client: &RawClient, target: &str, accept: &str) -> Answer {
    let request = Request::get(target).header(header::ACCEPT, accept).body(Vec::new());
    client.send(request.unwrap()).await.unwrap()
}

/// The same, as a client that takes gzip.
pub(crate) async fn get_gzip(client: &RawClient, target: &str, accept: &str) -> Answer {
    let request = Request::get(target).header(header::ACCEPT, accept).header(header::ACCEPT_ENCODING, "gzip");
    client.send(request.body(Vec::new()).unwrap()).await.unwrap()
}

// === impl Stream ===

impl Stream {
    /// Opens a watch and returns when its head has come.
    pub(crate) async fn open(client: &RawClient, target: &str, accept: &str) -> Self {
        let request = Request::get(target).header(header::ACCEPT, accept).body(Full::new(Bytes::new()));
        let response = client.open(Http::Two, request.unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{target}");
        Self { body: response.into_body(), read: Vec::new() }
    }

    /// The next line with its line feed.
    pub(crate) async fn line(&mut self) -> Vec<u8> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                return self.take(end + 1);
            }
            self.more().await;
        }
    }

    /// The next frame, the four bytes of its length included.
    pub(crate) async fn frame(&mut self) -> Vec<u8> {
        loop {
            if let Some((head, rest)) = self.read.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*head) as usize;
                if rest.len() >= length {
                    return self.take(4 + length);
                }
            }
            self.more().await;
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.read.split_off(length);
        std::mem::replace(&mut self.read, rest)
    }

    async fn more(&mut self) {
        let frame = self.body.frame().await.unwrap_or_else(|| panic!("the watch ended: {:?}", self.read));
        self.read.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
    }
}
