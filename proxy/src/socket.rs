//! What every TCP connection of the data path is set to.

use std::{io, time::Duration};

use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use tokio::net::TcpStream;

/// A peer that is silent this long is asked whether it lives, as Go's servers and clients ask theirs.
const ASK_AFTER: Duration = Duration::from_secs(30);
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// How many times without an answer before the connection ends.
const QUESTIONS: u32 = 3;

/// Has the kernel find out when the peer is gone without a farewell. A tunnel may be silent for ever, and has no other
/// way to tell.
pub fn keep_alive(tcp: &TcpStream) -> io::Result<()> {
    set_tcp_keepidle(tcp, ASK_AFTER)?;
    set_tcp_keepintvl(tcp, ASK_EVERY)?;
    set_tcp_keepcnt(tcp, QUESTIONS)?;
    set_socket_keepalive(tcp, true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_silent_peer_is_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(!socket_keepalive(&tcp).unwrap());
        keep_alive(&tcp).unwrap();
        assert!(socket_keepalive(&tcp).unwrap());
        assert_eq!(tcp_keepidle(&tcp).unwrap(), ASK_AFTER);
    }
}
