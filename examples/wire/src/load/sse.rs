//! [`serve`]: the calls of one connection over HTTP: each is a request of its own, and the answer to a chat
//! is read from its server-sent events.

use std::sync::Arc;

use acolyte_proto::client::{ChatUpdate, Failure, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::SseClient;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rpc_core::CallError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::connection::{TIMED_OUT, pause};
use super::run::{Shared, lock};
use super::schedule::Call;
use super::talk::{Kind, error_answer};

/// Asks for the status until it is answered, which says that the server is there and what its model is;
/// then makes calls until their sender is gone. Says on `tried` when the first attempt is over.
pub(super) async fn serve(
    shared: Arc<Shared>,
    index: usize,
    client: SseClient,
    mut calls: mpsc::UnboundedReceiver<Call>,
    tried: oneshot::Sender<()>,
) {
    let mut tried = Some(tried);
    sleep(shared.start_of(index)).await;
    let model = loop {
        let asked = client.status().await;
        let failed = asked.as_ref().err().map(of_call);
        match asked {
            Ok(status) => break status.model.to_string(),
            Err(_) => lock(&shared.stats).refused.add(&failed.unwrap_or_default()),
        }
        tried.take().map(|tried| tried.send(()));
        if !pause(&shared, &mut calls).await {
            return;
        }
    };
    let model = shared.scenario.model().unwrap_or(&model);
    lock(&shared.stats).opened += 1;
    lock(&shared.dispatch).opened(index);
    shared.freed.notify_one();
    tried.take().map(|tried| tried.send(()));
    let mut flights = FuturesUnordered::new();
    let mut is_over = false;
    loop {
        tokio::select! {
            call = calls.recv(), if !is_over => match call {
                Some(call) => flights.push(make(&shared, &client, model, call)),
                None => is_over = true,
            },
            Some(()) = flights.next() => {
                lock(&shared.dispatch).finished(index);
                shared.freed.notify_one();
            }
            else => return,
        }
    }
}

/// Makes a call.
async fn make(shared: &Shared, client: &SseClient, model: &str, call: Call) {
    let sent = shared.now();
    lock(&shared.stats).sent(call, sent);
    let left = (call.due + shared.patience).saturating_sub(sent);
    let answer = async {
        match shared.scenario.kind() {
            Kind::Chat => chat(shared, client, model, call).await,
            _ => client.status().await.map(drop).map_err(|it| of_call(&it)),
        }
    };
    let answer = timeout(left, answer).await;
    let mut stats = lock(&shared.stats);
    match answer {
        Ok(Ok(())) => stats.answered(call, sent, shared.now()),
        Ok(Err(kind)) => stats.failed(call, &kind),
        Err(_) => stats.failed(call, TIMED_OUT),
    }
}

/// Reads a chat to its end.
async fn chat(shared: &Shared, client: &SseClient, model: &str, call: Call) -> Result<(), String> {
    let request = ChatRequest::new(shared.scenario.prompt(), model);
    let mut chat = client.start_chat(request).await;
    let mut has_begun = false;
    while let Some(update) = chat.next().await {
        match update {
            ChatUpdate::Event(Event::TextDelta(_)) if !has_begun => {
                has_begun = true;
                lock(&shared.stats).marked(call.due, shared.now());
            }
            ChatUpdate::Ended(outcome) => return of_outcome(outcome),
            _ => {}
        }
    }
    Err("connection lost".to_owned())
}

/// Names the kind of a failed chat. One that is done with an error is answered, as over a WebSocket.
fn of_outcome(outcome: Outcome) -> Result<(), String> {
    Err(match outcome {
        Outcome::Done(_) | Outcome::Failed(Failure::Model(_)) => return Ok(()),
        Outcome::Failed(Failure::Server(error)) => {
            error_answer(error.code.as_ref().unwrap_or(&error.message))
        }
        Outcome::Refused { error } => error_answer(&error.to_string()),
        Outcome::TimedOut { .. } => TIMED_OUT.to_owned(),
        Outcome::Closed { reason, .. } => format!("connection lost: {reason}"),
        Outcome::NotSent(refused) => refused.to_string(),
        _ => "unreadable answer".to_owned(),
    })
}

/// Names the kind of a failed question.
fn of_call<E: std::fmt::Display>(error: &CallError<E>) -> String {
    match error {
        CallError::Remote(error) => error_answer(&error.to_string()),
        CallError::TimedOut { .. } => TIMED_OUT.to_owned(),
        CallError::Closed { reason, .. } => format!("connection lost: {reason}"),
        other => other.to_string(),
    }
}
