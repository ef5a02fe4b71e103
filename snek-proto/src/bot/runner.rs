//! [`Bot`]: logs in, routes messages to a [`Handler`], reconnects, and ends gracefully.

use std::future::Future;
use std::sync::Arc;

use rpc_core::CloseReason;
use rpc_core::net::{
    Cancellation, Dialer, Dispatch, DrainReport, EventDispatcher, LinkEvent, LinkState,
};
use tokio::sync::watch;

use super::answers::Decision;
use super::config::BotConfig;
use super::context::{Context, Shared};
use super::handler::{Handler, Notice};
use super::lifecycle::State;
use super::partial::Partials;
use super::typing;
use crate::client::ClientEvent;
use crate::error::BotError;
use crate::frame::{Final, Message, User};
use crate::id::ChannelUid;
use crate::net::{Client, Connection, Events, connect_with};
use crate::permission::should_respond;
use crate::routing::{Route, pong, route};
use crate::sanitize::rewrite_drive_urls;

/// How long the last commands of handlers may take to reach the connection.
const LAST_COMMANDS: std::time::Duration = std::time::Duration::from_secs(1);

/// What is said once before [`max_answers`](BotConfig::max_answers) makes a bot silent.
const STOPPED: &str = "(I stop answering here for now: two bots could go on like this for ever. I \
    answer again when somebody else has written, or in ten minutes.)";

/// A bot that logs in, routes messages to a [`Handler`], and reconnects.
///
/// ```
/// use snek_proto::bot::{Bot, BotConfig, Context, Handler};
/// use snek_proto::error::BotError;
/// use snek_proto::frame::Message;
///
/// struct Echo;
///
/// impl Handler for Echo {
///     async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
///         cx.reply(format!("hi {}", message.user_nick)).await?;
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend = snek_proto::net::MemoryBackend::new().with_channel("general", "General").open();
/// # let server = snek_proto::net::Server::bind("127.0.0.1:0", backend, Default::default()).await?;
/// # let url = server.url();
/// # tokio::spawn(server.run());
/// let config = BotConfig::new("mybot", "mypassword");
/// let bot = Bot::new(&url, config, Echo)?; // ws://127.0.0.1:8080/rpc.ws
/// # let mut state = bot.lifecycle();
/// # let the_end = async move {
/// #     let _ = state.wait_for(|state| *state == snek_proto::bot::State::Running).await;
/// # };
/// bot.run_until(the_end).await?; // Ctrl-C, a signal, a timer
/// # Ok(())
/// # }
/// ```
pub struct Bot<H> {
    handler: Arc<H>,
    shared: Arc<Shared>,
    events: Events,
    connection: Connection,
    canceller: rpc_core::net::Canceller,
    state: watch::Sender<State>,
}

impl<H: Handler> Bot<H> {
    /// Creates a bot for the server at `url` (`ws://`, or `wss://` with feature `tls`).
    ///
    /// # Errors
    /// [`BotError::ValidationError`] for an invalid URL, and for one that would send the password
    /// to another machine without encryption, unless
    /// [`insecure`](crate::client::ClientConfig::insecure) allows it.
    #[cfg(feature = "ws")]
    pub fn new(url: &str, config: BotConfig, handler: H) -> Result<Self, BotError> {
        let dialer =
            crate::net::dialer(url, &config.client).map_err(|error| BotError::ValidationError {
                what: "url".into(),
                why: error.to_string(),
            })?;
        Ok(Self::with_dialer(dialer, config, handler))
    }

    /// Creates a bot that connects through this dialer.
    #[must_use]
    pub fn with_dialer(dialer: impl Dialer, config: BotConfig, handler: H) -> Self {
        let (client, events, connection) = connect_with(dialer, config.client.clone());
        let (canceller, cancellation) = Cancellation::new();
        let handler = Arc::new(handler);
        let notified = Arc::clone(&handler);
        let notices = Box::new(move |notice: &Notice| notified.on_notice(notice));
        let shared = Shared::new(client, config, cancellation, notices);
        let (state, _) = watch::channel(State::Initializing);
        Self {
            handler,
            shared: Arc::new(shared),
            events,
            connection,
            canceller,
            state,
        }
    }

    /// Returns the client, for use outside of handlers: its [`node`](rpc_core::net::Link::node),
    /// say. [`close`](rpc_core::net::Link::close) ends the bot.
    #[must_use]
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    /// Returns the bot's state in the specification's lifecycle, as it changes. The last state is
    /// [`State::Shutdown`], or [`State::Error`] if the bot has failed. The channel closes once
    /// everything is released.
    #[must_use]
    pub fn lifecycle(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Runs until `shutdown` resolves, then lets handlers finish within the
    /// [shutdown timeout](BotConfig::shutdown_timeout), and closes.
    ///
    /// # Errors
    /// [`BotError::AuthenticationError`] if the login is refused, [`BotError::ConnectionError`] if
    /// the reconnect policy gives up. Lost connections are not errors.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection and all handlers.
    pub async fn run_until(
        self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<DrainReport, BotError> {
        let Self {
            handler,
            shared,
            events,
            connection,
            canceller,
            state,
        } = self;
        let max_handlers = shared.config.max_handlers;
        let mut runner = Runner {
            handler,
            shared,
            state,
            dispatcher: EventDispatcher::new(max_handlers),
            partials: Arc::default(),
            attempt: 0,
            dials: 0,
        };
        runner.become_state(State::Initialized);
        let shared = Arc::clone(&runner.shared);
        let client = &shared.client;
        let work = async {
            let outcome = runner.work(events, shutdown).await;
            canceller.cancel();
            // A failure stays to be seen: handlers are drained in ERROR then.
            if outcome.is_ok() {
                runner.become_state(State::ShuttingDown);
            }
            let deadline = runner.shared.config.shutdown_timeout;
            let report = runner.dispatcher.drain(deadline).await;
            // A close overtakes commands; handlers that were cut off may have left some.
            let left = client.command(|_, _| ());
            let _ = rpc_core::net::time::timeout(LAST_COMMANDS, left).await;
            client.close();
            (outcome, report)
        };
        let work = async {
            tokio::select! {
                ended = work => ended,
                never = typing::refresh(&shared) => match never {},
            }
        };
        let (_, (outcome, report)) = tokio::join!(connection.run(), work);
        runner.become_state(State::Shutdown);
        outcome.map(|()| report)
    }
}

struct Runner<H> {
    handler: Arc<H>,
    shared: Arc<Shared>,
    state: watch::Sender<State>,
    dispatcher: EventDispatcher,
    partials: Arc<Partials>,
    /// Attempts of this cycle that were announced.
    attempt: u32,
    /// Attempts to connect since a connection was last ready.
    dials: u32,
}

impl<H: Handler> Runner<H> {
    fn become_state(&mut self, next: State) {
        if self.state.borrow().may_become(next) {
            self.state.send_replace(next);
        }
    }

    async fn work(
        &mut self,
        mut events: Events,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), BotError> {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let next = tokio::select! {
                () = &mut shutdown => return Ok(()),
                next = self.dispatcher.next(&mut events) => next,
            };
            match next {
                Dispatch::Event(LinkEvent::Event(event)) => self.take(event),
                Dispatch::Event(LinkEvent::State(state)) => {
                    if let Some(reason) = self.link_changed(state) {
                        return self.fail(reason);
                    }
                }
                Dispatch::Event(LinkEvent::Lagged(events)) => {
                    self.shared.notice(&Notice::Lagged { events });
                }
                Dispatch::Panicked => self.shared.notice(&Notice::HandlerPanicked),
                Dispatch::End => return self.over(),
                _ => {}
            }
        }
    }

    /// Handles the end of the link.
    fn over(&mut self) -> Result<(), BotError> {
        match self.shared.client.state().ended() {
            None | Some(CloseReason::Local | CloseReason::Drained) => Ok(()),
            Some(reason) => self.fail(reason.clone()),
        }
    }

    fn fail(&mut self, reason: CloseReason) -> Result<(), BotError> {
        self.become_state(State::Error);
        Err(match reason {
            CloseReason::Authentication { message } => BotError::AuthenticationError { message },
            reason => {
                let delivery = rpc_core::Delivery::NotSent;
                let cause = Box::new(rpc_core::CallError::Closed { reason, delivery });
                let attempts = self.dials.max(1);
                BotError::ConnectionError { attempts, cause }
            }
        })
    }

    /// Handles a state change of the link. Returns the reason if the link gave up.
    fn link_changed(&mut self, state: LinkState) -> Option<CloseReason> {
        match state {
            LinkState::Connecting { .. } => {
                self.dials = self.dials.saturating_add(1);
                self.become_state(State::Connecting);
            }
            LinkState::Ready { generation } => {
                self.become_state(State::Connected);
                self.attempt = 0;
                self.dials = 0;
                self.shared.notice(&Notice::Connected { generation });
            }
            LinkState::Lost {
                cause,
                retry_in,
                exhausted,
            } => {
                self.become_state(State::Connecting);
                let before = if exhausted { 0 } else { self.attempt };
                // A connection that is replaced at once takes no attempt of the cycle.
                self.attempt = before + u32::from(!retry_in.is_zero());
                self.shared.notice(&Notice::Lost {
                    cause,
                    attempt: self.attempt.max(1),
                    retry_in,
                    exhausted,
                });
            }
            LinkState::GaveUp { cause } => return Some(cause),
            _ => {}
        }
        None
    }

    fn take(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Ready(ready) => {
                self.shared.learn(&ready);
                self.become_state(State::Running);
            }
            ClientEvent::Warning(warning) => self.shared.notice(&Notice::Warning(warning)),
            ClientEvent::Message(message) => self.message(message),
            ClientEvent::Joined(joined) => self.membership(joined.channel_uid, true),
            ClientEvent::Left(left) => self.membership(left.channel_uid, false),
            ClientEvent::SetTyping(typing) => {
                let channel = typing.channel_uid.clone();
                self.spawn(
                    channel.unwrap_or_else(|| "".into()),
                    move |handler, cx| async move { handler.on_set_typing(&cx, &typing).await },
                );
            }
            ClientEvent::Unknown(event) => {
                self.spawn(ChannelUid::new(""), move |handler, cx| async move {
                    handler.on_event(&cx, &event).await
                });
            }
            _ => {}
        }
    }

    fn membership(&mut self, channel: ChannelUid, joined: bool) {
        if !joined {
            self.shared.leave(&channel);
        } else if !self.shared.join(&channel) {
            return self.shared.notice(&Notice::TooManyChannels { channel });
        }
        self.spawn(channel, move |handler, cx| async move {
            if joined {
                handler.on_join(&cx).await
            } else {
                handler.on_leave(&cx).await
            }
        });
    }

    fn message(&mut self, mut message: Message) {
        let Some(me) = self.shared.user() else { return };
        if let Some(base) = &self.shared.config.drive_base
            && let std::borrow::Cow::Owned(text) = rewrite_drive_urls(&message.message, base)
        {
            message.message = text.into();
        }
        let channel = ChannelUid::new(&message.channel_uid);
        if message.is_final == Final::Yes {
            self.partials.complete(&message);
        }
        let route = route(&me, &message);
        let (asked, addressed) = match route {
            Route::Ping(_) | Route::Join | Route::Mention => (true, true),
            Route::Message => self.should_respond(&me, &message),
            Route::Partial | Route::OwnMessage | Route::Leave => (false, false),
        };
        if !matches!(route, Route::Partial | Route::OwnMessage) {
            match self.shared.on_message(&message, asked) {
                Decision::Answer if addressed => {
                    self.shared
                        .answered(&message.channel_uid, &message.username);
                }
                Decision::Stop => return self.stop(channel, &message),
                Decision::Ignore if asked => return,
                _ => {}
            }
        }
        match route {
            Route::OwnMessage => self.spawn(channel, move |handler, cx| async move {
                handler.on_own_message(&cx, &message).await
            }),
            Route::Ping(rest) => {
                let rest = rest.to_owned();
                let shared = Arc::clone(&self.shared);
                self.spawn(channel, move |handler, cx| async move {
                    if shared.config.auto_pong {
                        let pong = pong(&rest);
                        shared.send(&message.channel_uid, &pong, Final::Yes).await?;
                    }
                    handler.on_ping(&cx, &message, &rest).await
                });
            }
            Route::Join => self.membership(channel, true),
            Route::Leave => self.membership(channel, false),
            Route::Mention => self.spawn(channel, move |handler, cx| async move {
                handler.on_mention(&cx, &message).await
            }),
            Route::Message if asked => {
                let asked_by = (!addressed).then(|| message.username.clone());
                self.spawn(channel, move |handler, cx| async move {
                    *cx.asked_by.lock() = asked_by;
                    handler.on_message(&cx, &message).await
                });
            }
            Route::Partial if message.username != me.username => self.partial(channel, message),
            Route::Partial | Route::Message => {}
        }
    }

    fn partial(&mut self, channel: ChannelUid, message: Message) {
        let Some(mut growing) = self.partials.put(message) else {
            return;
        };
        self.spawn(channel, move |handler, cx| async move {
            while let Some(message) = growing.next() {
                handler.on_partial(&cx, &message).await?;
            }
            Ok(())
        });
    }

    /// Says that the author of a message is not answered for a while.
    fn stop(&mut self, channel: ChannelUid, message: &Message) {
        let author = message.username.clone();
        self.shared.notice(&Notice::Stopped {
            channel: channel.clone(),
            author,
        });
        self.spawn(
            channel,
            |_, cx| async move { cx.reply(STOPPED).await.map(drop) },
        );
    }

    /// Whether the bot may answer, and whether the message addresses it.
    fn should_respond(&self, me: &User, message: &Message) -> (bool, bool) {
        let (shared, channel) = (&self.shared, &message.channel_uid);
        let (tag, triggers) = (shared.tag(channel), &shared.config.triggers);
        let text = &message.message;
        let addressed = should_respond(tag.as_deref(), false, triggers, &me.username, text);
        (addressed || shared.is_joined(channel), addressed)
    }

    fn spawn<F, W>(&mut self, channel: ChannelUid, work: F)
    where
        F: FnOnce(Arc<H>, Context) -> W + Send + 'static,
        W: Future<Output = Result<(), BotError>> + Send + 'static,
    {
        let Some(user) = self.shared.user() else {
            return;
        };
        let cx = Context::new(Arc::clone(&self.shared), channel, user);
        let handler = Arc::clone(&self.handler);
        self.dispatcher.spawn(async move {
            if let Err(error) = work(Arc::clone(&handler), cx.clone()).await {
                handler.on_error(&cx, error).await;
            }
        });
    }
}

rpc_core::debug_fields!([H] Bot<H>, this => {
    state: *this.state.borrow(),
});
