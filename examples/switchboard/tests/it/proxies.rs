//! Clients behind a proxy that the environment names.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::programs::{Ended as _, Folder, Running, host, outcome, switchboard};

/// Starts a proxy that gives this answer to a `CONNECT`, and the way to a server if there is one. Returns its
/// address, and what hands out the first line and the credentials of what it was asked.
fn proxy(answer: &'static str, server: Option<String>) -> (SocketAddr, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let (mut client, _) = listener.accept().unwrap();
        let lines = BufReader::new(client.try_clone().unwrap()).lines();
        let head: Vec<_> = lines
            .map(Result::unwrap)
            .take_while(|line| !line.is_empty())
            .collect();
        client.write_all(answer.as_bytes()).unwrap();
        if let Some(server) = server {
            let mut server = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
        head.join("\n")
    };
    (address, thread::spawn(serve))
}

#[test]
fn a_chat_goes_through_the_proxy_of_the_environment() {
    let folder = Folder::new("proxies-chat");
    let mut serve = switchboard("gateway", &["serve", "--port", "0"]);
    serve.env("HOME", &folder.0);
    let (_gateway, url) = Running::serve(serve);
    let local = host(&url).to_owned();
    let (address, asked) = proxy("HTTP/1.1 200 OK\r\n\r\n", Some(local));
    let mut chat = switchboard(
        "gateway",
        &["chat", "--url", "ws://far.example/ws", "count to 2"],
    );
    chat.args(["--header", "Host: localhost"]);
    chat.env("http_proxy", format!("http://ann:hunter2@{address}"))
        .env("HOME", &folder.0);
    outcome(chat).prints("I count: 1 2 - done\n");
    let asked = asked.join().unwrap();
    assert!(
        asked.starts_with("CONNECT far.example:80 HTTP/1.1\n"),
        "{asked}"
    );
    assert!(
        asked.contains("\nProxy-Authorization: Basic YW5uOmh1bnRlcjI="),
        "{asked}"
    );
}

#[test]
fn every_client_says_that_the_proxy_refuses() {
    let folder = Folder::new("proxies-refusal");
    let url = "wss://far.example";
    for args in [
        &["bot", "chat", "--username", "ann", "--url", url, "hi"][..],
        &["bot", "--username", "ann", "--url", url],
        &["gateway", "chat", "--url", url, "hi"],
        &["router", "client", "--url", url],
        &["agent", "chat", url, "hi"],
        &["daemon", "run", "--url", url, "hi"],
        &[
            "daemon",
            "run",
            "--url",
            "https://far.example",
            "--sse",
            "hi",
        ],
    ] {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        let (address, asked) = proxy(refusal, None);
        let mut command = switchboard(args[0], &args[1..]);
        command
            .env("HOME", &folder.0)
            .env("SNEK_PASSWORD", "secret");
        command.env("ALL_PROXY", format!("http://ann:hunter2@{address}"));
        let (_, err) = outcome(command).ends(3);
        let words = format!(
            "could not reach far.example:443 through the proxy {address}: \
             it answered 407 Proxy Authentication Required; check user and password in its URL"
        );
        assert!(err.contains(&words), "{args:?}: {err}");
        assert!(!err.contains("hunter2"), "{args:?}: {err}");
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("CONNECT far.example:443 "),
            "{args:?}: {asked}"
        );
    }
}
