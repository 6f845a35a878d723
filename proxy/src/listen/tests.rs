use http::header;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
};

use super::*;
use crate::body;

/// Answers everything.
struct Echo;

/// Errors and connections as a test hands them out.
struct Handed(tokio::sync::Mutex<mpsc::Receiver<io::Result<TcpStream>>>);

// === impl Echo ===

impl Handler for Echo {
    async fn handle(&self, _: Request<Incoming>) -> Response<Body> {
        Response::new(body::full("ok"))
    }
}

// === impl Handed ===

impl Accept for Handed {
    async fn accept(&self) -> io::Result<TcpStream> {
        match self.0.lock().await.recv().await {
            Some(accepted) => accepted,
            None => pending().await,
        }
    }
}

/// A listener with so many places, its drain and where its connections are handed in.
fn listen(places: usize) -> (mpsc::Sender<io::Result<TcpStream>>, Drain, TaskTracker) {
    let (hand, handed) = mpsc::channel(16);
    let (drain, tracker) = (Drain::default(), TaskTracker::new());
    let listener = Listener {
        socket: Handed(handed.into()),
        security: Security::Plain,
        places: Places::new(places),
        open: IntGauge::new("open", "open").unwrap(),
        attendance: Attendance::default(),
        drain: drain.clone(),
        handler: Arc::new(Echo),
    };
    tokio::spawn(listener.serve(tracker.clone()));
    (hand, drain, tracker)
}

/// Both ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (client, served) =
        tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), Accept::accept(&listener));
    (client.unwrap(), served.unwrap())
}

/// The client's side of a connection that is open.
struct Kept {
    sender: http1::SendRequest<Empty<bytes::Bytes>>,
    ended: JoinHandle<hyper::Result<()>>,
}

async fn ask(client: TcpStream) -> (StatusCode, String, Kept) {
    let (mut sender, connection) = http1::handshake(TokioIo::new(client)).await.unwrap();
    let ended = tokio::spawn(connection);
    let request = Request::get("/").header(header::HOST, "a").body(Empty::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let body = Limited::new(response.into_body(), 1 << 20).collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap(), Kept { sender, ended })
}

#[tokio::test(start_paused = true)]
async fn no_error_ends_the_accept_loop() {
    let (hand, ..) = listen(10);
    for kind in [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::Interrupted,
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::OutOfMemory,
        io::ErrorKind::InvalidInput,
    ] {
        for _ in 0..20 {
            hand.send(Err(kind.into())).await.unwrap();
        }
    }
    // EMFILE, ENFILE and one that does not exist.
    for code in [24, 23, 4096] {
        hand.send(Err(io::Error::from_raw_os_error(code))).await.unwrap();
    }
    let (client, served) = pair().await;
    hand.send(Ok(served)).await.unwrap();
    assert_eq!(ask(client).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_silent_connection_yields_and_a_busy_proxy_says_so() {
    let (hand, ..) = listen(1);
    let (mut silent, served) = pair().await;
    hand.send(Ok(served)).await.unwrap();
    let (client, served) = pair().await;
    hand.send(Ok(served)).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0, "the silent one is closed");
    let (status, _, kept) = ask(client).await;
    assert_eq!(status, StatusCode::OK);

    let (client, served) = pair().await;
    hand.send(Ok(served)).await.unwrap();
    let (status, body, turned_away) = ask(client).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("--max-connections") && body.contains("retryAfterSeconds"), "{body}");
    // It is closed after its answer.
    turned_away.ended.await.unwrap().unwrap();
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_or_with_half_of_one_ends() {
    let (hand, _, tracker) = listen(10);
    for half in ["", "G", "GET / HTTP/1.1\r\nHost: a\r\n", "PRI * HTTP/2.0\r\n\r\nSM"] {
        let (mut client, served) = pair().await;
        client.write_all(half.as_bytes()).await.unwrap();
        hand.send(Ok(served)).await.unwrap();
        let mut answer = Vec::new();
        let ended = timeout(IDLE_TIMEOUT * 2, client.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{half:?}");
    }
    tracker.close();
    tracker.wait().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_for_as_long_as_the_api_server_keeps_one() {
    let (hand, ..) = listen(10);
    let (client, served) = pair().await;
    hand.send(Ok(served)).await.unwrap();
    let mut sender = ask(client).await.2.sender;
    sleep(IDLE_TIMEOUT.mul_f32(0.9)).await;
    sender.ready().await.unwrap();
    let request = Request::get("/").header(header::HOST, "a").body(Empty::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_drain_takes_no_more_connections_and_forces_those_that_stay() {
    let (hand, drain, tracker) = listen(10);
    let (client, served) = pair().await;
    hand.send(Ok(served)).await.unwrap();
    let idle = ask(client).await.2;
    let (mut half, served) = pair().await;
    half.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.unwrap();
    hand.send(Ok(served)).await.unwrap();
    drain.close();
    // An idle connection is closed.
    idle.ended.await.unwrap().unwrap();
    drain.force();
    tracker.close();
    tracker.wait().await;
    let answered = half.read_to_end(&mut Vec::new()).await;
    assert!(!matches!(answered, Ok(1..)), "and so is one that stays: {answered:?}");
}
