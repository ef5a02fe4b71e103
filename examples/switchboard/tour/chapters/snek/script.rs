//! [`Alice`]: a user who follows a script and complains if the answers do not come.

use switchboard::cli::Failure;
use rpc_core::net::LinkEvent;
use snek_proto::client::ClientEvent;
use snek_proto::frame::{Final, Message};
use snek_proto::net::{Client, Events};
use tokio::sync::watch;

use super::helper::Progress;
use crate::tour::patience::in_time;

pub(crate) struct Alice {
    pub(crate) client: Client,
    pub(crate) events: Events,
    /// How far the helper has come.
    pub(crate) progress: watch::Receiver<Progress>,
    /// Answers of the helper that were heard.
    pub(crate) heard: u64,
    /// Parts of answers that came before the whole.
    pub(crate) partials: u64,
}

impl Alice {
    pub(crate) async fn log_in(&self) -> Result<(), Failure> {
        let ready = in_time("alice's login", self.client.ready()).await?;
        ready.map_err(Failure::new)?;
        Ok(())
    }

    /// Posts in the channel. The call ends with the server's answer.
    pub(crate) async fn says(&self, text: &str) -> Result<(), Failure> {
        let sent = self.client.send_message("general", text, Final::Yes);
        in_time("the answer to a send_message", sent)
            .await?
            .map_err(|error| Failure::new(format_args!("alice could not say {text:?}: {error}")))?;
        Ok(())
    }

    /// The next finished message of the helper has to hold `expected`. Waits until the helper has
    /// finished as well, so that what follows begins with nothing under way.
    pub(crate) async fn hears(&mut self, expected: &str) -> Result<(), Failure> {
        let what = format!("an answer with {expected:?}");
        let message = in_time(&what, self.next_answer()).await??;
        if !message.message.contains(expected) {
            let heard = message.message;
            let error = format!("expected {what}, but the helper said {heard:?}");
            return Err(Failure::new(error));
        }
        self.heard += 1;
        let heard = self.heard;
        let done = |progress: &Progress| progress.answers >= heard;
        reached(&mut self.progress, "the end of the helper's call", done).await
    }

    async fn next_answer(&mut self) -> Result<Message, Failure> {
        while let Some(next) = self.events.next_link().await {
            if let LinkEvent::Event(ClientEvent::Message(message)) = next
                && &*message.username == "helper"
            {
                if message.is_final == Final::Yes {
                    return Ok(message);
                }
                self.partials += 1;
            }
        }
        Err(Failure::new("alice's connection has ended"))
    }
}

/// Waits until the helper has come this far.
pub(crate) async fn reached(
    progress: &mut watch::Receiver<Progress>,
    what: &str,
    enough: impl FnMut(&Progress) -> bool,
) -> Result<(), Failure> {
    in_time(what, progress.wait_for(enough))
        .await?
        .map_err(|_| Failure::new("the helper has ended too early"))?;
    Ok(())
}
