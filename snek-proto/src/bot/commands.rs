//! [`Commands`]: messages such as `/bridge status`, each with its own closure.

use std::collections::BTreeMap;
use std::future::Future;

use futures_util::future::BoxFuture;

use super::context::Context;
use crate::error::BotError;

type Command = dyn Fn(Context, String) -> BoxFuture<'static, Result<(), BotError>> + Send + Sync;

/// The commands of a bot behind one word: `/bridge status`. Call [`run`](Self::run) in the handlers of messages and
/// mentions.
///
/// ```
/// use snek_proto::bot::{Commands, Context, Handler};
/// use snek_proto::error::BotError;
/// use snek_proto::frame::Message;
///
/// struct Bridge(Commands);
///
/// impl Handler for Bridge {
///     async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
///         if !self.0.run(cx, &message.message).await? {
///             cx.reply("say /bridge status").await?;
///         }
///         Ok(())
///     }
/// }
///
/// let commands = Commands::new("/bridge").on("status", |cx, arguments| async move {
///     cx.reply(format!("up; you asked for {arguments:?}")).await?;
///     Ok(())
/// });
/// # drop(Bridge(commands));
/// ```
pub struct Commands {
    prefix: String,
    commands: BTreeMap<String, Box<Command>>,
}

impl Commands {
    /// Creates the commands behind this word, without any.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            commands: BTreeMap::new(),
        }
    }

    /// Adds a command, or replaces it. The closure gets what follows its name, trimmed.
    #[must_use]
    pub fn on<F, W>(mut self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(Context, String) -> W + Send + Sync + 'static,
        W: Future<Output = Result<(), BotError>> + Send + 'static,
    {
        let run: Box<Command> = Box::new(move |cx, arguments| Box::pin(run(cx, arguments)));
        self.commands.insert(name.into(), run);
        self
    }

    /// Returns the names of the commands, in their order, for a help.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.keys().map(String::as_str)
    }

    /// Runs the command that a text names; words before it, such as a mention, do not matter. Returns whether there is
    /// one.
    ///
    /// # Errors
    /// That of the command.
    ///
    /// # Cancel safety
    /// Dropping the future drops that of the command.
    pub async fn run(&self, cx: &Context, text: &str) -> Result<bool, BotError> {
        match self.find(text) {
            Some((command, arguments)) => command(cx.clone(), arguments.to_owned())
                .await
                .map(|()| true),
            None => Ok(false),
        }
    }

    /// Returns the command that a text names, and what follows.
    fn find<'t>(&self, text: &'t str) -> Option<(&Command, &'t str)> {
        let (before, behind) = text.split_once(&self.prefix)?;
        let is_word = before.is_empty() || before.ends_with(char::is_whitespace);
        let rest = behind
            .strip_prefix(char::is_whitespace)
            .filter(|_| is_word)?;
        let rest = rest.trim();
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some((self.commands.get(name)?, arguments.trim_start()))
    }
}

rpc_core::debug_fields!([] Commands, this => {
    prefix: this.prefix,
    names: this.commands.keys(),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_behind_its_prefix_as_a_word() {
        let commands = Commands::new("/bridge")
            .on("status", |_, _| async { Ok(()) })
            .on("say", |_, _| async { Ok(()) });
        let found = |text| commands.find(text).map(|(_, arguments)| arguments);
        assert_eq!(found("/bridge status"), Some(""));
        assert_eq!(found("@bot /bridge  say  two words "), Some("two words"));
        for other in [
            "/bridge",
            "/bridge nothing",
            "/bridges say x",
            "a/bridge say x",
            "say x",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(commands.names().collect::<Vec<_>>(), ["say", "status"]);
    }
}
