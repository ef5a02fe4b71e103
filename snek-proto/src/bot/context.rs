//! [`Context`]: the environment of a handler.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rpc_core::Str;
use rpc_core::net::{Cancellation, time};
use rpc_core::sync::Mutex;

use super::answers::{Answers, Decision};
use super::config::BotConfig;
use super::handler::Notice;
use super::send;
use super::stream::StreamWriter;
use super::typing::{Typing, TypingBoard};
use crate::client::Ready;
use crate::color::random_color;
use crate::error::BotError;
use crate::frame::{CallValue, Channel, Final, Message, User};
use crate::id::ChannelUid;
use crate::net::Client;
use crate::sanitize::sanitize_names;

/// Takes what happens to a bot.
pub(super) type Notices = Box<dyn Fn(&Notice) + Send + Sync>;

/// State shared by all handlers of a bot.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) config: BotConfig,
    pub(super) cancellation: Cancellation,
    notices: Notices,
    pub(super) typing: TypingBoard,
    answers: Mutex<Answers>,
    known: Mutex<ChannelState>,
}

#[derive(Default)]
struct ChannelState {
    user: Option<Arc<User>>,
    channels: HashMap<ChannelUid, Channel>,
    /// Kept over reconnects.
    joined: HashSet<ChannelUid>,
}

impl Shared {
    pub(super) fn new(
        client: Client,
        config: BotConfig,
        cancellation: Cancellation,
        notices: Notices,
    ) -> Self {
        Self {
            client,
            config,
            cancellation,
            notices,
            typing: TypingBoard::default(),
            answers: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// Remembers who is logged in and which channels there are.
    pub(super) fn learn(&self, ready: &Ready) {
        let mut known = self.known.lock();
        known.user = Some(Arc::new(ready.user.clone()));
        let channels = ready.channels.iter().cloned();
        known.channels = channels.map(|it| (it.uid.clone(), it)).collect();
    }

    pub(super) fn user(&self) -> Option<Arc<User>> {
        self.known.lock().user.clone()
    }

    pub(super) fn tag(&self, channel: &str) -> Option<Str> {
        self.known.lock().channels.get(channel)?.tag.clone()
    }

    pub(super) fn is_joined(&self, channel: &str) -> bool {
        self.known.lock().joined.contains(channel)
    }

    /// Returns whether there is room for it.
    pub(super) fn join(&self, channel: &ChannelUid) -> bool {
        let mut known = self.known.lock();
        if !known.joined.contains(channel) && known.joined.len() >= self.config.max_joined {
            return false;
        }
        known.joined.insert(channel.clone());
        true
    }

    pub(super) fn leave(&self, channel: &ChannelUid) {
        self.known.lock().joined.remove(channel);
    }

    pub(super) fn notice(&self, notice: &Notice) {
        (self.notices)(notice);
    }

    /// Takes a message of somebody else. `asked` says whether the bot may answer it.
    pub(super) fn on_message(&self, message: &Message, asked: bool) -> Decision {
        let Some(max) = self.config.max_answers else {
            return Decision::Answer;
        };
        let (channel, author, now) = (&message.channel_uid, &message.username, time::now());
        let mut answers = self.answers.lock();
        answers.on_message(channel, author, now);
        match asked {
            true => answers.decide(channel, author, max, now),
            false => Decision::Ignore,
        }
    }

    /// Counts an answer.
    pub(super) fn answered(&self, channel: &str, author: &str) {
        self.answers.lock().answered(channel, author, time::now());
    }

    pub(super) async fn send(
        &self,
        channel: &str,
        text: &str,
        is_final: Final,
    ) -> Result<CallValue, BotError> {
        let text = if self.config.sanitize {
            sanitize_names(text)
        } else {
            text.into()
        };
        send::send(self, channel, &text, is_final).await
    }
}

rpc_core::debug_fields!([] Shared, this => { client: this.client });

/// The environment of a handler: the channel of the message or event, the bot's own record, the
/// client, and a signal to finish. Cheap to clone.
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
///         let _typing = cx.typing();
///         cx.reply(format!("hi {}", message.user_nick)).await?;
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<Shared>,
    channel: ChannelUid,
    user: Arc<User>,
    /// Who is answered by the first reply.
    pub(super) asked_by: Arc<Mutex<Option<Str>>>,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, channel: ChannelUid, user: Arc<User>) -> Self {
        Self {
            shared,
            channel,
            user,
            asked_by: Arc::default(),
        }
    }

    fn count_answer(&self) {
        if let Some(author) = self.asked_by.lock().take() {
            self.shared.answered(self.channel.as_str(), &author);
        }
    }

    /// Returns the channel that the message or event belongs to; empty if it names none.
    #[must_use]
    pub const fn channel(&self) -> &ChannelUid {
        &self.channel
    }

    /// Returns the channel's record, if the server has sent it.
    #[must_use]
    pub fn channel_record(&self) -> Option<Channel> {
        let known = self.shared.known.lock();
        known.channels.get(&self.channel).cloned()
    }

    /// Returns the bot's own record.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.user
    }

    /// Returns whether the bot has joined this channel.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.shared.is_joined(self.channel.as_str())
    }

    /// Sanitises a message, posts it in this channel, and repeats it on failure as
    /// [configured](super::BotConfig::retry_send).
    ///
    /// # Errors
    /// [`BotError::ConnectionError`] after the last attempt, [`BotError::RpcError`] if the server
    /// refuses it or the configuration forbids a repeat, [`BotError::AuthenticationError`] if the
    /// server refuses the login of a reconnect, [`BotError::ValidationError`] if the event named no
    /// channel; nothing was sent then. [`BotError::delivery`] says whether repeating it may post
    /// twice.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting and repeating; the message may have been posted.
    pub async fn reply(&self, text: impl AsRef<str> + Send) -> Result<CallValue, BotError> {
        self.count_answer();
        self.shared
            .send(self.channel.as_str(), text.as_ref(), Final::Yes)
            .await
    }

    /// Posts a message in another channel. Errors and repeats as for [`reply`](Self::reply).
    ///
    /// # Errors
    /// As for [`reply`](Self::reply).
    ///
    /// # Cancel safety
    /// As for [`reply`](Self::reply).
    pub async fn send(
        &self,
        channel: &ChannelUid,
        text: impl AsRef<str> + Send,
    ) -> Result<CallValue, BotError> {
        self.shared
            .send(channel.as_str(), text.as_ref(), Final::Yes)
            .await
    }

    /// Starts a streamed answer in this channel, sent as [configured](super::BotConfig::stream).
    #[must_use]
    pub fn stream(&self) -> StreamWriter {
        self.count_answer();
        let config = self.shared.config.stream.clone();
        StreamWriter::new(Arc::clone(&self.shared), self.channel.clone(), config)
    }

    /// Shows a typing indicator in this channel, at once and until the guard is dropped.
    pub fn typing(&self) -> Typing {
        Typing::new(Arc::clone(&self.shared), self.channel.clone())
    }

    /// Shows a typing indicator once, in a colour like `#FF6B35` or a random bright one.
    ///
    /// # Errors
    /// [`BotError::ValidationError`] for an invalid colour, [`BotError::RpcError`] without a
    /// connection. Safe to repeat.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn set_typing(&self, color: Option<&str>) -> Result<(), BotError> {
        let Shared { client, config, .. } = &*self.shared;
        let random = || random_color((config.client.link.entropy)());
        let color = color.map_or_else(random, str::to_owned);
        client.set_typing(self.channel.as_str(), &color).await?;
        Ok(())
    }

    /// Returns the client, for everything else. Its calls are neither sanitised nor repeated.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Returns a signal that the bot is shutting down: finish soon.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.shared.cancellation.clone()
    }
}
