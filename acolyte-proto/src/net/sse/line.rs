//! [`Line`]: one HTTP connection with one exchange, driven by the task that waits for the response.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Context;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rpc_core::CloseReason;
use rpc_core::net::DialError;
use rpc_core::net::ws::Socket;

type Running = Pin<Box<http1::Connection<TokioIo<Socket>, Full<Bytes>>>>;

/// A connection. Dropping it hangs up.
pub(super) struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Running>,
}

impl Line {
    pub(super) async fn over(socket: Socket) -> Result<Self, DialError> {
        let opened = http1::handshake(TokioIo::new(socket)).await;
        let (sender, connection) =
            opened.map_err(|error| DialError::Handshake(error.to_string()))?;
        Ok(Self {
            sender,
            connection: Some(Box::pin(connection)),
        })
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, CloseReason> {
        let mut answer = pin!(self.sender.send_request(request));
        let connection = &mut self.connection;
        let answer = poll_fn(|cx| {
            drive(connection, cx);
            answer.as_mut().poll(cx)
        });
        answer.await.map_err(|error| failed(&error))
    }

    /// Returns the next piece of the response; `None` at its end.
    pub(super) async fn next(&mut self, body: &mut Incoming) -> Option<Result<Bytes, CloseReason>> {
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

    /// Reads the whole response and returns its first `max` bytes.
    pub(super) async fn read(
        &mut self,
        mut body: Incoming,
        max: usize,
    ) -> Result<Vec<u8>, CloseReason> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next(&mut body).await {
            let piece = piece?;
            let room = max.saturating_sub(whole.len()).min(piece.len());
            whole.extend_from_slice(piece.get(..room).unwrap_or_default());
            if room < piece.len() {
                break;
            }
        }
        Ok(whole)
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
    CloseReason::Transport {
        message: error.to_string(),
    }
}
