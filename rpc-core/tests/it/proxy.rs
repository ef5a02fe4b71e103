//! Clients behind a proxy: which servers it is for, how it is asked, and what is said if it refuses.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::Outgoing;
use rpc_core::net::tls::TlsConfig;
use rpc_core::net::ws::{ProxyConfig, WsConfig, WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer as _, Message};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::tls::{authority, start};
use crate::toy::house::DEADLINE;

const GRANTED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Reads up to an empty line.
async fn head(tcp: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Answers one `CONNECT`, and passes on to the server if that grants it. Returns the request.
async fn answer(proxy: &TcpListener, answer: &str, server: Option<SocketAddr>) -> String {
    let (mut tcp, _) = proxy.accept().await.unwrap();
    let asked = head(&mut tcp).await;
    tcp.write_all(answer.as_bytes()).await.unwrap();
    if let Some(server) = server {
        let mut server = TcpStream::connect(server).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut tcp, &mut server).await });
    }
    asked
}

/// Accepts a client.
async fn serve(server: &TcpListener) -> WsStream<TcpStream> {
    let (tcp, _) = server.accept().await.unwrap();
    WsStream::accept(tcp, &WsConfig::default()).await.unwrap()
}

fn proxies(vars: &[(&str, &str)]) -> ProxyConfig {
    ProxyConfig::from_vars(|name| {
        let found = vars.iter().find(|(var, _)| *var == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn dialer(urls: &str, vars: &[(&str, &str)]) -> WsDialer {
    let config = WsConfig {
        connect_timeout: DEADLINE,
        ..WsConfig::default()
    };
    let dialer = WsDialer::new(urls).unwrap().with_config(config);
    dialer.in_listed_order().with_proxy(proxies(vars))
}

#[tokio::test]
async fn tls_goes_through_the_tunnel_to_the_named_server() {
    let authority = authority("chat.example");
    let server = start(authority.acceptor()).await;
    let (proxy, address) = listen().await;
    let all = format!("http://{address}");
    let dialer = dialer("wss://chat.example/rpc.ws", &[("HTTPS_PROXY", &all)])
        .with_header("Host", "localhost")
        .unwrap()
        .with_tls(TlsConfig::with_root_certificates(authority.root.as_bytes()).unwrap());
    let (client, asked) = tokio::join!(dialer.dial(), answer(&proxy, GRANTED, Some(server)));
    let mut client = client.unwrap();
    client.send(Outgoing::Text("hi".into())).await.unwrap();
    let echoed = client.next().await.unwrap().unwrap();
    assert_eq!(echoed, Message::Text("hi".into()));
    let expected = "CONNECT chat.example:443 HTTP/1.1\r\nHost: chat.example:443\r\n\r\n";
    assert_eq!(asked, expected);
    assert_eq!(dialer.node().map(|node| node.address()), Some(address));
}

#[tokio::test]
async fn credentials_go_to_the_proxy_alone_and_are_never_printed() {
    let ((server, at), (proxy, address)) = (listen().await, listen().await);
    let all = format!("http://ann:hunter%32@{address}");
    let dialer = dialer("ws://[2001:db8::1]:81/x", &[("all_proxy", &all)])
        .with_secret_header("X-Key", &"hunter3".to_owned().into())
        .unwrap();
    let upgrade = async {
        let (mut tcp, _) = server.accept().await.unwrap();
        head(&mut tcp).await
    };
    let answered = answer(&proxy, GRANTED, Some(at));
    let (error, asked, upgrade) = tokio::join!(dialer.dial(), answered, upgrade);
    assert!(
        asked.starts_with("CONNECT [2001:db8::1]:81 HTTP/1.1\r\n"),
        "{asked}"
    );
    let login = "Proxy-Authorization: Basic YW5uOmh1bnRlcjI=\r\n";
    assert!(
        asked.contains(login) && !asked.contains("hunter3"),
        "{asked}"
    );
    assert!(upgrade.contains("hunter3"), "{upgrade}");
    assert!(!upgrade.contains("Proxy-"), "{upgrade}");
    let printed = format!("{dialer:?} {error:?}");
    assert!(
        !printed.contains("hunter") && !printed.contains("ann"),
        "{printed}"
    );
}

#[tokio::test]
async fn a_refusal_names_the_proxy_its_status_and_what_helps() {
    for (login, reply, words, is_retryable) in [
        (
            "",
            "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n",
            "it answered 407 Proxy Authentication Required; write its URL as http://USER:PASSWORD@",
            false,
        ),
        (
            "ann:hunter2@",
            "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n",
            "it answered 407 Proxy Authentication Required; check user and password in its URL",
            false,
        ),
        (
            "",
            "HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nno\r\ngames",
            "it answered 403 Forbidden; ask who runs it, or add the server to NO_PROXY",
            false,
        ),
        (
            "",
            "HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n",
            "it answered 502 Bad Gateway; ",
            true,
        ),
        ("", "", "the line ended during the handshake", true),
        ("", "SSH-2.0\r\n", "the peer does not speak HTTP/1.1", true),
        (
            "",
            "HTTP/1.1 200 OK\r\n\r\nhi",
            "its answer has a body",
            true,
        ),
    ] {
        let (proxy, address) = listen().await;
        let all = format!("{login}{address}");
        let dialer = dialer("wss://chat.example", &[("ALL_PROXY", &all)]);
        let (dialed, _) = tokio::join!(dialer.dial(), answer(&proxy, reply, None));
        let error = dialed.unwrap_err();
        let begin =
            format!("could not reach chat.example:443 through the proxy {address}: {words}");
        assert!(error.to_string().starts_with(&begin), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"));
        assert_eq!(error.is_retryable(), is_retryable, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_the_proxy_cannot_reach_is_passed_over() {
    let ((server, at), (proxy, address)) = (listen().await, listen().await);
    let proxied = [("HTTP_PROXY", &*address.to_string())];
    let dialer = dialer("ws://a.example,ws://b.example", &proxied);
    let answers = async {
        let refusal = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
        answer(&proxy, refusal, None).await;
        answer(&proxy, GRANTED, Some(at)).await
    };
    let (client, asked, _server) = tokio::join!(dialer.dial(), answers, serve(&server));
    client.unwrap();
    assert!(asked.starts_with("CONNECT b.example:80 "), "{asked}");
    assert_eq!(dialer.node().map(|node| node.index()), Some(1));
}

#[tokio::test]
async fn the_connect_deadline_covers_a_proxy_that_does_not_answer() {
    let (proxy, address) = listen().await;
    let config = WsConfig {
        connect_timeout: Duration::from_millis(50),
        ..WsConfig::default()
    };
    let proxied = [("ALL_PROXY", &*address.to_string())];
    let dialer = dialer("ws://chat.example", &proxied).with_config(config);
    let (dialed, _held) = tokio::join!(dialer.dial(), proxy.accept());
    let error = dialed.unwrap_err();
    assert!(matches!(error, DialError::TimedOut { .. }), "{error:?}");
}

#[tokio::test]
async fn the_variable_of_the_scheme_chooses_the_proxy() {
    let set: &[(&str, &str)] = &[
        ("HTTPS_PROXY", "http://secure.example:1"),
        ("http_proxy", "plain.example"),
        ("ALL_PROXY", "socks5h://all.example"),
    ];
    for (url, vars, proxy) in [
        ("wss://h.example", set, "secure.example:1"),
        ("https://h.example", set, "secure.example:1"),
        ("ws://h.example", set, "plain.example:80"),
        ("wss://h.example", &set[1..], "all.example:1080"),
        (
            "ws://h.example",
            &[("ALL_PROXY", "http://[::1]:9")],
            "[::1]:9",
        ),
    ] {
        let dialer =
            dialer(url, vars).with_resolver(|_, _| async { Err(io::Error::other("no such name")) });
        let error = dialer.dial().await.unwrap_err().to_string();
        assert!(
            error.ends_with(&format!(" through the proxy {proxy}: no such name")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn excepted_servers_and_this_machine_are_reached_directly() {
    for (host, except) in [
        ("chat.example", "other,chat.example"),
        ("chat.example", ".example"),
        ("chat.example", "EXAMPLE"),
        ("chat.example", "*"),
        ("10.1.2.3", "10.0.0.0/8"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("127.0.0.1", ""),
        ("localhost", ""),
        ("[::1]", ""),
    ] {
        let (server, at) = listen().await;
        let vars = [("ALL_PROXY", "http://proxy.example"), ("no_proxy", except)];
        let dialer = dialer(&format!("ws://{host}/"), &vars).with_resolver(move |asked, _| {
            assert_ne!(asked, "proxy.example");
            async move { Ok(vec![at]) }
        });
        let (client, _server) = tokio::join!(dialer.dial(), serve(&server));
        client.unwrap();
    }
}

#[tokio::test]
async fn no_proxy_is_used_in_a_cgi_program() {
    let (server, at) = listen().await;
    let vars = [("HTTP_PROXY", "proxy.example"), ("REQUEST_METHOD", "GET")];
    let dialer =
        dialer("ws://chat.example", &vars).with_resolver(move |_, _| async move { Ok(vec![at]) });
    let (client, _server) = tokio::join!(dialer.dial(), serve(&server));
    client.unwrap();
}

/// Answers a client of SOCKS5 with a status; returns its user and password, and the bytes of where it wants to.
async fn socks(proxy: &TcpListener, status: u8, server: Option<SocketAddr>) -> (String, Vec<u8>) {
    let (mut tcp, _) = proxy.accept().await.unwrap();
    let mut exact = async |count: usize, reply: &[u8]| {
        let mut read = vec![0; count];
        tcp.read_exact(&mut read).await.unwrap();
        tcp.write_all(reply).await.unwrap();
        read
    };
    let method = exact(3, &[]).await[2];
    exact(0, &[5, method]).await;
    let mut login = String::new();
    if method == 2 {
        login = String::from_utf8_lossy(&exact(13, &[1, 0]).await).into_owned();
    }
    let kind = exact(4, &[]).await[3];
    let len = match kind {
        3 => usize::from(exact(1, &[]).await[0]),
        _ => 4,
    };
    let place = exact(len + 2, &[5, status, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    if let Some(server) = server {
        let mut server = TcpStream::connect(server).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut tcp, &mut server).await });
    }
    (login, place)
}

#[tokio::test]
async fn socks_resolves_the_name_at_the_proxy_or_here() {
    for (scheme, login, place) in [
        (
            "socks5h://ann:hunter2@",
            "\u{1}\u{3}ann\u{7}hunter2",
            &b"chat.example\0\x51"[..],
        ),
        ("socks5://", "", &[10, 0, 0, 7, 0, 81]),
    ] {
        let ((server, at), (proxy, address)) = (listen().await, listen().await);
        let all = format!("{scheme}{address}");
        let dialer = dialer("ws://chat.example:81", &[("ALL_PROXY", &all)]).with_resolver(
            move |host, port| {
                let it = if host == "chat.example" {
                    ([10, 0, 0, 7], port).into()
                } else {
                    address
                };
                async move { Ok(vec![it]) }
            },
        );
        let served = socks(&proxy, 0, Some(at));
        let (client, asked, _server) = tokio::join!(dialer.dial(), served, serve(&server));
        client.unwrap();
        assert_eq!(asked, (login.to_owned(), place.to_vec()));
    }
}

#[tokio::test]
async fn a_refusal_of_socks_is_reported_with_its_reason() {
    let (proxy, address) = listen().await;
    let all = format!("socks5h://{address}");
    let dialer = dialer("ws://chat.example", &[("ALL_PROXY", &all)]);
    let (dialed, _) = tokio::join!(dialer.dial(), socks(&proxy, 2, None));
    let error = dialed.unwrap_err();
    let begin =
        format!("could not reach chat.example:80 through the proxy {address}: SOCKS error: ");
    assert!(error.to_string().starts_with(&begin), "{error}");
    assert!(error.to_string().contains("not allowed"), "{error}");
}

#[tokio::test]
async fn a_proxy_of_another_kind_is_refused() {
    let (_proxy, address) = listen().await;
    for scheme in ["https", "socks4"] {
        let all = format!("{scheme}://ann:hunter2@{address}");
        let dialer = dialer("ws://chat.example", &[("ALL_PROXY", &all)]);
        let error = dialer.dial().await.unwrap_err();
        assert!(
            error.to_string().contains(": it is none of http://"),
            "{error}"
        );
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
