use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinHandle,
};

use super::*;

/// What a pipe holds.
const PIPE: usize = 1 << 10;

fn meter() -> Meter {
    Meter::new(&Metrics::new().unwrap())
}

/// A client and a server with a tunnel between them, and how it ends.
fn joined() -> (DuplexStream, DuplexStream, JoinHandle<io::Result<()>>) {
    let ((client, near), (far, server)) = (duplex(PIPE), duplex(PIPE));
    (client, server, tokio::spawn(join(near, far, meter())))
}

async fn read(io: &mut DuplexStream) -> String {
    let mut text = String::new();
    io.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn one_side_is_done_and_the_other_goes_on() {
    for swapped in [false, true] {
        let (one, other, tunnel) = joined();
        let (mut done, mut going) = if swapped { (other, one) } else { (one, other) };
        done.write_all(b"last words").await.unwrap();
        done.shutdown().await.unwrap();
        assert_eq!(read(&mut going).await, "last words");
        going.write_all(b"and more").await.unwrap();
        let mut heard = [0; 8];
        done.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"and more");
        assert!(!tunnel.is_finished());
        going.shutdown().await.unwrap();
        assert_eq!(read(&mut done).await, "");
        tunnel.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_side_that_breaks_ends_both() {
    let (client, mut server, tunnel) = joined();
    drop(client);
    // The pipe's other end is told of the end, and writes into nothing.
    assert_eq!(read(&mut server).await, "");
    server.write_all(&[0; PIPE]).await.unwrap();
    assert_eq!(tunnel.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert!(server.write_all(&[0; PIPE]).await.is_err());
}

#[tokio::test]
async fn who_is_not_read_is_stopped() {
    let (mut client, mut server, _tunnel) = joined();
    let mut sent = 0;
    let stalled = loop {
        tokio::select! {
            biased;
            written = client.write(&[7; PIPE]) => sent += written.unwrap(),
            () = tokio::task::yield_now() => break sent,
        }
    };
    // Two pipes and the tunnel's own.
    assert!(stalled <= 2 * PIPE + BUFFER, "{stalled}");
    let mut heard = vec![0; stalled];
    server.read_exact(&mut heard).await.unwrap();
    assert!(heard.iter().all(|byte| *byte == 7));
}

#[tokio::test]
async fn bytes_are_counted_by_where_they_come_from() {
    let metrics = Metrics::new().unwrap();
    let ((mut client, near), (far, mut server)) = (duplex(PIPE), duplex(PIPE));
    client.write_all(b"12345").await.unwrap();
    client.shutdown().await.unwrap();
    server.write_all(b"123").await.unwrap();
    server.shutdown().await.unwrap();
    join(near, far, Meter::new(&metrics)).await.unwrap();
    let bytes = |direction| metrics.bytes.with_label_values(&[direction]).get();
    assert_eq!((bytes("forwarded"), bytes("received"), bytes("sent")), (5, 3, 3));
}

/// A peer that closes its socket without a farewell.
struct Rude;

impl AsyncRead for Rude {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

#[tokio::test]
async fn an_end_without_a_farewell_is_an_end() {
    let mut end = End { io: Rude, read: Vec::new() };
    assert_eq!(end.read(&mut [0; 8]).await.unwrap(), 0);
}
