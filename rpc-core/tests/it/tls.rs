//! `wss` end to end, with a certification authority of the test's own.

use futures_util::{SinkExt as _, StreamExt as _};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rpc_core::net::server::{Accepted, HttpConfig};
use rpc_core::net::tls::{TlsAcceptor, TlsConfig};
use rpc_core::net::ws::{WsConfig, WsDialer};
use rpc_core::net::{DialError, Dialer as _, Message};
use rpc_core::{Outgoing, Text};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

use crate::server::Server;

/// Texts in PEM.
pub struct Authority {
    pub root: String,
    chain: String,
    key: String,
}

impl Authority {
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from_pem(self.chain.as_bytes(), self.key.as_bytes()).unwrap()
    }

    fn trusted(&self) -> TlsConfig {
        TlsConfig::with_root_certificates(self.root.as_bytes()).unwrap()
    }
}

/// An authority and a certificate that it signed for `name`.
pub fn authority(name: &str) -> Authority {
    let mut root = CertificateParams::new(Vec::new()).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_key = KeyPair::generate().unwrap();
    let root_certificate = root.self_signed(&root_key).unwrap();
    let issuer = Issuer::new(root, root_key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()])
        .unwrap()
        .signed_by(&key, &issuer)
        .unwrap();
    Authority {
        root: root_certificate.pem(),
        chain: certificate.pem(),
        key: key.serialize_pem(),
    }
}

pub async fn start(acceptor: TlsAcceptor) -> SocketAddr {
    let config = HttpConfig {
        tls: Some(acceptor),
        ..HttpConfig::default()
    };
    let echo = |mut accepted: Accepted| async move {
        while let Some(Ok(message)) = accepted.socket.next().await {
            if let Message::Text(text) = message {
                accepted.socket.send(Outgoing::Text(text)).await.unwrap();
            }
        }
    };
    let server = Server::bind("127.0.0.1:0", echo, config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    address
}

fn dialer(host: &str, port: u16, tls: TlsConfig) -> WsDialer {
    WsDialer::new(&format!("wss://{host}:{port}/rpc.ws"))
        .unwrap()
        .with_tls(tls)
}

#[tokio::test]
async fn a_certificate_of_a_configured_authority_is_trusted() {
    let authority = authority("localhost");
    let port = start(authority.acceptor()).await.port();
    let tls = authority.trusted();
    let ws = dialer("localhost", port, tls).dial().await.unwrap();
    let big = Text::from("x".repeat(1024 * 1024));
    let (sent, echoed) = {
        let (mut sink, mut stream) = ws.split();
        let text = big.clone();
        tokio::join!(
            async move { sink.send(Outgoing::Text(text)).await },
            async move { stream.next().await }
        )
    };
    sent.unwrap();
    assert_eq!(echoed.unwrap().unwrap(), Message::Text(big));
}

#[tokio::test]
async fn certificates_for_ip_addresses_are_accepted() {
    let authority = authority("127.0.0.1");
    let port = start(authority.acceptor()).await.port();
    let mut ws = dialer("127.0.0.1", port, authority.trusted())
        .dial()
        .await
        .unwrap();
    ws.close().await.unwrap();
}

#[tokio::test]
async fn an_unknown_authority_is_a_final_error() {
    let (theirs, other) = (authority("localhost"), authority("localhost"));
    let port = start(theirs.acceptor()).await.port();
    let tls = other.trusted();
    for dialer in [
        dialer("localhost", port, tls),
        WsDialer::new(&format!("wss://localhost:{port}/")).unwrap(),
    ] {
        let error = dialer.dial().await.unwrap_err();
        let words = "the certificate of localhost:";
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(
            error.to_string().contains("its issuer is unknown"),
            "{error}"
        );
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_a_final_error() {
    let authority = authority("elsewhere.example");
    let port = start(authority.acceptor()).await.port();
    let tls = authority.trusted();
    let error = dialer("localhost", port, tls).dial().await.unwrap_err();
    assert!(matches!(error, DialError::Certificate { .. }), "{error:?}");
    assert!(!error.is_retryable());
}

fn own(params: &CertificateParams, key: &KeyPair) -> Authority {
    let certificate = params.self_signed(key).unwrap().pem();
    Authority {
        root: certificate.clone(),
        chain: certificate,
        key: key.serialize_pem(),
    }
}

/// A certificate as `openssl req -x509` makes it: its own authority, with names or only a common name.
fn own_authority(names: &[&str], common: &str) -> Authority {
    let names = names.iter().map(|&name| name.to_owned());
    let mut params = CertificateParams::new(names.collect::<Vec<_>>()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, common);
    let key = KeyPair::generate().unwrap();
    own(&params, &key)
}

#[tokio::test]
async fn a_self_signed_certificate_can_be_trusted() {
    for (names, common, is_accepted) in [
        (&[][..], "localhost", true),
        (&[], "LocalHost", true),
        (&["localhost"], "someone", true),
        (&[], "elsewhere.example", false),
        (&["elsewhere.example"], "someone", false),
    ] {
        let own = own_authority(names, common);
        let port = start(own.acceptor()).await.port();
        let dialed = dialer("localhost", port, own.trusted()).dial().await;
        assert_eq!(
            dialed.is_ok(),
            is_accepted,
            "{names:?} {common}: {dialed:?}"
        );
        let tls = own_authority(names, common).trusted();
        let error = dialer("localhost", port, tls).dial().await.unwrap_err();
        assert!(matches!(error, DialError::Certificate { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_expired_trusted_certificate_is_refused() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "localhost");
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = KeyPair::generate().unwrap();
    let own = own(&params, &key);
    let port = start(own.acceptor()).await.port();
    let error = dialer("localhost", port, own.trusted())
        .dial()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
}

/// Both addresses of `localhost`: at one of them no one listens.
async fn both(port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok([port, 1].map(|port| ([127, 0, 0, 1], port).into()).into())
}

#[tokio::test]
async fn a_refused_certificate_is_reported_before_a_refused_port() {
    let (theirs, other) = (authority("localhost"), authority("localhost"));
    let port = start(theirs.acceptor()).await.port();
    let tls = other.trusted();
    let dialer = dialer("localhost", port, tls).with_resolver(move |_, _| both(port));
    let error = dialer.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Certificate { .. }), "{error:?}");
}

#[tokio::test]
async fn the_connect_deadline_covers_a_tls_handshake_that_is_never_answered() {
    let authority = authority("localhost");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = authority.trusted();
    let config = WsConfig {
        connect_timeout: Duration::from_millis(50),
        ..WsConfig::default()
    };
    let dialer = dialer("127.0.0.1", port, tls).with_config(config);
    let (result, _held) = tokio::join!(dialer.dial(), listener.accept());
    assert!(
        matches!(result, Err(DialError::TimedOut { .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_plain_client_of_a_tls_server_is_closed() {
    let authority = authority("localhost");
    let address = start(authority.acceptor()).await;
    let tcp = TcpStream::connect(address).await.unwrap();
    let dialer = WsDialer::new("ws://localhost/").unwrap();
    assert!(dialer.upgrade(tcp).await.is_err());
}
