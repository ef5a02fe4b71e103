//! [`Client`]: an agent somewhere else.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_core::net::{DrainReport, Link, LinkState};
use rpc_core::{CallError, CloseReason, Json, Refused, Str};

use super::protocol::{ClientProtocol, RequestSigner};
use super::run::Run;
use super::session::ClientSession;
use crate::auth::{Address, Draft};
use crate::client::{ClientConn, ClientState, Reply, Resume, Taken};
use crate::frame::{
    AdminAction, AdminRequest, AdminResult, ErrorFrame, Input, Mode, ModeChange, OnboardSubmit,
    OnboardSuccess, PromptUpdate, Response, SessionStatus,
};

/// How a question to the host ends.
type Outcome<T> = Result<T, CallError<ErrorFrame>>;

/// An agent somewhere else, and the conversation with it. Cheap to clone; dropping the last clone and
/// the last [`Run`] closes the connection, and an agent that is at work goes on without it.
///
/// While there is no connection, everything fails at once with [`Refused::NotConnected`] (or
/// [`Refused::NotReady`] before CONNECTED); [`ready`](Self::ready) waits. No prompt is ever sent
/// twice.
#[derive(Clone)]
pub struct Client {
    link: Link<ClientProtocol>,
    session: Arc<ClientSession>,
    signer: RequestSigner,
}

impl Client {
    pub(super) const fn new(
        link: Link<ClientProtocol>,
        session: Arc<ClientSession>,
        signer: RequestSigner,
    ) -> Self {
        Self {
            link,
            session,
            signer,
        }
    }

    /// Says something. A run begins with it, or, if the agent is at work, it is an interjection and
    /// the [`Run`] is the one that goes on.
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
    /// # let options = connectonion_proto::net::AgentOptions::default();
    /// # let (agent, _, connection) = connectonion_proto::net::connect(&url, signer, options)?;
    /// # tokio::spawn(connection.run());
    /// # agent.ready().await?;
    /// let mut run = agent.input("What is new?").await;
    /// while let Some(event) = run.next().await {
    ///     match event? {
    ///         RunEvent::Step(step) => println!("{}", step.event.kind.tag()),
    ///         RunEvent::AskUser(ask) => ask.answer("yes").await?,
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// let answer = agent.input("And in one word?").await.output().await?.result;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A prompt that cannot be sent says so in the run's first item.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: the prompt may or may not be sent.
    pub async fn input(&self, prompt: impl Into<Str>) -> Run {
        self.send(Input::new(prompt)).await
    }

    /// Says something with images and files.
    ///
    /// # Cancel safety
    /// As for [`input`](Self::input).
    pub async fn send(&self, input: Input) -> Run {
        let (items, consumer) = self.session.ends();
        let run = self.run(consumer);
        let session = Arc::clone(&self.session);
        let started = self.link.command(move |conn: &mut ClientConn, now| {
            let starts = conn.state() == ClientState::Ready;
            match conn.input(&input, now) {
                Ok(id) => {
                    session.begin(id, &input, items, starts);
                    Ok(())
                }
                Err(refused) => Err(refused),
            }
        });
        match started.await {
            Ok(Ok(())) => run,
            Ok(Err(refused)) | Err(refused) => run.refused(refused),
        }
    }

    /// Says something to an agent that is at work, without listening to the run. It resolves when
    /// the host has taken it, which is not when the agent does. If no agent is at work, a run begins
    /// with it.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Remote`] if it came too late for the run
    /// ([`ErrorFrame::retryable`]). Saying it again is only safe if [`CallError::delivery`] says that
    /// it was not sent.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; it may have been said.
    pub async fn interject(&self, prompt: impl Into<Str>) -> Outcome<Taken> {
        let input = Input::new(prompt);
        let reply = self.link.call(move |conn, now| conn.input(&input, now));
        match reply.await? {
            Reply::Input(taken) => Ok(taken),
            _ => Err(unexpected()),
        }
    }

    /// Listens to the run that goes on, whoever has started it, from now on. Called before the client
    /// is connected, it is the run in which the session is found then, with everything that came
    /// after [`Resume::last_msg_id`]: this is how a program that was started anew goes on. If there
    /// is none, it ends with [`Refused::UnknownId`] at the next CONNECTED, or stays until somebody
    /// starts one.
    #[must_use]
    pub fn attach(&self) -> Run {
        self.session.listen(|items| self.run(items))
    }

    /// Listens to the run that goes on, from now on; `None` if none does. For a run of somebody else that
    /// was noticed by its events: unlike [`attach`](Self::attach), it never waits for a run to begin.
    ///
    /// # Errors
    /// [`Refused::NotConnected`] while there is no connection, [`Refused::Closed`]. Safe to repeat.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn follow(&self) -> Result<Option<Run>, Refused> {
        let (items, consumer) = self.session.ends();
        let run = self.run(consumer);
        let session = Arc::clone(&self.session);
        let follows = self.link.command(move |conn, _| {
            let goes_on = conn.is_running();
            if goes_on {
                session.follow(items);
            }
            goes_on
        });
        Ok(follows.await?.then_some(run))
    }

    /// Answers a question of the agent that this program knows by its id only: of an earlier
    /// connection, or an earlier program. Others are answered by themselves ([`Question`](super::Question)).
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent. [`Refused::is_retryable`] says whether it may succeed later.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: the answer may or may not be sent.
    pub async fn respond(&self, response: Response) -> Result<(), Refused> {
        self.order(move |conn, now| conn.respond(&response, now))
            .await
    }

    /// Lets the agent work in another mode; `turns` is for [`Mode::Ulw`].
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: it may or may not be sent.
    pub async fn set_mode(&self, mode: Mode, turns: Option<u64>) -> Result<(), Refused> {
        let mut change = ModeChange::new(mode);
        change.turns = turns;
        self.order(move |conn, now| conn.set_mode(&change, now))
            .await
    }

    /// Gives the mode `ulw` another goal.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: it may or may not be sent.
    pub async fn update_prompt(&self, prompt: impl Into<Str>) -> Result<(), Refused> {
        let update = PromptUpdate::new(prompt);
        self.order(move |conn, now| conn.update_prompt(&update, now))
            .await
    }

    /// Lets the agent stop after what it is doing. The run ends with an output.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: it may or may not be sent.
    pub async fn interrupt(&self) -> Result<(), Refused> {
        self.order(ClientConn::interrupt).await
    }

    /// Offers an invite code at the host's gate. After a success the client is connected by itself;
    /// after a refusal another try is allowed, over the same connection.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Remote`] for a code that is none,
    /// [`Refused::NotReady`] if the host has not asked.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the code may have been taken.
    pub async fn onboard(&self, invite_code: &str) -> Outcome<OnboardSuccess> {
        let draft = self.signer.draft().with("invite_code", invite_code);
        self.submit(draft).await
    }

    /// Says at the host's gate that this amount was paid. Hosts that know better check it.
    ///
    /// # Errors
    /// As for [`onboard`](Self::onboard).
    ///
    /// # Cancel safety
    /// As for [`onboard`](Self::onboard).
    pub async fn onboard_by_payment(&self, amount: f64) -> Outcome<OnboardSuccess> {
        let draft = self.signer.draft().with("payment", amount);
        self.submit(draft).await
    }

    async fn submit(&self, draft: Draft) -> Outcome<OnboardSuccess> {
        let submit = OnboardSubmit::new(self.signer.sign(draft)?);
        let reply = self.link.call(move |conn, now| conn.onboard(&submit, now));
        match reply.await? {
            Reply::Onboarded(success) => Ok(success),
            _ => Err(unexpected()),
        }
    }

    /// How a session stands. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn status(&self, session_id: impl Into<Str>) -> Outcome<SessionStatus> {
        let id = session_id.into();
        let reply = self.link.call(move |conn, now| conn.query(id, now));
        match reply.await? {
            Reply::Status(status) => Ok(status),
            _ => Err(unexpected()),
        }
    }

    /// Asks for what only administrators may: about a client, or for [`AdminAction::Add`] and
    /// [`AdminAction::Remove`] about an administrator.
    ///
    /// # Errors
    /// Every [`CallError`]; [`CallError::Remote`] if this client is no administrator.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; it may have been done.
    pub async fn admin(&self, action: AdminAction, whom: &str) -> Outcome<AdminResult> {
        let about = match action {
            AdminAction::Add | AdminAction::Remove => "admin_id",
            _ => "client_id",
        };
        // Newer hosts want to see signed what the command is.
        let draft = self.signer.draft().with("type", action.name());
        let signed = self.signer.sign(draft.with(about, whom))?;
        let request = AdminRequest::new(action, signed);
        let reply = self.link.call(move |conn, now| conn.admin(&request, now));
        match reply.await? {
            Reply::Admin(result) => Ok(result),
            _ => Err(unexpected()),
        }
    }

    /// Leaves the session and opens a new one, with the same conversation or from the beginning. A run
    /// that goes on is left alone, and ends here with [`CloseReason::Local`]. Without a connection it
    /// takes effect with the next one.
    ///
    /// Hosts up to 1.2.1 take a session for running for an hour after its agent has failed, and
    /// [queue](super::RunEvent::Queued) every prompt for nobody: this is the way out.
    ///
    /// # Errors
    /// The reason, if there will be no connection any more.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the new session is opened.
    pub async fn new_session(&self, keep_conversation: bool) -> Result<(), CloseReason> {
        self.session.renew(keep_conversation);
        let mut states = self.link.watch();
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

    /// This client's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// What another program needs to go on ([`AgentOptions::resume`](super::AgentOptions)): the
    /// session, the conversation as of the last run that ended, and the last step that was taken from
    /// a [`Run`]. Keep it after you have shown that step: what comes after it is told again to the
    /// other program, and so is a question that is open. Steps that came as
    /// [`Event::Step`](super::Event::Step) do not count.
    #[must_use]
    pub fn session(&self) -> Resume {
        self.session.resume()
    }

    /// The conversation in the middle of a run, if the host tells it (`session_sync`).
    #[must_use]
    pub fn live_session(&self) -> Option<Json> {
        self.session.live()
    }

    /// Waits until the client is let in and returns the number of the connection, from 1. At a gate
    /// this lasts until somebody has [onboarded](Self::onboard).
    ///
    /// # Errors
    /// The reason, if there will be no connection any more; a refused signature for one.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ready(&self) -> Result<u64, CloseReason> {
        self.link.ready().await
    }

    /// Waits until there will be no connection any more.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn closed(&self) -> CloseReason {
        self.link.closed().await
    }

    /// Where the connection stands.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.link.state()
    }

    /// Closes with code 1000. An agent that is at work goes on.
    pub fn close(&self) {
        self.link.close();
    }

    /// Takes nothing new, waits up to `deadline` for the run that goes on, then closes.
    ///
    /// # Cancel safety
    /// The drain goes on if the future is dropped.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        self.link.drain(deadline).await
    }

    /// The link below, for what this type does not offer.
    #[must_use]
    pub const fn link(&self) -> &Link<ClientProtocol> {
        &self.link
    }

    fn run(&self, items: rpc_core::net::Consumer<super::run::Item>) -> Run {
        Run::new(items, Arc::clone(&self.session), self.link.clone())
    }

    fn order<F>(&self, order: F) -> impl Future<Output = Result<(), Refused>> + Send + use<'_, F>
    where
        F: FnOnce(&mut ClientConn, Instant) -> Result<(), Refused> + Send + 'static,
    {
        let sent = self.link.command(order);
        async { sent.await? }
    }
}

/// What was asked is answered by its kind.
fn unexpected() -> CallError<ErrorFrame> {
    CallError::Remote(ErrorFrame::new("an answer to something else"))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.link.state())
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
