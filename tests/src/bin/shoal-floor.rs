//! `shoal-floor LISTEN CERT KEY UPSTREAM CA`: the least that a proxy can be, as the bench's yardstick.
//!
//! TLS and HTTP/2 on both sides, the upstream verified, hyper-util's pooled client, one thread, no logic. Whatever
//! Shoal costs beyond it is Shoal's own work.

use std::error::Error;
use std::sync::Arc;

use http::uri::Authority;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use shoal_tests::bench::trust;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

type Failure = Box<dyn Error + Send + Sync>;
type Upstream = Client<HttpsConnector<HttpConnector>, Incoming>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, cert, key, upstream, ca] = args.as_slice() else {
        return Err("usage: shoal-floor LISTEN CERT KEY UPSTREAM CA".into());
    };
    let (acceptor, client) = (acceptor(cert, key)?, client(ca)?);
    let upstream: Authority = upstream.parse()?;
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (tcp, _) = listener.accept().await?;
        tokio::spawn(connection(tcp, acceptor.clone(), client.clone(), upstream.clone()));
    }
}

async fn connection(
    tcp: TcpStream,
    tls: TlsAcceptor,
    client: Upstream,
    upstream: Authority,
) -> Result<(), Failure> {
    tcp.set_nodelay(true)?;
    let service = service_fn(move |request| pass(client.clone(), upstream.clone(), request));
    let stream = TokioIo::new(tls.accept(tcp).await?);
    auto::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await
}

async fn pass(
    client: Upstream,
    upstream: Authority,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Failure> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = Uri::builder().scheme("https").authority(upstream).path_and_query(path).build()?;
    Ok(client.request(request).await?)
}

fn acceptor(cert: &str, key: &str) -> Result<TlsAcceptor, Failure> {
    let (cert, key) = (CertificateDer::from_pem_file(cert)?, PrivateKeyDer::from_pem_file(key)?);
    let mut config =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn client(ca: &str) -> Result<Upstream, Failure> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let https = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(trust(ca.as_ref())?)
        .https_only()
        .enable_http2()
        .wrap_connector(http);
    Ok(Client::builder(TokioExecutor::new()).http2_only(true).build(https))
}
