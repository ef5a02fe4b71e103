//! [`Player`], who gives the agent work and complains if it does not go as the script says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acolyte_proto::auth::ApiKey;
use acolyte_proto::client::{ChatUpdate, ClientConfig, Outcome};
use acolyte_proto::event::{Event, Part};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{Chat, Client, SseClient, connect_with, dialer, link_config};
use switchboard::cli::Failure;
use switchboard::screen::acolyte::Frames;
use switchboard::screen::{Colour, Screen};
use rpc_core::reconnect::ReconnectPolicy;

use crate::tour::patience::in_time;

/// What a chat has told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Lines that were changed.
    pub(crate) diff: usize,
    /// Checklists.
    pub(crate) lists: usize,
    /// The codes of tools that have failed.
    pub(crate) failed: Vec<String>,
}

/// Somebody who gives the agent work.
pub(crate) struct Player {
    pub(crate) client: Client,
    chats: AtomicUsize,
}

impl Player {
    pub(crate) fn connect(
        name: &'static str,
        colour: Colour,
        url: &str,
        key: &str,
        screen: &Arc<Screen>,
    ) -> Result<Self, Failure> {
        let config = config(key)?;
        let dialer = dialer(url, &config).map_err(Failure::new)?;
        let shown = screen.observer(name, colour, Frames::default());
        let mut link = link_config().with_observer(shown);
        link.reconnect = ReconnectPolicy::off();
        let (client, _, connection) = connect_with(dialer, config, link);
        tokio::spawn(connection.run());
        let chats = AtomicUsize::new(0);
        Ok(Self { client, chats })
    }

    /// Starts a chat.
    pub(crate) async fn starts(&self, text: &str) -> Chat {
        self.chats.fetch_add(1, Ordering::Relaxed);
        let request = ChatRequest::new(text.to_owned(), "scripted");
        self.client.start_chat(request).await
    }

    /// Starts a chat and follows it to its end: the answer, and what was told before it.
    pub(crate) async fn asks(&self, text: &str) -> Result<(String, Told), Failure> {
        let chat = self.starts(text).await;
        followed(chat).await
    }

    /// The same over HTTP, where no frames are seen.
    pub(crate) async fn asks_over_http(
        &self,
        url: &str,
        key: &str,
        text: &str,
    ) -> Result<(String, Told), Failure> {
        self.chats.fetch_add(1, Ordering::Relaxed);
        let client = SseClient::new(url, config(key)?).map_err(Failure::new)?;
        let request = ChatRequest::new(text.to_owned(), "scripted");
        followed(client.start_chat(request).await).await
    }

    /// Waits until a tool of the chat shows something.
    pub(crate) async fn sees_a_tool(&self, mut chat: Chat) -> Result<Chat, Failure> {
        loop {
            let update = next(&mut chat, "a tool").await?;
            if matches!(update, ChatUpdate::Event(Event::ToolOutput(_))) {
                return Ok(chat);
            }
        }
    }

    /// Waits until the chat has (another) place in the queue.
    pub(crate) async fn waits(&self, chat: &mut Chat) -> Result<u32, Failure> {
        loop {
            if let ChatUpdate::Queued { position } = next(chat, "a place in the queue").await? {
                return Ok(position);
            }
        }
    }

    /// How many chats there were.
    pub(crate) fn chats(&self) -> usize {
        self.chats.load(Ordering::Relaxed)
    }
}

fn config(key: &str) -> Result<ClientConfig, Failure> {
    let key = ApiKey::new(key).map_err(Failure::new)?;
    Ok(ClientConfig::new(key))
}

async fn next(chat: &mut Chat, what: &str) -> Result<ChatUpdate, Failure> {
    let update = in_time(what, chat.next()).await?;
    match update {
        Some(ChatUpdate::Ended(outcome)) => Err(Failure::new(format_args!(
            "expected {what}; the chat has ended: {outcome}"
        ))),
        Some(update) => Ok(update),
        None => Err(Failure::new(format_args!("expected {what}"))),
    }
}

async fn followed(mut chat: Chat) -> Result<(String, Told), Failure> {
    let mut told = Told::default();
    loop {
        match in_time("the next event", chat.next()).await? {
            Some(ChatUpdate::Event(Event::ToolOutput(output))) => {
                told.diff += usize::from(matches!(output.content, Part::Diff(_)));
            }
            Some(ChatUpdate::Event(Event::ToolResult(result))) => {
                told.failed.extend(result.code.map(String::from));
            }
            Some(ChatUpdate::Event(Event::Checklist(_))) => told.lists += 1,
            Some(ChatUpdate::Ended(Outcome::Done(reply))) => {
                return Ok((reply.output.into(), told));
            }
            Some(ChatUpdate::Ended(outcome)) => return Err(Failure::new(outcome)),
            Some(_) => {}
            None => return Err(Failure::new("expected the end of a chat")),
        }
    }
}
