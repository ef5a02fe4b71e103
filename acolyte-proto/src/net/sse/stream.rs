//! [`SseStream`]: one chat over HTTP, driven by the task that takes its updates.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use rpc_core::Instant;
use rpc_core::net::http::compressed;
use rpc_core::net::telemetry::{CallSpan, Side};
use rpc_core::net::time;
use rpc_core::{CloseReason, Delivery, Refused};
use tokio::sync::mpsc;

use super::Service;
use crate::client::{ChatUpdate, ClientConfig, Outcome, StreamChat};
use crate::http::{EVENT_STREAM, stream_url};
use crate::net::SYSTEM;
use crate::net::protocol::call_outcome;

/// The number of unread updates beyond which nothing more is read.
const WAITING: usize = 64;

/// A chat over HTTP.
pub(in crate::net) struct SseStream {
    /// Reads the response; `None` once it has ended or was given up.
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    updates: mpsc::Receiver<ChatUpdate>,
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
            work: Some(Box::pin(work(service, request, config, sender))),
            updates,
            span: Some(CallSpan::new(Side::Client, SYSTEM, "chat.start")),
        }
    }

    /// Creates a chat that is not sent.
    pub(super) fn refused(refused: Refused) -> Self {
        let (sender, updates) = mpsc::channel(1);
        // There is room for one.
        let _ = sender.try_send(ChatUpdate::Ended(Outcome::NotSent(refused)));
        Self {
            work: None,
            updates,
            span: None,
        }
    }

    /// Waits for the first update.
    pub(super) async fn begin(&mut self) {
        poll_fn(|cx| {
            self.poll_work(cx);
            match self.work.is_some() && self.updates.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) {
        self.work.take_if(|work| work.as_mut().poll(cx).is_ready());
    }

    /// Hangs up. Updates already received can still be taken.
    pub(in crate::net) fn abort(&mut self) {
        self.work = None;
    }

    pub(in crate::net) fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<ChatUpdate> {
        self.poll_work(cx);
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
    service: Arc<Service>,
    mut request: Request<Bytes>,
    config: Arc<ClientConfig>,
    updates: mpsc::Sender<ChatUpdate>,
) {
    let mut line = match service.open(stream_url, &mut request).await {
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
    let mut chat = StreamChat::new(&config, time::now());
    let (mut body, mut head) = (None, None);
    let answer = before(chat.poll_timeout(), line.send(request)).await;
    let status = answer
        .as_ref()
        .and_then(|it| Some(it.as_ref().ok()?.status().as_u16()));
    service.answered(&node, status);
    match answer {
        Some(Ok(answer)) => {
            let (parts, rest) = answer.into_parts();
            let is_stream = is_stream(&parts.headers);
            chat.handle_head(parts.status.as_u16(), is_stream, time::now());
            body = Some((rest, is_stream && parts.status == StatusCode::OK));
            head = Some(parts.headers);
        }
        Some(Err(reason)) => chat.handle_end(Some(reason)),
        None => chat.handle_timeout(time::now()),
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
