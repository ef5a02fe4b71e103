//! A chat over HTTP: `POST /v1/chat/stream`, answered with server-sent events.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use rpc_core::net::server::{Body, reply};
use rpc_core::net::{Cancellation, Canceller, entropy};
use rpc_core::sync::Mutex;
use tokio::task::JoinSet;

use super::agent::Agent;
use super::daemon::Daemon;
use super::pages::TEXT;
use super::queue::{End, ResponseQueue};
use super::run::{ChatReply, Client, Origin, Output};
use crate::error::AppError;
use crate::frame::ChatRequest;
use crate::http::{KEEP_ALIVE, StreamFrame, read_body, refusal};
use crate::server::{SHUTTING_DOWN, complete};

/// The body of the response. Dropping it ends the chat.
struct Stream {
    queue: Arc<ResponseQueue>,
    keep_alive: Duration,
    /// The task of the chat, which is aborted with this, and its signal.
    _work: (JoinSet<()>, Canceller),
}

/// Starts a chat. It is neither queued nor a task.
pub(super) fn stream<A: Agent>(
    shared: Arc<Daemon<A>>,
    body: &Bytes,
    client: Client,
) -> Response<Body> {
    let Ok(request) = read_body(body, &shared.connection.limits) else {
        return reply(StatusCode::BAD_REQUEST, TEXT, refusal(body));
    };
    let queue = Arc::new(ResponseQueue::new(&shared.connection.limits));
    let (canceller, cancellation) = Cancellation::new();
    let stopping = client.parts.extensions.get().cloned();
    let origin = Origin {
        client,
        checklist: shared.connection.checklist,
        output: Output::Body {
            queue: Arc::clone(&queue),
            tools: Mutex::default(),
        },
    };
    let run = ChatReply {
        origin: Arc::new(origin),
        cancellation,
    };
    let keep_alive = shared.stream_keep_alive;
    let work = work(shared, stopping, Arc::clone(&queue), run, request);
    let mut task = JoinSet::new();
    task.spawn(work);
    let state = Stream {
        queue,
        keep_alive,
        _work: (task, canceller),
    };
    let pieces = stream::unfold(state, |state| async { Some((state.next().await?, state)) });
    let mut answer = Response::new(Body::stream(pieces));
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Works on the chat until it ends, or until the shutdown of the server has taken long enough.
async fn work<A: Agent>(
    shared: Arc<Daemon<A>>,
    stopping: Option<Cancellation>,
    queue: Arc<ResponseQueue>,
    run: ChatReply,
    request: ChatRequest,
) {
    let stopped = async {
        match stopping {
            Some(stopping) => stopping.into_cancelled().await,
            None => pending().await,
        }
        tokio::time::sleep(shared.shutdown_timeout).await;
    };
    let end = tokio::select! {
        end = shared.work(run, request) => end,
        () = stopped => Err(Box::new(AppError::failed(SHUTTING_DOWN))),
    };
    queue.end(end);
}

impl Stream {
    async fn next(&self) -> Option<Bytes> {
        let quiet = tokio::time::sleep(self.keep_alive);
        tokio::select! {
            biased;
            bytes = self.queue.next_bytes(write_end) => bytes,
            () = quiet => Some(Bytes::from_static(KEEP_ALIVE.as_bytes())),
        }
    }
}

/// Writes the end as the last frame of the stream.
fn write_end(end: &End, bytes: &mut String) {
    let frame = match end {
        Ok(reply) => StreamFrame::Done(reply.clone()),
        Err(error) => StreamFrame::Error(complete(error, entropy())),
    };
    if let Err(error) = frame.write(bytes) {
        tracing::error!(%error, "the end of a chat could not be written");
    }
}
