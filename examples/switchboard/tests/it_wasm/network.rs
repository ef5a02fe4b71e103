//! HTTP, as far as it is granted.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

/// A server that gives every connection the same answer, and says what it was asked. An empty
/// answer stands for none: the connection stays open.
async fn server(answer: &'static str) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let length = socket.read(&mut request).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&request[..length]).into_owned();
            if tell.send(text).is_err() {
                return;
            }
            if answer.is_empty() {
                open.push(socket);
            } else {
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        }
    });
    (port, asked)
}

fn granted(host: &str) -> PluginEntry {
    with_capabilities(entry("fetch"), vec![format!("http:{host}")])
}

const HI: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";

#[tokio::test]
async fn a_granted_host_can_be_asked() {
    let (port, mut asked) = server(HI).await;
    let tools = load([granted("127.0.0.1")]).await;
    let input = format!(
        r#"{{"url":"http://127.0.0.1:{port}/x?y","headers":{{"x-tool":"1","host":"evil"}}}}"#
    );
    assert_eq!(tools.call("fetch", &input).await, ToolOutput::new("hi"));
    let request = asked.recv().await.unwrap().to_ascii_lowercase();
    assert!(request.starts_with("get /x?y http/1.1\r\n"), "{request}");
    assert!(request.contains("x-tool: 1"), "{request}");
    assert!(
        request.contains(&format!("host: 127.0.0.1:{port}")),
        "{request}"
    );
}

#[tokio::test]
async fn other_hosts_are_not_asked() {
    let (port, mut asked) = server(HI).await;
    for entry in [entry("fetch"), granted("localhost")] {
        let tools = load([entry]).await;
        for (url, host) in [
            (format!("http://127.0.0.1:{port}/"), "127.0.0.1"),
            (format!("http://localhost@127.0.0.1:{port}/"), "127.0.0.1"),
            (format!("http://127.1:{port}/localhost"), "127.0.0.1"),
            ("file:///etc/hostname".to_owned(), ""),
        ] {
            let output = tools.call("fetch", &format!(r#"{{"url":"{url}"}}"#)).await;
            let why = format!("HTTP request to {host} is not allowed");
            assert_eq!(output, failed(&why), "{url}");
        }
    }
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn a_redirect_does_not_lead_to_another_host() {
    let (port, mut asked) = server(concat!(
        "HTTP/1.1 302 Found\r\nlocation: http://localhost/\r\n",
        "content-length: 0\r\nconnection: close\r\n\r\n"
    ))
    .await;
    let tools = load([granted("127.0.0.1")]).await;
    let input = format!(r#"{{"url":"http://127.0.0.1:{port}/"}}"#);
    // The tool breaks down at a status that is not 200.
    let output = tools.call("fetch", &input).await;
    assert_eq!(
        output,
        failed("wasm trap: wasm `unreachable` instruction executed")
    );
    assert!(asked.recv().await.is_some());
    assert!(asked.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn does_not_wait_for_a_silent_server() {
    let (port, mut asked) = server("").await;
    let limits = impatient().with_concurrency(1);
    let tools = load([with_limits(granted("127.0.0.1"), limits)]).await;
    let input = format!(r#"{{"url":"http://127.0.0.1:{port}/"}}"#);
    // The second gets the place of the first. Until it has, it is told to wait.
    for _ in 0..2 {
        while asked.try_recv().is_err() {
            let output = tools.call("fetch", &input).await;
            assert!(output == failed("timeout") || output == failed("busy"));
        }
    }
}
