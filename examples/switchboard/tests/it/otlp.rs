//! Traces reach an OpenTelemetry collector, with its names and without what was said.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use crate::programs::{Folder, PATIENCE, Running, outcome, switchboard};

/// Takes one request as a collector does, and returns its first line and its body.
fn collect(listener: &TcpListener) -> (String, Vec<u8>) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut stream = reader.into_inner();
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    (first, body)
}

#[test]
fn spans_are_sent_when_the_program_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let (sender, collected) = mpsc::channel();
    thread::spawn(move || sender.send(collect(&listener)));
    let folder = Folder::new("otlp");

    let mut command = switchboard("gateway", &["--port", "0"]);
    command.env("HOME", &folder.0);
    let (_gateway, url) = Running::serve(command);
    let mut chat = switchboard("gateway", &["chat", "--url", &url, "count to 1 secretly"]);
    chat.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    assert_eq!(outcome(chat).0, Some(0));

    let (request, body) = collected.recv_timeout(PATIENCE).unwrap();
    assert!(request.starts_with("POST /v1/traces "), "{request}");
    let body = String::from_utf8_lossy(&body);
    for part in [
        "switchboard",
        "exoclaw/chat.send",
        "rpc.system",
        "rpc.method",
    ] {
        assert!(body.contains(part), "no {part} in {body}");
    }
    assert!(!body.contains("secretly"), "{body}");
}
