//! [`SseStream`]: one chat over HTTP, driven by the task that takes its updates.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use rpc_core::Instant;
use rpc_core::net::http::compressed;
use rpc_core::net::telemetry::{CallSpan, Side};
use rpc_core::net::time;
use rpc_core::{CloseReason, Delivery, Refused};
use tokio::sync::mpsc;

use super::{Endpoint, Service};
use crate::client::{ChatUpdate, ClientConfig, Outcome, StreamChat};
use crate::http::EVENT_STREAM;
use crate::net::SYSTEM;
use crate::net::protocol::call_outcome;

/// The number of unread updates beyond which nothing more is read.
const WAITING: usize = 64;

/// A chat over HTTP.
pub(in crate::net) struct SseStream {
    /// Reads the response; `None` once it has ended or was given up.
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    updates: mpsc::Receiver<ChatUpdate>,
    /// An update that was awaited but not yet taken.
    first: Option<ChatUpdate>,
    /// `None` for a chat that is not sent.
    span: Option<CallSpan>,
}

impl SseStream {
    pub(super) fn new(
        service: Arc<Service>,
        request: Request<Bytes>,
        config: Arc<ClientConfig>,
    ) -> Self {
        let (sender, updates) = mpsc::channel(WAITING);
        Self {
            work: Some(Box::pin(async move {
                work(&service, request, &config, &sender).await;
            })),
            updates,
            first: None,
            span: Some(CallSpan::new(Side::Client, SYSTEM, "chat.start")),
        }
    }

    /// Creates a chat that is not sent.
    pub(super) fn refused(refused: Refused) -> Self {
        let (_, updates) = mpsc::channel(1);
        Self {
            work: None,
            updates,
            first: Some(ChatUpdate::Ended(Outcome::NotSent(refused))),
            span: None,
        }
    }

    /// Waits for the first update.
    pub(super) async fn begin(&mut self) {
        if self.first.is_none() {
            let first = poll_fn(|cx| self.poll_update(cx)).await;
            self.first = Some(first);
        }
    }

    /// Hangs up. Updates already received can still be taken.
    pub(in crate::net) fn abort(&mut self) {
        self.work = None;
    }

    pub(in crate::net) fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<ChatUpdate> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(first);
        }
        if let Some(work) = &mut self.work
            && work.as_mut().poll(cx).is_ready()
        {
            self.work = None;
        }
        let update = ready!(self.updates.poll_recv(cx));
        // The work leaves an end behind, unless it was given up.
        let update = update.unwrap_or(ChatUpdate::Ended(Outcome::Aborted { error: None }));
        if let (ChatUpdate::Ended(outcome), Some(span)) = (&update, &mut self.span) {
            span.end(call_outcome(outcome));
        }
        Poll::Ready(update)
    }
}

async fn work(
    service: &Service,
    mut request: Request<Bytes>,
    config: &ClientConfig,
    updates: &mpsc::Sender<ChatUpdate>,
) {
    let mut line = match service.open(Endpoint::Stream, &mut request).await {
        Ok(opened) => opened,
        Err(error) => {
            let outcome = Outcome::Closed {
                reason: CloseReason::from(&error),
                delivery: Delivery::NotSent,
            };
            // A client that has gone needs no answer.
            let _ = updates.send(ChatUpdate::Ended(outcome)).await;
            return;
        }
    };
    let node = line.node();
    let mut chat = StreamChat::new(config, time::now());
    let (mut body, mut head) = (None, None);
    match before(chat.poll_timeout(), line.send(request)).await {
        Some(Ok(answer)) => {
            let is_stream = is_stream(answer.headers());
            service.answered(&node, Some(answer.status().as_u16()));
            let status = answer.status().as_u16();
            chat.handle_head(status, is_stream, time::now());
            let (parts, rest) = answer.into_parts();
            head = Some(parts.headers);
            body = Some((rest, is_stream && status == 200));
        }
        Some(Err(reason)) => {
            service.answered(&node, None);
            chat.handle_end(Some(reason));
        }
        None => {
            service.answered(&node, None);
            chat.handle_timeout(time::now());
        }
    }
    loop {
        while let Some(update) = chat.poll_update() {
            if updates.send(update).await.is_err() {
                return;
            }
        }
        let Some((body, is_chat)) = body.as_mut().filter(|_| !chat.has_ended()) else {
            return;
        };
        match before(chat.poll_timeout(), line.next(body)).await {
            Some(Some(Ok(bytes))) => {
                // Told by its first piece, if not by its head.
                let unread = head.take().and_then(|head| compressed(&head, &bytes));
                match unread {
                    Some(message) if *is_chat => {
                        chat.handle_end(Some(CloseReason::Transport { message }));
                    }
                    Some(words) => {
                        chat.handle_bytes(words.as_bytes(), time::now());
                        chat.handle_end(None);
                    }
                    None => chat.handle_bytes(&bytes, time::now()),
                }
            }
            Some(Some(Err(reason))) => {
                service.answered(&node, None);
                chat.handle_end(Some(reason));
            }
            Some(None) => chat.handle_end(None),
            None => chat.handle_timeout(time::now()),
        }
    }
}

/// Returns the result of `work`, if it comes before the deadline. A result that is already there
/// counts, however late it is taken.
async fn before<F: Future>(deadline: Option<Instant>, work: F) -> Option<F::Output> {
    let sleep = async {
        match deadline {
            Some(deadline) => time::sleep_until(deadline).await,
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        output = work => Some(output),
        () = sleep => None,
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(EVENT_STREAM))
}
