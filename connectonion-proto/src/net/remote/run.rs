//! [`Run`]: an agent's work on a prompt, step by step.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use rpc_core::net::{Consumer, Link, QueueConfig, Queued, queue};
use rpc_core::{CallError, CloseReason, Delivery, Refused};

use super::human::{DeclineAll, Human};
use super::protocol::{ClientProtocol, Item, Shared};
use super::question::Question;
use crate::client::{End, Step};
use crate::frame::{ApprovalNeeded, AskUser, ErrorFrame, EventKind, PlanReview, UlwTurnsReached};
use crate::id::EventId;

/// An item of a [`Run`].
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent {
    /// A step of the agent. Open questions come as the variants below; a question as a step is
    /// [answered](Step::answered), for example by another device.
    Step(Step),
    /// The agent asks the user, and waits.
    AskUser(Question<AskUser>),
    /// A tool waits for the user's approval.
    Approval(Question<ApprovalNeeded>),
    /// A plan waits for the user's review.
    PlanReview(Question<PlanReview>),
    /// The turns of the mode `ulw` are used up, and the agent waits.
    TurnsReached(Question<UlwTurnsReached>),
    /// An agent was already running: the prompt is queued, and a step `user_input` with this id
    /// says when the agent reads it. This [`Run`] now listens to that agent's run.
    Queued {
        /// The host's id for the prompt.
        id: EventId,
    },
    /// This many steps were dropped, because they were not read fast enough. The conversation in
    /// the output has their results.
    Lagged(u64),
}

/// An agent's work on a prompt: a stream of [`RunEvent`]s that ends after the outcome. An error is
/// the last item; [`outcome`](Self::outcome) returns a successful end.
///
/// It survives reconnects: missed events are delivered then, repeated ones are dropped. A run that
/// has ended meanwhile ends with its answer from the conversation. If the host does not know it, it
/// ends with [`CallError::Closed`], whose [`delivery`](CallError::delivery) says whether the prompt
/// may have arrived; it is never sent again automatically.
///
/// Dropping it stops listening; the agent goes on. [`interrupt`](super::Client::interrupt) stops
/// it.
///
/// ```
/// # use connectonion_proto::client::ClientConfig;
/// # use connectonion_proto::net::{self, RunEvent};
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let host = host().await?;
/// # let url = host.url();
/// # tokio::spawn(host.run());
/// # let me = connectonion_proto::auth::Signer::from_seed(&[1; 32]);
/// # let (agent, _events, connection) = net::connect(&url, me, ClientConfig::default()).await?;
/// # tokio::spawn(connection.run());
/// let mut run = agent.chat("hello").await;
/// while let Some(event) = run.next().await {
///     match event? {
///         RunEvent::Step(step) => println!("step: {}", step.event.kind.tag()),
///         RunEvent::AskUser(ask) => ask.answer("yes").await?,
///         other => println!("{other:?}"),
///     }
/// }
/// assert_eq!(run.finish().await?.result, "echo: hello");
/// # Ok(())
/// # }
/// ```
pub struct Run {
    /// `None` once the end was read.
    pub(super) items: Option<Consumer<Item>>,
    pub(super) end: Option<End>,
    pub(super) shared: Arc<Shared>,
    /// Keeps the connection open.
    pub(super) _link: Link<ClientProtocol>,
}

impl Run {
    /// Ends a run that could not be started.
    pub(super) fn refused(mut self, refused: Refused) -> Self {
        let (items, consumer) = queue(QueueConfig::default());
        items.push(Item::End(Box::new(Err(refused.into()))), 0);
        self.items = Some(consumer);
        self
    }

    /// Returns the next event; an `Err` is the last one, followed by `None`.
    ///
    /// # Errors
    /// Every [`CallError`]. [`CallError::Remote`] is the agent's or the host's error. Sending the
    /// prompt again is only safe if [`CallError::delivery`] says that it was not sent.
    ///
    /// # Cancel safety
    /// Cancel-safe: an event is either returned or stays queued.
    pub async fn next(&mut self) -> Option<Result<RunEvent, CallError<ErrorFrame>>> {
        StreamExt::next(self).await
    }

    /// Reads to the end, while `human` sees the steps and answers the questions. Steps wait for
    /// `human`.
    ///
    /// # Errors
    /// As for [`next`](Self::next), and [`CallError::Refused`] if an answer could not be sent.
    ///
    /// # Cancel safety
    /// Cancel-safe, except for the question that is being answered: it stays open, but this handle
    /// no longer knows it.
    pub async fn complete(&mut self, human: &impl Human) -> End {
        while let Some(event) = self.next().await {
            let answered = match event? {
                RunEvent::Step(step) => {
                    human.step(&step).await;
                    Ok(())
                }
                RunEvent::AskUser(ask) => ask.answer(human.ask_user(ask.question()).await).await,
                RunEvent::Approval(ask) => ask.decide(human.approve(ask.question()).await).await,
                RunEvent::PlanReview(ask) => {
                    ask.reply(human.review_plan(ask.question()).await).await
                }
                RunEvent::TurnsReached(ask) => {
                    ask.decide(human.turns_reached(ask.question()).await).await
                }
                RunEvent::Queued { .. } | RunEvent::Lagged(_) => Ok(()),
            };
            match answered {
                // The run's own end says why.
                Ok(()) | Err(Refused::Closed) => {}
                Err(refused) => return Err(refused.into()),
            }
        }
        match &self.end {
            Some(end) => end.clone(),
            // The stream has ended, so there is an end.
            None => Err(gone()),
        }
    }

    /// Reads to the end. Questions of the agent are declined, as [`Human`] does by default: use
    /// [`complete`](Self::complete) to answer them.
    ///
    /// # Errors
    /// As for [`complete`](Self::complete).
    ///
    /// # Cancel safety
    /// As for [`complete`](Self::complete).
    pub async fn finish(&mut self) -> End {
        self.complete(&DeclineAll).await
    }

    /// Returns how the run ended; `None` until its end was read.
    #[must_use]
    pub const fn outcome(&self) -> Option<&End> {
        self.end.as_ref()
    }

    fn event(&self, step: Step) -> RunEvent {
        self.shared.lock().session.mark_delivered(&step);
        let shared = || Arc::downgrade(&self.shared);
        match &step.event.kind {
            _ if step.answered => RunEvent::Step(step),
            EventKind::AskUser(it) => RunEvent::AskUser(Question::new(it.clone(), step, shared())),
            EventKind::ApprovalNeeded(it) => {
                RunEvent::Approval(Question::new(it.clone(), step, shared()))
            }
            EventKind::PlanReview(it) => {
                RunEvent::PlanReview(Question::new(it.clone(), step, shared()))
            }
            EventKind::UlwTurnsReached(it) => {
                RunEvent::TurnsReached(Question::new(*it, step, shared()))
            }
            _ => RunEvent::Step(step),
        }
    }
}

fn gone() -> CallError<ErrorFrame> {
    CallError::Closed {
        reason: CloseReason::TaskGone,
        delivery: Delivery::Unknown,
    }
}

impl Stream for Run {
    type Item = Result<RunEvent, CallError<ErrorFrame>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(items) = &mut self.items else {
            return Poll::Ready(None);
        };
        let event = match ready!(items.poll_queued(cx)) {
            Some(Queued::Item(Item::Step(step))) => Ok(self.event(step)),
            Some(Queued::Item(Item::Queued { id })) => Ok(RunEvent::Queued { id }),
            Some(Queued::Lagged(steps) | Queued::Item(Item::Lagged(steps))) => {
                Ok(RunEvent::Lagged(steps))
            }
            Some(Queued::Item(Item::End(end))) => Err(*end),
            // Every listener gets an end, so this one was never registered.
            _ => Err(Err(gone())),
        };
        let end = match event {
            Ok(event) => return Poll::Ready(Some(Ok(event))),
            Err(end) => end,
        };
        self.items = None;
        let last = end.as_ref().err().cloned().map(Err);
        self.end = Some(end);
        Poll::Ready(last)
    }
}

// Prints the state, never the contents.
rpc_core::debug_fields!([] Run, this => { ended: this.end.is_some() });
