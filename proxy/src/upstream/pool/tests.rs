use std::net::{Ipv4Addr, SocketAddr};

use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, ServerName},
};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::pause,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{body, metrics::Metrics, upstream::endpoint::Endpoint};

/// A server on a free port, and a pool of connections to it.
struct Stand {
    pool: Arc<Pool>,
    /// Connections that it ever accepted, and those that are open.
    seen: watch::Receiver<(usize, usize)>,
    task: JoinHandle<()>,
}

/// What the server does with connections.
#[derive(Clone, Copy)]
enum Plan {
    /// Allows so many streams on each.
    Streams(u32),
    /// So many on the first, and accepts the others by its backlog alone.
    Once(u32),
    /// Closes them after the TLS handshake.
    Closes,
    /// Accepts all by its backlog alone.
    BlackHole,
}

// === impl Stand ===

impl Stand {
    async fn new(plan: Plan) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let certified = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        let pool = pool(listener.local_addr().unwrap(), certified.cert.pem());
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certified.cert.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (book, seen) = watch::channel((0, 0));
        let task = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), plan, book));
        Self { pool, seen, task }
    }

    fn accepted(&self) -> usize {
        self.seen.borrow().0
    }

    async fn open_are(&mut self, open: usize) {
        self.seen.wait_for(|(_, now)| *now == open).await.unwrap();
    }

    /// Streams until none is free and no connection may be added.
    async fn take_all(&self) -> Vec<Stream> {
        let mut held = Vec::new();
        loop {
            self.pool.learn().await;
            match self.pool.free() {
                Some(stream) => held.push(stream),
                None if self.pool.is_full() => return held,
                None => held.push(self.pool.stream().await.unwrap()),
            }
        }
    }

    /// As many streams.
    async fn take(&self, count: usize) -> Vec<Stream> {
        let mut held = Vec::new();
        for _ in 0..count {
            held.push(self.pool.stream().await.unwrap());
        }
        held
    }

    /// So many that want a stream, and stand where they must wait.
    async fn waiting(&self, count: usize) -> JoinSet<Result<Stream, Arc<DialError>>> {
        let wait = |pool: Arc<Pool>| async move { pool.stream().await };
        let waiting = (0..count).map(|_| wait(self.pool.clone())).collect();
        self.settle().await;
        waiting
    }

    /// Lets everybody do what can be done at once.
    async fn settle(&self) {
        for _ in 0..100 {
            self.pool.learn().await;
        }
    }
}

fn pool(address: SocketAddr, authority: String) -> Arc<Pool> {
    let endpoint = Endpoint {
        authority: address.to_string().parse().unwrap(),
        base_path: String::new(),
        server_name: ServerName::try_from("a").unwrap(),
        authorities: authority.into_bytes(),
        credential: None,
    };
    let open = Metrics::new().unwrap().upstream_connections.with_label_values(&["hub", "call"]);
    Pool::new(Arc::new(Target::new(&endpoint).unwrap()), CALL_WINDOW, open)
}

/// Ends with all its connections.
async fn serve(listener: TcpListener, tls: TlsAcceptor, plan: Plan, book: watch::Sender<(usize, usize)>) {
    let book = Arc::new(book);
    let mut connections = JoinSet::new();
    loop {
        let accepts = match plan {
            Plan::BlackHole => false,
            Plan::Once(_) => book.borrow().0 == 0,
            Plan::Streams(_) | Plan::Closes => true,
        };
        if !accepts {
            pending::<()>().await;
        }
        let tcp = listener.accept().await.unwrap().0;
        book.send_modify(|(accepted, open)| (*accepted, *open) = (*accepted + 1, *open + 1));
        connections.spawn(speak(tcp, tls.clone(), plan, book.clone()));
    }
}

async fn speak(tcp: TcpStream, tls: TlsAcceptor, plan: Plan, book: Arc<watch::Sender<(usize, usize)>>) {
    let tls = tls.accept(tcp).await.unwrap();
    if let Plan::Streams(streams) | Plan::Once(streams) = plan {
        let mut http2 = h2::server::Builder::new();
        let mut connection = http2.max_concurrent_streams(streams).handshake::<_, Bytes>(tls).await.unwrap();
        while let Some(Ok(_)) = connection.accept().await {}
    }
    book.send_modify(|(_, open)| *open -= 1);
}

async fn failed(pool: Arc<Pool>) -> String {
    pool.stream().await.map(drop).unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_burst_waits_for_one_dial_that_fails() {
    let stand = Stand::new(Plan::BlackHole).await;
    let asked = Instant::now();
    let burst: JoinSet<_> = (0..100).map(|_| failed(stand.pool.clone())).collect();
    for error in burst.join_all().await {
        assert_eq!(error, "no connection within 10 s");
    }
    assert_eq!(asked.elapsed().as_secs(), 10);
    // The next one tries again.
    assert_eq!(failed(stand.pool.clone()).await, "no connection within 10 s");
    assert_eq!(asked.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_ends_the_dial_for_nobody_else() {
    let stand = Stand::new(Plan::BlackHole).await;
    let asked = Instant::now();
    let gives_up = timeout(Duration::from_secs(6), stand.pool.stream());
    let (impatient, _) = tokio::join!(gives_up, failed(stand.pool.clone()));
    assert!(impatient.is_err());
    assert_eq!(asked.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn who_waits_for_a_dial_takes_a_stream_that_is_given_back() {
    let stand = Stand::new(Plan::Once(8)).await;
    let mut held = stand.take(8).await;
    // From here on a dial that never ends fails at once, and so does everybody who waits for nothing else.
    pause();
    let asked = Instant::now();
    let mut waiting = stand.waiting(3).await;
    held.truncate(5);
    while let Some(taken) = waiting.join_next().await {
        held.push(taken.unwrap().unwrap());
    }
    assert_eq!((held.len(), asked.elapsed()), (8, Duration::ZERO));
    // The dial went on, and is not repeated.
    assert_eq!(failed(stand.pool.clone()).await, "no connection within 10 s");
    assert_eq!(asked.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn who_finds_no_stream_waits_for_one_that_is_given_back() {
    // As many as are assumed at first, so that nothing is learned later.
    let stand = Stand::new(Plan::Streams(8)).await;
    let mut held = stand.take_all().await;
    assert_eq!((stand.accepted(), held.len()), (CONNECTIONS, CONNECTIONS * STREAMS_AT_FIRST));
    let mut waiting = stand.waiting(20).await;
    assert!(waiting.try_join_next().is_none());
    for _ in 0..20 {
        held.pop();
        held.push(waiting.join_next().await.unwrap().unwrap().unwrap());
    }
    assert_eq!(held.len(), CONNECTIONS * STREAMS_AT_FIRST);
}

#[tokio::test]
async fn connections_are_never_more_than_so_many() {
    for streams in [0, 1, 7, 20] {
        let stand = Stand::new(Plan::Streams(streams)).await;
        let mut held = stand.take_all().await;
        let mut waiting = stand.waiting(20).await;
        while streams > 0 && !waiting.is_empty() {
            drop(held.pop());
            stand.settle().await;
            while let Some(taken) = waiting.try_join_next() {
                held.insert(0, taken.unwrap().unwrap());
            }
            assert!(stand.pool.connections.load().len() <= CONNECTIONS, "{streams}");
        }
        assert!(stand.pool.connections.load().len() <= CONNECTIONS, "{streams}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_where_the_others_are_busy() {
    let mut stand = Stand::new(Plan::Streams(8)).await;
    let mut first = stand.take(8).await;
    for taken in [8, 5] {
        first.truncate(taken);
        drop(stand.take(9 - taken).await);
        assert_eq!(stand.pool.connections.load().len(), 2, "beside {taken} of 8");
    }
    assert_eq!(stand.accepted(), 2);
    first.truncate(4);
    stand.open_are(1).await;
    // In whatever order streams are given back.
    for rotation in 0..20 {
        let mut held = stand.take(20).await;
        held.rotate_left(rotation);
        while let Some(stream) = held.pop() {
            drop(stream);
        }
        stand.open_are(1).await;
    }
}

#[tokio::test]
async fn a_connection_that_ended_makes_room_for_another() {
    let stand = Stand::new(Plan::Streams(8)).await;
    let _held = stand.take_all().await;
    let mut waiting = stand.waiting(20).await;
    assert!(waiting.try_join_next().is_none());
    stand.task.abort();
    // Nobody gives a stream back; that they dial is seen by how they fail.
    while let Some(taken) = waiting.join_next().await {
        assert!(matches!(*taken.unwrap().map(drop).unwrap_err(), DialError::Io(_)));
    }
}

#[tokio::test]
async fn a_request_is_handed_over_so_often_at_most() {
    let stand = Stand::new(Plan::Closes).await;
    let request = Request::get("https://a/").body(body::empty()).unwrap();
    let mut sent = pin!(stand.pool.send(request, || true));
    // It goes on only when its connection has ended.
    let outcome = poll_fn(|cx| {
        if stand.pool.connections.load().iter().any(|connection| connection.is_open()) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        sent.as_mut().poll(cx)
    });
    let error = outcome.await.map(drop).unwrap_err();
    assert!(matches!(error, UpstreamError::Unprocessed(_)), "{error}");
    assert_eq!(stand.accepted(), ATTEMPTS);
}
