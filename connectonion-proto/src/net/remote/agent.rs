//! [`Client`]: a remote agent.

use std::ops::Deref;
use std::sync::Arc;

use rpc_core::net::{Consumer, Link, LinkState};
use rpc_core::{CallError, CloseReason, Instant, Refused, Str};

use super::protocol::{ClientProtocol, Item, Shared};
use super::run::Run;
use super::signer::RequestSigner;
use crate::auth::{Address, Draft};
use crate::client::{CallValue, ClientConn, Resume, Taken};
use crate::frame::{
    AdminAction, AdminRequest, AdminResult, ErrorFrame, Input, Mode, ModeChange, OnboardSubmit,
    OnboardSuccess, PromptUpdate, Response, SessionStatus,
};
use crate::id::SessionId;

/// The result of a request to the host.
type Outcome<T> = Result<T, CallError<ErrorFrame>>;

/// A handle to a remote agent, and the conversation with it. Cheap to clone; dropping the last
/// clone and the last [`Run`] closes the connection, and a running agent goes on without it.
///
/// While there is no connection, everything fails at once with [`Refused::NotConnected`] (or
/// [`Refused::NotReady`] before CONNECTED); [`ready`](Link::ready) waits. No prompt is ever sent
/// twice.
#[derive(Clone)]
pub struct Client {
    pub(super) link: Link<ClientProtocol>,
    pub(super) shared: Arc<Shared>,
    pub(super) signer: RequestSigner,
}

impl Client {
    /// Sends a prompt. It starts a run, or, if the agent is running, it is an interjection and the
    /// [`Run`] is the current one.
    ///
    /// ```
    /// use connectonion_proto::net::{Client, RunEvent};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let host = host().await?;
    /// # let url = host.url();
    /// # tokio::spawn(host.run());
    /// # let signer = connectonion_proto::auth::Signer::generate()?;
    /// # let options = connectonion_proto::client::ClientConfig::default();
    /// # let (agent, _, connection) = connectonion_proto::net::connect(&url, signer, options).await?;
    /// # tokio::spawn(connection.run());
    /// let mut run = agent.chat("What is new?").await;
    /// while let Some(event) = run.next().await {
    ///     match event? {
    ///         RunEvent::Step(step) => println!("{}", step.event.kind.tag()),
    ///         RunEvent::AskUser(ask) => ask.answer("yes").await?,
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// let answer = agent.chat("And in one word?").await.finish().await?.result;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A prompt that cannot be sent reports so in the run's first item.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the prompt may or may not be sent.
    pub async fn chat(&self, prompt: impl Into<Str>) -> Run {
        self.send(Input::new(prompt)).await
    }

    /// Sends a prompt with images and files.
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn send(&self, input: Input) -> Run {
        let (items, consumer) = self.shared.ends();
        let run = self.run(consumer);
        let shared = Arc::clone(&self.shared);
        let started = self
            .link
            .command(move |conn, now| shared.lock().input(conn, &input, items, now));
        match started.await {
            Ok(Ok(())) => run,
            Ok(Err(refused)) | Err(refused) => run.refused(refused),
        }
    }

    /// Sends a prompt to a running agent, without listening to the run. It resolves when the host
    /// has the prompt, which the agent may read later. If no agent is running, the prompt starts a
    /// run.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Remote`] if it came too late for the run
    /// ([`ErrorFrame::retryable`]). Sending it again is only safe if [`CallError::delivery`] says
    /// that it was not sent.
    ///
    /// # Cancel safety
    /// If the future is dropped, the prompt may have been sent.
    pub async fn interject(&self, prompt: impl Into<Str>) -> Outcome<Taken> {
        let input = Input::new(prompt);
        let reply = self
            .link
            .call_with("INPUT", move |conn, now| conn.input(&input, now));
        match reply.await? {
            CallValue::Input(taken) => Ok(taken),
            _ => Err(unexpected()),
        }
    }

    /// Listens to the current run, also of another client. A restarted program resumes this way.
    ///
    /// The [`Run`] begins with the steps that wait among the [`Events`](super::Events), which do not come
    /// there then, or with the open question if that was taken from there. So a program that takes no
    /// step before it attaches gets everything after [`Resume::last_msg_id`]. Steps that were dropped
    /// before, because the events were full or are gone, are [`RunEvent::Lagged`](super::RunEvent).
    ///
    /// If no run is going on, this is the last one if its end still waits among the events. Otherwise it
    /// waits until a run starts, or ends with [`Refused::UnknownId`] at the next CONNECTED.
    #[must_use]
    pub fn attach(&self) -> Run {
        self.run(self.shared.listen())
    }

    /// Answers a question of the agent that this program knows by its id only, from an earlier
    /// connection or an earlier program. Otherwise, use the methods of
    /// [`Question`](super::Question).
    ///
    /// # Errors
    /// As for [`Question::respond`](super::Question::respond).
    ///
    /// # Cancel safety
    /// If the future was polled, the answer is sent.
    pub async fn respond(&self, response: Response) -> Result<(), Refused> {
        self.shared.respond(response).await
    }

    /// Changes the agent's mode; `turns` is for [`Mode::Ulw`].
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent. [`Refused::is_retryable`] says whether it may succeed later. Safe
    /// to repeat.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the change may or may not be sent.
    pub async fn set_mode(&self, mode: Mode, turns: Option<u64>) -> Result<(), Refused> {
        let change = ModeChange { mode, turns };
        self.order(move |conn, now| conn.set_mode(&change, now))
            .await
    }

    /// Changes the goal of the mode `ulw`.
    ///
    /// # Errors
    /// As for [`set_mode`](Self::set_mode).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the change may or may not be sent.
    pub async fn update_prompt(&self, prompt: impl Into<Str>) -> Result<(), Refused> {
        let update = PromptUpdate::new(prompt);
        self.order(move |conn, now| conn.update_prompt(&update, now))
            .await
    }

    /// Stops the agent after its current step. The run ends with an output.
    ///
    /// # Errors
    /// As for [`set_mode`](Self::set_mode).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the request may or may not be sent.
    pub async fn interrupt(&self) -> Result<(), Refused> {
        self.order(ClientConn::interrupt).await
    }

    /// Submits an invite code for onboarding. After a success the client is connected
    /// automatically; after a refusal another try is allowed over the same connection.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Remote`] for an invalid code, [`Refused::NotReady`] if the
    /// host has not asked for onboarding.
    ///
    /// # Cancel safety
    /// If the future is dropped, the code may have been accepted.
    pub async fn onboard(&self, invite_code: &str) -> Outcome<OnboardSuccess> {
        self.submit(|draft| draft.with("invite_code", invite_code))
            .await
    }

    /// Claims during onboarding that this amount was paid. Hosts should verify it.
    ///
    /// # Errors
    /// As for [`onboard`](Self::onboard).
    ///
    /// # Cancel safety
    /// As for [`onboard`](Self::onboard).
    pub async fn onboard_by_payment(&self, amount: f64) -> Outcome<OnboardSuccess> {
        self.submit(|draft| draft.with("payment", amount)).await
    }

    async fn submit(&self, add: impl FnOnce(Draft) -> Draft) -> Outcome<OnboardSuccess> {
        let submit = OnboardSubmit::from(self.signer.sign("ONBOARD_SUBMIT", add)?);
        let reply = self.link.call_with("ONBOARD_SUBMIT", move |conn, now| {
            conn.onboard(&submit, now)
        });
        match reply.await? {
            CallValue::Onboarded(success) => Ok(success),
            _ => Err(unexpected()),
        }
    }

    /// Requests the status of a session. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the host's own error. Repeating is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn status(&self, session_id: impl Into<SessionId>) -> Outcome<SessionStatus> {
        let id = session_id.into();
        let reply = self
            .link
            .call_with("SESSION_STATUS", move |conn, now| conn.query(id, now));
        match reply.await? {
            CallValue::Status(status) => Ok(status),
            _ => Err(unexpected()),
        }
    }

    /// Sends an administrator's command about a client, or for [`AdminAction::Add`] and
    /// [`AdminAction::Remove`] about an administrator.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Remote`] if this client is not an administrator.
    ///
    /// # Cancel safety
    /// If the future is dropped, the command may have been carried out.
    pub async fn admin(&self, action: AdminAction, whom: &str) -> Outcome<AdminResult> {
        let about = match action {
            AdminAction::Add | AdminAction::Remove => "admin_id",
            _ => "client_id",
        };
        let add = |draft: Draft| draft.with(about, whom);
        let signed = self.signer.sign(action.name(), add)?;
        let request = AdminRequest::new(action, signed);
        let reply = self
            .link
            .call_with("ADMIN", move |conn, now| conn.admin(&request, now));
        match reply.await? {
            CallValue::Admin(result) => Ok(result),
            _ => Err(unexpected()),
        }
    }

    /// Leaves the session and opens a new one, with the same conversation or an empty one. A
    /// current run is left alone, and ends here with [`CloseReason::Local`]. Without a connection
    /// this takes effect with the next one.
    ///
    /// Hosts up to 1.2.1 consider a session running for an hour after its agent has failed, and
    /// [queue](super::RunEvent::Queued) every prompt in vain: use this method to leave such a
    /// session.
    ///
    /// # Errors
    /// The reason, if there will be no further connection.
    ///
    /// # Cancel safety
    /// If the future is dropped, the new session is opened anyway.
    pub async fn new_session(&self, keep_conversation: bool) -> Result<(), CloseReason> {
        self.shared.lock().session.renew(keep_conversation);
        let mut states = self.link.states();
        let LinkState::Ready { generation: old } = *states.borrow_and_update() else {
            return Ok(());
        };
        self.link.reconnect(old);
        let is_over = |state: &LinkState| match state {
            LinkState::Ready { generation } => *generation > old,
            other => other.ended().is_some(),
        };
        let state = states.wait_for(is_over).await;
        let ended = state.map(|state| state.ended().cloned());
        match ended {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            Err(_) => Err(CloseReason::TaskGone),
        }
    }

    /// Returns this client's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.identity.address()
    }

    /// What another program needs to go on ([`ClientConfig::resume`](crate::client::ClientConfig::resume)): the
    /// session, the conversation as of the last run that ended, and the last step that was taken from
    /// a [`Run`]. [Save](Resume::save) it after you have shown that step: what comes after it is sent
    /// again to the other program, and so is a question that is open. Steps among the
    /// [`Events`](super::Events) do not count.
    #[must_use]
    pub fn session(&self) -> Resume {
        self.shared.lock().session.resume().clone()
    }

    fn run(&self, items: Consumer<Item>) -> Run {
        Run {
            items: Some(items),
            end: None,
            shared: Arc::clone(&self.shared),
            _link: self.link.clone(),
        }
    }

    fn order<F>(&self, order: F) -> impl Future<Output = Result<(), Refused>> + Send + use<'_, F>
    where
        F: FnOnce(&mut ClientConn, Instant) -> Result<(), Refused> + Send + 'static,
    {
        let sent = self.link.command(order);
        async { sent.await? }
    }
}

/// Returns the error for a result of another kind, which does not happen.
fn unexpected() -> CallError<ErrorFrame> {
    CallError::Remote(ErrorFrame::new("an answer to something else"))
}

/// Methods of every client: [`ready`](Link::ready), [`state`](Link::state), [`close`](Link::close),
/// [`drain`](Link::drain) and what else a [`Link`] offers.
impl Deref for Client {
    type Target = Link<ClientProtocol>;

    fn deref(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}

rpc_core::debug_fields!([] Client, this => {
    state: this.link.state(),
    session: this.shared.lock().session,
});
