//! [`Handler`]: the behaviour of a bot, one method per kind of message.

use std::future::{Future, ready};
use std::time::Duration;

use rpc_core::{CloseReason, Delivery, Str};

use super::context::Context;
use crate::client::Warning;
use crate::error::BotError;
use crate::frame::{Message, OtherEvent, Typing};
use crate::id::ChannelUid;

/// The behaviour of a bot. Every method has a default that does nothing, so implement what you
/// need, as `async fn`.
///
/// Handlers run concurrently with the reader and with each other, so they may take their time and
/// make calls through the [`Context`]. An `Err` goes to [`on_error`](Self::on_error); a panic is
/// caught, reported as a [`Notice`], and the bot goes on. A handler that still runs when the
/// shutdown deadline passes is dropped at its next `await`.
///
/// The routing is that of the Snek specification, section 9: the first of own message, ping, join,
/// leave, mention, message that fits. Partial messages reach [`on_partial`](Self::on_partial) only.
///
/// ```
/// use snek_proto::bot::{Context, Handler};
/// use snek_proto::error::BotError;
/// use snek_proto::frame::Message;
///
/// struct Greeter;
///
/// impl Handler for Greeter {
///     async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
///         cx.reply(format!("hi {}", message.user_nick)).await?;
///         Ok(())
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Handles a message of the bot itself, which the server sent back.
    fn on_own_message(
        &self,
        _cx: &Context,
        _message: &Message,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles a message that begins with `ping`; `rest` is what follows, trimmed. The `pong` has
    /// already been sent, unless [`auto_pong`](super::BotConfig::auto_pong) is off.
    fn on_ping(
        &self,
        _cx: &Context,
        _message: &Message,
        _rest: &str,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles a request to join, by a message or an event. From now on the bot answers in
    /// [`cx.channel()`](Context::channel).
    fn on_join(&self, _cx: &Context) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles a request to leave [`cx.channel()`](Context::channel).
    fn on_leave(&self, _cx: &Context) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles a mention of the bot.
    fn on_mention(
        &self,
        _cx: &Context,
        _message: &Message,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles any other message that the bot may answer: in a direct message channel, in a channel
    /// that it has joined, when a trigger matches, or when the text contains its login name.
    fn on_message(
        &self,
        _cx: &Context,
        _message: &Message,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles a message of another user that is still growing. It holds the whole text so far, and
    /// replaces the sender's previous text in this channel. While this handler runs, only the newest
    /// text waits, so a slow display skips some. The complete message reaches its own handler,
    /// perhaps while this one still runs.
    fn on_partial(
        &self,
        _cx: &Context,
        _message: &Message,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles a typing indicator.
    fn on_set_typing(
        &self,
        _cx: &Context,
        _typing: &Typing,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles an event that this crate does not know.
    fn on_event(
        &self,
        _cx: &Context,
        _event: &OtherEvent,
    ) -> impl Future<Output = Result<(), BotError>> + Send {
        ready(Ok(()))
    }

    /// Handles the error of another handler. By default logs it.
    fn on_error(&self, _cx: &Context, error: BotError) -> impl Future<Output = ()> + Send {
        tracing::warn!(%error, "a handler failed");
        ready(())
    }

    /// Handles something that happened to the bot itself. Runs on the bot's own task: do not block.
    /// By default logs it, a [`Notice::Warning`] and a [`Notice::Stopped`] as a warning.
    fn on_notice(&self, notice: &Notice) {
        match notice {
            Notice::Warning(warning) => tracing::warn!(%warning, "bot"),
            Notice::Stopped { channel, author } => {
                tracing::warn!(%channel, %author, "stopped answering, it may be a loop");
            }
            notice => tracing::debug!(?notice, "bot"),
        }
    }
}

rpc_core::dynamic! {
    /// Any [`Handler`]: for a program that chooses one when it starts.
    pub struct DynHandler(any_handler): Handler {
        async fn on_own_message(&self, cx: &Context, message: &Message) -> Result<(), BotError>;
        async fn on_ping(&self, cx: &Context, message: &Message, rest: &str) -> Result<(), BotError>;
        async fn on_join(&self, cx: &Context) -> Result<(), BotError>;
        async fn on_leave(&self, cx: &Context) -> Result<(), BotError>;
        async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError>;
        async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError>;
        async fn on_partial(&self, cx: &Context, message: &Message) -> Result<(), BotError>;
        async fn on_set_typing(&self, cx: &Context, typing: &Typing) -> Result<(), BotError>;
        async fn on_event(&self, cx: &Context, event: &OtherEvent) -> Result<(), BotError>;
        async fn on_error(&self, cx: &Context, error: BotError);
        fn on_notice(&self, notice: &Notice);
    }
}

/// Something that happened to a bot, other than a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Logged in, for the first time or again.
    Connected {
        /// The number of the connection, from 1.
        generation: u64,
    },
    /// The connection was lost; the bot reconnects by itself.
    Lost {
        /// The reason.
        cause: CloseReason,
        /// Which attempt of its cycle comes next, from 1.
        attempt: u32,
        /// How long until then.
        retry_in: Duration,
        /// Whether one cycle of attempts was used up; the next one begins.
        exhausted: bool,
    },
    /// A message is sent again, as the specification requires.
    Resent {
        /// The number of this attempt: 2 or 3.
        attempt: u32,
        /// Whether the previous attempt may have reached the server: then the message may appear
        /// twice.
        delivery: Delivery,
    },
    /// Events arrived faster than the bot handled them; the oldest were dropped.
    Lagged {
        /// How many.
        events: u64,
    },
    /// The bot was asked to join a channel and has not, because it has joined as many as it
    /// [may](super::BotConfig::max_joined).
    TooManyChannels {
        /// The channel.
        channel: ChannelUid,
    },
    /// An author is not answered for a while in a channel, because they and the bot keep answering each other; see
    /// [`max_answers`](super::BotConfig::max_answers).
    Stopped {
        /// The channel.
        channel: ChannelUid,
        /// The login name of the author.
        author: Str,
    },
    /// A frame was skipped, or something else odd was survived.
    Warning(Warning),
    /// A handler panicked.
    HandlerPanicked,
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rpc_core::DecodeError;
    use rpc_core::json::DecodeErrorKind;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// Notes the level of each event.
    #[derive(Clone, Default)]
    struct Levels(Arc<Mutex<Vec<Level>>>);

    impl Subscriber for Levels {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(*event.metadata().level());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// Leaves everything at its default.
    struct Plain;

    impl Handler for Plain {}

    #[test]
    fn notices_and_warnings_are_logged_at_their_level() {
        let levels = Levels::default();
        tracing::subscriber::with_default(levels.clone(), || {
            let error = DecodeError::new(DecodeErrorKind::Binary);
            Plain.on_notice(&Notice::Warning(Warning::BadFrame(error)));
            Plain.on_notice(&Notice::HandlerPanicked);
        });
        assert_eq!(*levels.0.lock().unwrap(), [Level::WARN, Level::DEBUG]);
    }
}
