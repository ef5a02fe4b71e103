//! [`health`]: asks a server whether it is well, for the health checks of containers.

use std::io;
use std::time::Duration;

use http::Uri;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::Failure;

/// How long the whole exchange may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest status line, in bytes.
const MAX_LINE: u64 = 1024;

/// Sends `GET` to an `http://` URL, and succeeds if the answer has a status of 200 to 299. Takes at most
/// 5 s.
///
/// # Errors
/// [`Failure`]: of usage if the URL is invalid; else if there is no answer or one with another status.
/// Trying again is safe.
///
/// # Cancel safety
/// Dropping the future closes the connection.
pub async fn health(url: &str) -> Result<(), Failure> {
    check(url, TIMEOUT).await
}

async fn check(url: &str, timeout: Duration) -> Result<(), Failure> {
    if !url.contains("://") {
        let message = format!("{url:?} is not a URL: did you mean http://{url}?");
        return Err(Failure::usage(message));
    }
    let uri: Uri = url
        .parse()
        .map_err(|error| Failure::usage(format_args!("{url}: {error}")))?;
    if uri.scheme_str() != Some("http") {
        return Err(Failure::usage(format_args!("{url}: not an http:// URL")));
    }
    let line = tokio::time::timeout(timeout, status_line(&uri))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|error| Failure::new(format_args!("{url}: {error}")))?;
    match line.trim_end().split_once(' ') {
        Some((version, status)) if version.starts_with("HTTP/1.") && status.starts_with('2') => {
            Ok(())
        }
        Some((version, status)) if version.starts_with("HTTP/1.") => {
            Err(Failure::new(format_args!("{url}: {status}")))
        }
        _ => Err(Failure::new(format_args!("{url}: no HTTP/1 answer"))),
    }
}

async fn status_line(uri: &Uri) -> io::Result<String> {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(80);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut socket = TcpStream::connect(format!("{host}:{port}")).await?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    let mut answer = BufReader::new(socket.take(MAX_LINE));
    answer.read_line(&mut line).await?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Asks a server that answers with this text, and returns what it was asked.
    async fn ask(answer: &str) -> (Result<(), String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/health?full", listener.local_addr().unwrap());
        let serve = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1024];
            let size = socket.read(&mut request).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
            request.truncate(size);
            String::from_utf8(request).unwrap()
        };
        let (outcome, request) = tokio::join!(health(&url), serve);
        let outcome = outcome.map_err(|failure| failure.to_string().replace(&url, "URL"));
        (outcome, request)
    }

    #[tokio::test]
    async fn a_server_that_answers_200_is_healthy() {
        let (outcome, request) = ask("HTTP/1.1 200 OK\r\n\r\nok").await;
        assert_eq!(outcome, Ok(()));
        assert!(
            request.starts_with("GET /health?full HTTP/1.1\r\nHost: 127.0.0.1:"),
            "{request}"
        );
    }

    #[tokio::test]
    async fn any_other_answer_is_a_failure() {
        for (answer, message) in [
            ("HTTP/1.1 503 Busy\r\n\r\n", "URL: 503 Busy"),
            ("HTTP/1.1 302 Found\r\n\r\n", "URL: 302 Found"),
            ("SSH-2.0-OpenSSH 2\r\n", "URL: no HTTP/1 answer"),
            ("", "URL: no HTTP/1 answer"),
        ] {
            assert_eq!(ask(answer).await.0, Err(message.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_server_that_is_absent_or_silent_is_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/health", listener.local_addr().unwrap());
        let silent = check(&url, Duration::from_millis(50)).await;
        assert!(silent.unwrap_err().to_string().contains("timed out"));
        drop(listener);
        assert!(health(&url).await.is_err());
    }

    #[tokio::test]
    async fn only_http_urls_are_asked() {
        for url in ["https://localhost/health", "localhost:7200", "/health", ""] {
            assert_eq!(health(url).await.unwrap_err().code(), super::super::USAGE);
        }
    }
}
