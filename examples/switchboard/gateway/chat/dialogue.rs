//! [`run`]: a dialogue with a gateway at a terminal, whether lines can be edited there or not.

use std::collections::VecDeque;
use std::future::pending;

use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{Chat, Client};
use rpc_core::{CallError, Delivery, Refused};
use switchboard::cli::{self, Failure};
use switchboard::terminal::{self, ChatEvent, ChatView};

use super::line::Line;
use super::{Args, Connected, ask, explain, shown};

const INTRO: &str = "Write a message; the gateway remembers the conversation.";

/// A dialogue.
struct Dialogue<'a> {
    args: &'a Args,
    /// `None` after a reply was stopped.
    connected: Option<Connected>,
    view: ChatView,
    /// The reply that comes.
    chat: Option<Chat>,
    has_begun: bool,
    /// What was said last, to be said again if the connection turns out to be over.
    said: Option<String>,
    tokens: u64,
    /// What is said after the reply.
    waiting: VecDeque<String>,
    /// Lines are edited, and keys are read while a reply comes.
    is_edited: bool,
}

/// Talks until the user leaves.
pub(super) async fn run(args: &Args) -> Result<(), Failure> {
    let connected = Connected::open(args).await?;
    let place = args.url.are_several().then(|| connected.place(false));
    let mut input = terminal::open::<Line>(args.history_file.as_deref())?;
    let mut dialogue = Dialogue {
        args,
        connected: Some(connected),
        view: ChatView::new(input.terminal.as_ref()),
        chat: None,
        has_begun: false,
        said: None,
        tokens: 0,
        waiting: VecDeque::new(),
        is_edited: input.terminal.is_some(),
    };
    if let Some(place) = place {
        dialogue.show(ChatEvent::Note(place)).await;
    }
    dialogue
        .show(ChatEvent::Note("write a message, or /help".to_owned()))
        .await;
    let end = cli::end_signal();
    tokio::pin!(end);
    // Without an editor, what was said before the end of the lines is still answered.
    let (mut is_silent, mut is_cut) = (false, false);
    while !is_silent || dialogue.chat.is_some() {
        tokio::select! {
            line = input.lines.recv(), if !is_silent => match line {
                Some(line) => if dialogue.line(line).await { break },
                None if dialogue.is_edited => break,
                None => is_silent = true,
            },
            event = next(&mut dialogue.chat) => dialogue.event(event).await,
            () = &mut end => {
                is_cut = dialogue.chat.is_some();
                break;
            }
        }
    }
    let Dialogue {
        connected, view, ..
    } = dialogue;
    drop(input);
    view.finish().await;
    if let Some(connected) = connected {
        connected.close().await?;
    }
    match is_cut {
        true => Err(Failure::aborted()),
        false => Ok(()),
    }
}

/// The next step of the reply, if one comes.
async fn next(chat: &mut Option<Chat>) -> Option<Result<StreamEvent, CallError<RpcError>>> {
    match chat {
        Some(chat) => chat.next().await,
        None => pending().await,
    }
}

fn was_not_sent<E>(error: &CallError<E>) -> bool {
    let is_over = matches!(
        error,
        CallError::Refused(Refused::Closed) | CallError::Closed { .. }
    );
    is_over && error.delivery() == Delivery::NotSent
}

impl Dialogue<'_> {
    async fn show(&self, event: ChatEvent) {
        self.view.show(event).await;
    }

    async fn wrong(&self, why: String) {
        self.show(ChatEvent::Error(why)).await;
    }

    /// Does what a line asks for; `true` to end.
    async fn line(&mut self, line: Line) -> bool {
        match line {
            Line::Text(text) => match self.chat {
                Some(_) => self.waiting.push_back(text),
                None => self.send(&text).await,
            },
            Line::Query(_) if self.chat.is_some() => {
                let or_stop = match self.is_edited {
                    true => ", or stop it with Esc",
                    false => "",
                };
                self.wrong(format!("wait for the reply{or_stop}")).await;
            }
            Line::Query(query) => {
                if let Some(client) = self.connection().await {
                    match ask(&client, self.args, query).await {
                        Ok(texts) if texts.is_empty() => {
                            self.show(ChatEvent::Note("nothing".to_owned())).await;
                        }
                        Ok(texts) => {
                            for text in texts {
                                self.show(ChatEvent::Info(text)).await;
                            }
                        }
                        Err(error) => self.wrong(explain(error, false).to_string()).await,
                    }
                }
            }
            Line::Help => {
                let help = terminal::help::<Line>(INTRO);
                self.show(ChatEvent::Info(help)).await;
            }
            Line::Interrupt if self.chat.is_none() => return true,
            Line::Stop | Line::Interrupt => self.stop().await,
            Line::Wrong(why) => self.wrong(why).await,
            Line::Quit => return true,
        }
        false
    }

    /// The connection; a new one if the last has ended.
    async fn connection(&mut self) -> Option<Client> {
        let was_lost = match self.connected.take_if(|it| it.is_over()) {
            Some(ended) => {
                let _ = ended.close().await;
                true
            }
            None => false,
        };
        if self.connected.is_none() {
            match Connected::open(self.args).await {
                Ok(connected) => {
                    if was_lost || self.args.url.are_several() {
                        self.show(ChatEvent::Note(connected.place(true))).await;
                    }
                    self.connected = Some(connected);
                }
                Err(failure) => self.wrong(failure.to_string()).await,
            }
        }
        let connected = self.connected.as_ref();
        connected.map(|connected| connected.client.clone())
    }

    async fn send(&mut self, text: &str) {
        let message = self.args.message(text);
        let Some(client) = self.connection().await else {
            return;
        };
        let chat = client.chat_send(message).await;
        self.said = Some(text.to_owned());
        (self.chat, self.has_begun, self.tokens) = (Some(chat), false, 0);
        self.show(ChatEvent::Activity("thinking".to_owned())).await;
    }

    /// Stops the reply. The protocol cannot cancel, but a gateway may stop when its client leaves.
    async fn stop(&mut self) {
        self.waiting.clear();
        if self.chat.take().is_none() {
            return;
        }
        if let Some(connected) = self.connected.take() {
            let _ = connected.close().await;
        }
        self.show(ChatEvent::Ended).await;
        self.show(ChatEvent::Note("stopped".to_owned())).await;
    }

    async fn event(&mut self, event: Option<Result<StreamEvent, CallError<RpcError>>>) {
        match event {
            Some(Ok(event)) => {
                self.has_begun = true;
                if let Some(shown) = shown(event, &mut self.tokens) {
                    self.show(shown).await;
                }
                return;
            }
            Some(Err(error)) => {
                self.show(ChatEvent::Ended).await;
                if was_not_sent(&error)
                    && let Some(text) = self.said.take()
                {
                    self.send(&text).await;
                    self.said = None;
                    return;
                }
                let failure = explain(error, self.has_begun);
                self.wrong(failure.to_string()).await;
            }
            None => self.show(ChatEvent::Ended).await,
        }
        self.chat = None;
        if let Some(text) = self.waiting.pop_front() {
            self.send(&text).await;
        }
    }
}
