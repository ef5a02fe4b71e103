//! [`Agent`]: an agent behind ConnectOnion in a conversation.

mod attachments;
mod events;
mod last_session;
mod question;
mod steps;

use std::collections::VecDeque;
use std::path::Path;

use connectonion_proto::client::{ClientEvent, Taken};
use connectonion_proto::frame::{ErrorFrame, Mode};
use connectonion_proto::limits::MAX_SERVER_MESSAGE;
use connectonion_proto::net::{Client, Events, Run, RunEvent};
use futures_util::FutureExt as _;
use rpc_core::net::LinkEvent;
use rpc_core::{CallError, CloseReason, Str};
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};

use self::question::{Meant, Question};
use crate::chat::terminal::{ChatEvent, Command, Waits};
use crate::chat::{Out, Peer, State};
use crate::cli::{Failure, Urls};
use crate::pages;

pub(crate) use self::attachments::Attachments;
pub(crate) use self::last_session::LastSession;
pub(crate) use self::steps::Steps;

/// What an interjection came to.
type InterjectionResult = Result<Taken, CallError<ErrorFrame>>;

/// What happens.
pub(crate) enum PeerEvent {
    Run(Box<RunEvent>),
    /// What is listened to has ended.
    Ended,
    Link(Option<Box<LinkEvent<ClientEvent>>>),
    Said(Box<InterjectionResult>),
}

/// An agent in a conversation.
pub(crate) struct Agent {
    pub(crate) client: Client,
    /// What the agent says of itself: its name, its model and its folder.
    pub(crate) found: Vec<String>,
    /// Where it should be.
    pub(crate) url: Urls,
    pub(crate) events: Events,
    pub(crate) connection: JoinHandle<CloseReason>,
    pub(crate) keeper: LastSession,
    pub(crate) along: Attachments,
    /// An invite code is offered before anybody is asked for one.
    pub(crate) offers_code: bool,
    /// Every tool may run.
    pub(crate) allow_all: bool,
    /// The mode to begin with.
    pub(crate) mode: Option<Mode>,
    /// The session that is asked for, if only the agent can know it.
    pub(crate) seeks: Option<String>,
    /// What was said before the connection is of no interest.
    pub(crate) is_once: bool,
    /// What is listened to: the run of this user's prompt, or whatever runs.
    pub(crate) run: Run,
    pub(crate) status: Status,
    pub(crate) steps: Steps,
    pub(crate) questions: VecDeque<Question>,
    pub(crate) interjections: JoinSet<InterjectionResult>,
}

/// How it stands with an agent.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// The agent has let this user in.
    is_in: bool,
    /// The connection is lost.
    is_lost: bool,
    /// An invite code is wanted.
    is_gated: bool,
    /// Someone works, as far as is known.
    is_busy: bool,
    /// The run is this user's.
    is_own: bool,
}

impl Agent {
    async fn prompt(&mut self, text: &str, out: &Out) -> Result<(), Failure> {
        let input = self.along.input(text).map_err(Failure::new)?;
        let run = self.client.send(input).await;
        (self.status.is_busy, self.status.is_own) = (true, true);
        thinks(out).await;
        let mut before = std::mem::replace(&mut self.run, run);
        // What was sent before this is shown, too; what comes once `before` is gone comes with the connection's events.
        // It may be of the new run, which shows it itself.
        while let Some(Some(Ok(event))) = before.next().now_or_never() {
            if let RunEvent::Step(step) = &event
                && events::is_between_runs(&step.event.kind)
            {
                self.run_event(event, out).await?;
            }
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.status.is_busy || !self.interjections.is_empty()
    }

    /// A text is the answer to the first question.
    async fn answer(&mut self, text: &str, out: &Out) -> Result<(), Failure> {
        let Some(question) = self.questions.front_mut() else {
            return Ok(());
        };
        let mut text = text;
        let is_paged = !out.is_json() && question.allow().is_some();
        if let Some(preview) = self.steps.preview.as_mut().filter(|_| is_paged) {
            match preview.meant(&text.to_lowercase()) {
                pages::Meant::More => {
                    let page = preview.turn();
                    out.people([ChatEvent::Preview(page)]).await;
                    self.show_question(out).await;
                    return Ok(());
                }
                pages::Meant::Counted => text = "yes",
                pages::Meant::Other => {}
            }
        }
        match question.answer(text) {
            Ok(Meant::Answer(response)) => {
                self.questions.pop_front();
                self.steps.preview = None;
                if let Err(refused) = self.client.respond(response).await {
                    out.wrong(Failure::new(refused)).await;
                }
                thinks(out).await;
                self.show_question(out).await;
            }
            Ok(Meant::More(wanted)) => {
                out.program("wanted", json!({ "message": wanted.trim() }))
                    .await;
                out.people([ChatEvent::Question(wanted)]).await;
            }
            Err(refused) => out.wrong(Failure::new(refused)).await,
        }
        Ok(())
    }

    async fn show_question(&self, out: &Out) {
        if let Some(question) = self.questions.front() {
            out.line(events::frame("question", question.step())).await;
            let words = question.words().join("\n");
            out.people([ChatEvent::Question(words)]).await;
        }
    }

    async fn onboard(&mut self, code: &str, out: &Out) {
        match self.client.onboard(code).await {
            Ok(success) => {
                self.status.is_gated = false;
                let words = success.message.as_deref().unwrap_or("you are admitted");
                out.report("onboarded", json!({ "message": words }), words)
                    .await;
            }
            Err(error) => out.complain(&events::words(&error)).await,
        }
    }

    fn interject(&mut self, text: String) {
        let client = self.client.clone();
        self.interjections
            .spawn(async move { client.interject(text).await });
    }
}

async fn thinks(out: &Out) {
    out.people([ChatEvent::Activity("thinking".to_owned())])
        .await;
}

/// Reads a mode.
pub(crate) fn parse_mode(word: &str) -> Result<Mode, String> {
    match Mode::from(Str::from(word)) {
        Mode::Other(_) => Err("the modes are safe, plan, accept_edits and ulw".to_owned()),
        known => Ok(known),
    }
}

/// Reads `safe`, or `ulw 20`.
fn mode(text: &str) -> Result<(Mode, Option<u64>), String> {
    let (word, turns) = text.split_once(' ').unwrap_or((text, ""));
    let mode = parse_mode(word)?;
    let turns = Some(turns.trim()).filter(|turns| !turns.is_empty());
    let turns = turns.map(|turns| {
        let number = turns.parse();
        number.map_err(|_| format!("{turns:?} is not a number of turns"))
    });
    Ok((mode, turns.transpose()?))
}

impl Peer for Agent {
    type Event = PeerEvent;

    const NAME: &'static str = "agent";
    const INTRO: &'static str = "Write what you want of the agent. While it works, you can say more; it reads \
        that at its next step. It goes on when this program ends.";
    /// A message has more in it than the text.
    const MAX_BYTES: usize = MAX_SERVER_MESSAGE / 2;

    fn commands(&self) -> Vec<Command> {
        vec![
            Command::new("new", "", "begin a new conversation"),
            Command::new(
                "mode",
                "MODE",
                "safe, plan, accept_edits, or ulw and a number of turns",
            )
            .waits(Waits::Never),
            Command::new(
                "file",
                "PATH",
                "send a file with your next message, for the agent's tools",
            ),
            Command::new("image", "PATH", "send an image with your next message"),
            Command::new("say", "TEXT", "say it at once, from a pipe too").waits(Waits::Never),
        ]
    }

    fn state(&self) -> State {
        let status = &self.status;
        if status.is_gated {
            return State::Asking;
        }
        match (status.is_in && !status.is_lost, self.questions.is_empty()) {
            (false, _) => State::Away,
            (true, false) => State::Asking,
            (true, true) if self.is_busy() => State::Busy,
            (true, true) => State::Idle,
        }
    }

    fn takes_more(&self) -> bool {
        true
    }

    async fn about(&self) -> Vec<String> {
        self.found.clone()
    }

    // Also without a connection: what was asked is answered.
    fn is_done(&self) -> bool {
        let status = &self.status;
        status.is_in && !status.is_gated && self.questions.is_empty() && !self.is_busy()
    }

    async fn next(&mut self) -> PeerEvent {
        // In this order: that the connection is back is shown before the steps that arrive over it.
        tokio::select! {
            biased;
            Some(Ok(interjections)) = self.interjections.join_next() => PeerEvent::Said(Box::new(interjections)),
            event = self.events.next_link() => PeerEvent::Link(event.map(Box::new)),
            event = self.run.next() => match event {
                Some(Ok(event)) => PeerEvent::Run(Box::new(event)),
                Some(Err(_)) | None => PeerEvent::Ended,
            },
        }
    }

    async fn handle(&mut self, event: PeerEvent, out: &Out) -> Result<(), Failure> {
        match event {
            PeerEvent::Run(event) => self.run_event(*event, out).await,
            PeerEvent::Ended => self.ended(out).await,
            PeerEvent::Said(interjections) => {
                self.interjected(*interjections, out).await;
                Ok(())
            }
            PeerEvent::Link(Some(event)) => self.link_event(*event, out).await,
            PeerEvent::Link(None) => Err(Failure::new("the connection has ended")),
        }
    }

    async fn submit(&mut self, text: String, out: &Out) -> Result<(), Failure> {
        if self.status.is_gated {
            self.onboard(&text, out).await;
        } else if !self.questions.is_empty() {
            self.answer(&text, out).await?;
        } else if self.status.is_busy {
            self.interject(text);
        } else {
            self.prompt(&text, out).await?;
        }
        Ok(())
    }

    async fn command(&mut self, name: &str, rest: &str, out: &Out) -> Result<(), String> {
        match (name, rest) {
            ("mode", _) => {
                let (mode, turns) = mode(rest)?;
                let sent = self.client.set_mode(mode, turns).await;
                sent.map_err(|refused| refused.to_string())
            }
            ("file" | "image" | "say", "") => Err(format!("/{name} needs an argument")),
            ("file", path) => self.along.file(Path::new(path)),
            ("image", path) => self.along.image(Path::new(path)),
            ("say", text) if self.state() != State::Idle => {
                self.interject(text.to_owned());
                Ok(())
            }
            ("say", text) => {
                let interjections = self.prompt(text, out).await;
                interjections.map_err(|failure| failure.to_string())
            }
            _ => {
                let before = self.client.session().session_id;
                let begun = self.client.new_session(false).await;
                begun.map_err(|reason| reason.to_string())?;
                let back = before
                    .as_deref()
                    .map(|id| format!("; --resume={id} comes back to the one before"));
                let words = format!("a new conversation{}", back.unwrap_or_default());
                out.report("new", json!({ "before": before }), &words).await;
                Ok(())
            }
        }
    }

    async fn stop(&mut self, out: &Out) {
        if let Err(refused) = self.client.interrupt().await {
            out.wrong(Failure::new(refused)).await;
        }
    }

    async fn decline(&mut self, out: &Out) -> Result<(), Failure> {
        if self.status.is_gated {
            return Err(Failure::refused(
                "this agent requires an invite code: pass it with --invite",
            ));
        }
        while let Some(question) = self.questions.pop_front() {
            out.report("declined", json!({}), "no one can answer").await;
            let declined = question.decline().map_err(Failure::new)?;
            self.client.respond(declined).await.map_err(Failure::new)?;
        }
        Ok(())
    }

    async fn leave(&mut self, out: &Out) {
        self.keeper.keep(self.client.session());
        if self.status.is_busy && !self.status.is_lost {
            out.note("the agent keeps working; return to it with --resume")
                .await;
        }
        self.client.close();
        let _ = (&mut self.connection).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_may_have_a_number_of_turns() {
        assert_eq!(mode("plan"), Ok((Mode::Plan, None)));
        assert_eq!(mode("ulw 7"), Ok((Mode::Ulw, Some(7))));
        for wrong in ["", "wild", "ulw many"] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
    }
}
