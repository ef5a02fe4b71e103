//! [`SseClient`]: chats over HTTP and server-sent events.

#[cfg_attr(target_family = "wasm", path = "fetch.rs")]
mod connection;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Uri};
use rpc_core::net::http::{compressed, refusal_text};
use rpc_core::net::telemetry::{CallOutcome, CallSpan, Side};
use rpc_core::net::time::timeout;
use rpc_core::net::ws::{WsDialer, urls};
use rpc_core::net::{DialError, Dialer as _, Node};
use rpc_core::{CallError, CloseReason, Delivery, Refused, Secret};

use super::SYSTEM;
use super::chat::Chat;
use super::url::{ConnectError, dialer_with, each};
use crate::auth::Offer;
use crate::client::{ClientConfig, check_request};
use crate::codec::encode;
use crate::error::RpcError;
use crate::frame::{ChatRequest, Status};
use crate::http::{EVENT_STREAM, status_url, stream_url};
use connection::{Body, HttpConnection, HttpNode, target};
pub(super) use stream::SseStream;

/// The number of bytes of a refusal that are read.
const MAX_REFUSAL: usize = 4 * 1024;

/// A client for chats and questions over HTTP. Cheap to clone. Every chat has its own connection,
/// so chats never wait for one another, and there is nothing to keep open or to spawn.
///
/// The chats are the same [`Chat`]s that a [`Client`](super::Client) returns, with the same
/// updates, but they are not tasks, so a chat is lost with its connection. A chat progresses only
/// while its updates are read.
///
/// ```
/// use acolyte_proto::frame::ChatRequest;
/// use acolyte_proto::client::ClientConfig;
/// use acolyte_proto::net::SseClient;
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let url = server(acolyte_proto::auth::Auth::open()).await?;
/// let client = SseClient::new(&url, ClientConfig::default())?; // http://127.0.0.1:6767
/// let mut chat = client.chat(ChatRequest::new("hi", "gpt-5-mini")).await;
/// while let Some(update) = chat.next().await {
///     println!("{update:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SseClient {
    service: Arc<Service>,
    config: Arc<ClientConfig>,
}

/// The servers of a client.
#[derive(Clone)]
struct Service {
    dialer: WsDialer,
    /// Their URLs, in the order of the dialer.
    servers: Vec<Secret>,
}

/// Returns the URL of an endpoint for the URL of a server.
type Endpoint = fn(&str) -> String;

impl Service {
    /// Returns the target of a request to the URL with this index.
    fn target(&self, url: usize, endpoint: Endpoint) -> Option<Uri> {
        Some(target(&endpoint(self.servers.get(url)?.expose())))
    }

    /// Notes how a server answered: one that is out of order is left for the next one.
    fn answered(&self, node: &HttpNode, status: Option<u16>) {
        if status.is_none_or(|status| status >= 500) {
            self.leave(node);
        }
    }
}

impl SseClient {
    /// Creates a client for the server at this URL, its own or that of its WebSocket; several URLs,
    /// separated by commas, are the nodes of one service. Nothing is sent yet.
    ///
    /// Requests stay with one node. Once it is not reached, loses a connection or answers with a
    /// status of 500 or more, the *next* request goes to another one; none is sent twice.
    ///
    /// # Errors
    /// As for [`dialer`](super::dialer).
    pub fn new(url: &str, config: impl Into<Arc<ClientConfig>>) -> Result<Self, ConnectError> {
        let config = config.into();
        let offer = Offer::for_http(config.api_key.as_ref());
        let dialer = dialer_with(&each(url, stream_url), &config, offer)?;
        let servers = urls(url).map(Secret::from).collect();
        let service = Arc::new(Service { dialer, servers });
        Ok(Self { service, config })
    }

    /// Returns the node of the last connection; `None` before the first one.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.service.dialer.node()
    }

    /// Changes the dialer, which has headers, TLS, resolver and order, but not its URLs.
    #[must_use]
    pub fn with_dialer(mut self, change: impl FnOnce(WsDialer) -> WsDialer) -> Self {
        let Service { dialer, servers } = Service::clone(&self.service);
        let dialer = change(dialer);
        self.service = Arc::new(Service { dialer, servers });
        self
    }

    /// Starts a chat and waits for the head of the response. A chat that cannot be sent or is
    /// refused reports so in its only update.
    ///
    /// # Cancel safety
    /// Dropping the future, or the [`Chat`], closes the connection: servers of this crate then stop
    /// the chat, known ones let it run to its end.
    pub async fn chat(&self, request: ChatRequest) -> Chat {
        self.start(request, self.config.clone()).await
    }

    /// Like [`chat`](Self::chat), with its own limit on how long the chat waits for each
    /// next frame; `None` is for ever, for a person who can abort.
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn chat_within(&self, idle: Option<Duration>, request: ChatRequest) -> Chat {
        let config = ClientConfig {
            chat_idle_timeout: idle,
            ..ClientConfig::clone(&self.config)
        };
        self.start(request, Arc::new(config)).await
    }

    async fn start(&self, request: ChatRequest, config: Arc<ClientConfig>) -> Chat {
        let mut stream = match self.chat_request(&request) {
            Ok(request) => SseStream::new(self.service.clone(), request, config),
            Err(refused) => SseStream::refused(refused),
        };
        stream.begin().await;
        Chat::over_sse(stream)
    }

    /// Requests the server's status. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; the kind [`Status`](crate::error::ErrorKind::Status) for a status that is not a success.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn status(&self) -> Result<Box<Status>, CallError<RpcError>> {
        let mut span = CallSpan::new(Side::Client, SYSTEM, "status.get");
        let asked = timeout(self.config.call_timeout, self.ask_status()).await;
        let asked = asked.unwrap_or(Err(CallError::TimedOut {
            delivery: Delivery::Unknown,
        }));
        span.end(CallOutcome::of(asked.is_ok()));
        asked
    }

    async fn ask_status(&self) -> Result<Box<Status>, CallError<RpcError>> {
        let request = self.request(Method::GET, Bytes::new());
        let mut request = request.map_err(CallError::Refused)?;
        let opened = self.service.open(status_url, &mut request).await;
        let mut line = opened.map_err(|error| unreachable(&error))?;
        let node = line.node();
        let lost = |reason| {
            self.service.answered(&node, None);
            CallError::Closed {
                reason,
                delivery: Delivery::Unknown,
            }
        };
        let response = line.send(request).await.map_err(lost)?;
        let status = response.status().as_u16();
        self.service.answered(&node, Some(status));
        let max = match status {
            200 => self.config.limits.max_message_bytes,
            _ => MAX_REFUSAL,
        };
        let (head, body) = response.into_parts();
        let body = read(&mut line, body, max).await.map_err(lost)?;
        let unread = compressed(&head.headers, &body);
        let text = String::from_utf8_lossy(&body);
        if let (200, Some(message)) = (status, &unread) {
            return Err(CallError::Closed {
                reason: CloseReason::Transport {
                    message: message.clone(),
                },
                delivery: Delivery::Delivered,
            });
        }
        if status != 200 {
            let words = unread.unwrap_or_else(|| refusal_text(head.status, &head.headers, &body));
            return Err(CallError::Remote(RpcError::of_status(status, words)));
        }
        match Status::decode(&text, &self.config.limits) {
            Ok(status) => Ok(Box::new(status)),
            Err(error) => Err(CallError::Remote(RpcError::unreadable(&error))),
        }
    }

    fn chat_request(&self, request: &ChatRequest) -> Result<Request<Bytes>, Refused> {
        check_request(request)?;
        let body = encode(request)?.into_bytes();
        let (size, max) = (body.len(), self.config.limits.max_message_bytes);
        if size > max {
            return Err(Refused::TooLarge { size, max });
        }
        let mut request = self.request(Method::POST, body)?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let stream = HeaderValue::from_static(EVENT_STREAM);
        request.headers_mut().insert(ACCEPT, stream);
        Ok(request)
    }

    /// Returns a request to a node that is not yet known.
    fn request(&self, method: Method, body: Bytes) -> Result<Request<Bytes>, Refused> {
        let invalid = |why: String| Refused::Invalid { what: "URL", why };
        let headers = self.service.dialer.headers();
        headers.map_err(|error| invalid(error.to_string()))?;
        let request = Request::builder().method(method);
        let request = request.header(ACCEPT_ENCODING, "identity");
        let request = request.body(body);
        request.map_err(|error| invalid(error.to_string()))
    }
}

/// Reads a whole response and returns its first `max` bytes.
async fn read(
    line: &mut HttpConnection,
    mut body: Body,
    max: usize,
) -> Result<Vec<u8>, CloseReason> {
    let mut whole = Vec::new();
    while let Some(piece) = line.next(&mut body).await {
        let piece = piece?;
        let room = max.saturating_sub(whole.len()).min(piece.len());
        whole.extend_from_slice(piece.get(..room).unwrap_or_default());
        if room < piece.len() {
            break;
        }
    }
    Ok(whole)
}

fn unreachable(error: &DialError) -> CallError<RpcError> {
    CallError::Closed {
        reason: CloseReason::from(error),
        delivery: Delivery::NotSent,
    }
}

rpc_core::debug_fields!([] SseClient, this => { dialer: this.service.dialer });
