//! [`HttpConnection`]: one HTTP connection with one exchange, driven by the task that waits for the response.

use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Context;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Body as _;
pub(super) use hyper::body::Incoming as Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rpc_core::CloseReason;
use rpc_core::net::DialError;
pub(super) use rpc_core::net::Node as HttpNode;
use rpc_core::net::ws::Socket;

use super::{Endpoint, Service};

type Running = Pin<Box<http1::Connection<TokioIo<Socket>, Full<Bytes>>>>;

impl Service {
    /// Opens a connection for a request, and addresses the request to the node that was reached.
    pub(super) async fn open(
        &self,
        endpoint: Endpoint,
        request: &mut Request<Bytes>,
    ) -> Result<HttpConnection, DialError> {
        let (socket, node) = self.dialer.open().await?;
        if let Some(target) = self.target(node.index(), endpoint) {
            *request.uri_mut() = target;
        }
        request
            .headers_mut()
            .extend(self.dialer.node_headers(&node)?);
        HttpConnection::over(socket, node).await
    }

    /// Lets the next request go to another node.
    pub(super) fn leave(&self, node: &HttpNode) {
        self.dialer.leave(node);
    }
}

/// Returns the target of a request to a URL that was already checked: its path.
pub(super) fn target(url: &str) -> Uri {
    let uri = url.parse::<Uri>();
    let path = uri
        .ok()
        .and_then(|uri| uri.path_and_query()?.as_str().parse().ok());
    path.unwrap_or_else(|| Uri::from_static("/"))
}

/// A connection. Dropping it hangs up.
pub(super) struct HttpConnection {
    node: HttpNode,
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Running>,
}

impl HttpConnection {
    async fn over(socket: Socket, node: HttpNode) -> Result<Self, DialError> {
        let opened = http1::handshake(TokioIo::new(socket)).await;
        let (sender, connection) =
            opened.map_err(|error| DialError::Handshake(error.to_string()))?;
        Ok(Self {
            node,
            sender,
            connection: Some(Box::pin(connection)),
        })
    }

    pub(super) fn node(&self) -> HttpNode {
        self.node.clone()
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Bytes>,
    ) -> Result<Response<Body>, CloseReason> {
        let mut answer = pin!(self.sender.send_request(request.map(Full::new)));
        let connection = &mut self.connection;
        let answer = poll_fn(|cx| {
            drive(connection, cx);
            answer.as_mut().poll(cx)
        });
        answer.await.map_err(|error| failed(&error))
    }

    /// Returns the next piece of the response; `None` at its end.
    pub(super) async fn next(&mut self, body: &mut Body) -> Option<Result<Bytes, CloseReason>> {
        loop {
            let frame = poll_fn(|cx| {
                drive(&mut self.connection, cx);
                Pin::new(&mut *body).poll_frame(cx)
            });
            match frame.await? {
                Ok(frame) => {
                    // Trailers mean nothing here.
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(failed(&error))),
            }
        }
    }
}

fn drive(connection: &mut Option<Running>, cx: &mut Context<'_>) {
    if let Some(running) = connection
        && running.as_mut().poll(cx).is_ready()
    {
        // The answer reports the error, too.
        *connection = None;
    }
}

fn failed(error: &hyper::Error) -> CloseReason {
    if error.is_incomplete_message() {
        return CloseReason::Lost;
    }
    if error.is_parse() {
        return CloseReason::Violation {
            message: format!("it does not speak HTTP/1.1: {error}"),
        };
    }
    // Its own text is "connection error", whatever the system says.
    let cause = error.source().map(ToString::to_string);
    CloseReason::Transport {
        message: cause.unwrap_or_else(|| error.to_string()),
    }
}
