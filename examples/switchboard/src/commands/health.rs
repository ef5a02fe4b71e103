//! [`health`]: asks a server whether it is well, for the health checks of containers.

use std::time::Duration;

use rpc_core::net::DialError;
use rpc_core::net::ws::WsDialer;
use rpc_core::{CloseReason, ConnectErrorKind};

use crate::cli::{self, Failure, Service, Urls};

/// How long the whole exchange may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of an answer.
const MAX: usize = 1024 * 1024;

/// Sends `GET` to an `http(s)://` URL, and succeeds if the answer has a status of 200 to 299. Takes at most
/// 5 s.
///
/// # Errors
/// [`Failure`]: of usage if the URL is invalid; else if there is no answer or one with another status.
/// Trying again is safe.
///
/// # Cancel safety
/// Dropping the future closes the connection.
pub(crate) async fn health(url: &str) -> Result<(), Failure> {
    check(url, TIMEOUT).await
}

async fn check(url: &str, timeout: Duration) -> Result<(), Failure> {
    cli::check_url(url, "http")?;
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    let dialer = WsDialer::new(url).map_err(Failure::usage)?;
    let asked = tokio::time::timeout(timeout, dialer.get(path, MAX)).await;
    let reason = match asked {
        Ok(Ok((200..=299, _))) => return Ok(()),
        Ok(Ok((status, _))) => CloseReason::Connect {
            kind: ConnectErrorKind::Status(status),
            message: format!("it answered {status}"),
            retryable: true,
        },
        Ok(Err(error)) => CloseReason::from(&error),
        Err(_) => CloseReason::from(&DialError::TimedOut { after: timeout }),
    };
    let service = Service {
        name: "a healthy server",
        start: "",
        credentials: "",
    };
    // Containers know one code of failure.
    let url = Urls::from(url.to_owned());
    Err(Failure::new(cli::unreached(&service, &url, &reason)))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
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
        let outcome = outcome.map_err(|failure| {
            failure
                .to_string()
                .replace(url.trim_end_matches("?full"), "URL")
        });
        (outcome, request)
    }

    #[tokio::test]
    async fn a_server_that_answers_200_is_healthy() {
        let (outcome, request) = ask("HTTP/1.1 200 OK\r\n\r\nok").await;
        assert_eq!(outcome, Ok(()));
        assert!(request.starts_with("GET /health?full HTTP/1."), "{request}");
    }

    #[tokio::test]
    async fn any_other_answer_is_a_failure() {
        for (answer, message) in [
            ("HTTP/1.1 503 Busy\r\n\r\n", "503; try again later"),
            (
                "HTTP/1.1 302 Found\r\n\r\n",
                "302; use the URL that it names",
            ),
            ("SSH-2.0-OpenSSH 2\r\n", "may listen elsewhere"),
            ("", ""),
        ] {
            let error = ask(answer).await.0.unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_absent_or_silent_is_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/health", listener.local_addr().unwrap());
        let silent = check(&url, Duration::from_millis(50)).await;
        assert!(
            silent
                .unwrap_err()
                .to_string()
                .contains("not connected within 50ms")
        );
        drop(listener);
        assert!(health(&url).await.is_err());
    }

    #[tokio::test]
    async fn only_http_urls_are_asked() {
        for url in ["ftp://localhost/health", "localhost:7200", "/health", ""] {
            assert_eq!(health(url).await.unwrap_err().code(), cli::USAGE);
        }
    }
}
