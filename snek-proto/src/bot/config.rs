//! [`BotConfig`].

use std::time::Duration;

use rpc_core::Secret;

use super::send::RetrySend;
use crate::client::ClientConfig;
use crate::limits::{MAX_CONCURRENT_OPERATIONS, SHUTDOWN_TIMEOUT, THINKING_TASK_INTERVAL};
use crate::permission::Triggers;
use crate::sanitize::DEFAULT_DRIVE_BASE;
use crate::stream::StreamConfig;

rpc_core::config! {
    /// The identity and behaviour of a bot.
    ///
    /// ```
    /// use std::time::Duration;
    /// use snek_proto::bot::{BotConfig, RetrySend};
    ///
    /// let config = BotConfig {
    ///     retry_send: RetrySend::OnlyIfUnsent,
    ///     shutdown_timeout: Duration::from_secs(3),
    ///     ..BotConfig::new("greeter", "secret")
    /// };
    /// assert!(!format!("{config:?}").contains("secret"));
    /// ```
    #[derive(Clone, Debug)]
    pub struct BotConfig {
        /// Login, timeouts, limits, reconnects and the event queue of each connection.
        pub client: ClientConfig = ClientConfig::new(username, password),
        /// Patterns that make the bot answer in channels that it has not joined. Default none.
        pub triggers: Triggers = Triggers::default(),
        /// What to do when a message cannot be sent. Default: as the specification requires.
        pub retry_send: RetrySend = RetrySend::default(),
        /// Whether `ping` messages are answered with `pong`. Default yes.
        pub auto_pong: bool = true,
        /// Whether to break up the names of known bots in outgoing text, so that bots do not
        /// trigger each other. Default yes.
        pub sanitize: bool = true,
        /// Most answers to one author in a channel within ten minutes, and half of it within one;
        /// `None` is without end. Then the bot says so and ignores the author for ten minutes, or
        /// until a third one writes: somebody with at most two messages there in ten minutes. So
        /// bots that answer each other stop, in rings of any size, and whoever else asks is answered.
        /// Counted are messages that address the bot, and others that a handler replies to through
        /// its [`Context`](super::Context). Default 10; 0 counts as 1.
        pub max_answers: Option<usize> = Some(10),
        /// The base that completes relative drive links in incoming text; `None` leaves them as
        /// they are. Default [`DEFAULT_DRIVE_BASE`].
        pub drive_base: Option<String> = Some(DEFAULT_DRIVE_BASE.to_owned()),
        /// How streamed answers are sent. Their texts never exceed the message limit.
        pub stream: StreamConfig = StreamConfig::default(),
        /// How often a [typing indicator](super::Typing) is refreshed; not below 50 ms. Default 1 s.
        pub typing_interval: Duration = THINKING_TASK_INTERVAL,
        /// Most handlers running at once; further events wait. Default 100; 0 counts as 1.
        pub max_handlers: usize = MAX_CONCURRENT_OPERATIONS,
        /// Most channels that the bot joins; further ones are refused with a
        /// [`Notice`](super::Notice::TooManyChannels). Default 1,000.
        pub max_joined: usize = 1_000,
        /// How long handlers may go on after the shutdown was asked for. Default 5 s.
        pub shutdown_timeout: Duration = SHUTDOWN_TIMEOUT,
    }
    /// Creates a configuration with these credentials and the defaults.
    pub fn new(username: impl Into<String>, password: impl Into<Secret>);
}
