//! Actions of users besides prompts: answers, changes of mode and goal, interrupts.

use rpc_core::Json;
use rpc_core::encode::encode;

use super::Hub;
use super::conversation::with_mode;
use super::event::{ConnId, HubEvent, Now, Reply};
use super::job::not_available;
use super::run::{Run, stale};
use crate::error::{unknown_type, unsupported_mode};
use crate::frame::{
    Answer, ErrorFrame, EventKind, Mode, ModeChange, ModeChanged, Response, StreamEvent,
};
use crate::id::event_id;
use crate::limits::{AUTHENTICATE_FIRST, NOTHING_TO_INTERRUPT};
use crate::server::ServerEvent;

/// The ERROR for another goal without an agent at work.
const NO_TURN: &str = "prompt_update requires an active turn";

impl Hub {
    /// Handles what a user does beside prompts:
    ///
    /// - the answer to a question of the agent; one that comes too late, or to no question, gets an
    ///   ERROR;
    /// - an interrupt, which stops the agent after its current step, and a change of the agent's goal;
    ///   without an agent at work they get an ERROR;
    /// - a change of the mode, which applies at once, to the running agent or to the next run, and of
    ///   which all connections of the session get `mode_changed`; an unknown mode gets an ERROR. The
    ///   number of turns that the user allows in the mode `ulw` is the member
    ///   [`ULW_TURNS`](crate::limits::ULW_TURNS) of the session.
    ///
    /// Ignores other events.
    pub fn command(&mut self, conn: ConnId, command: ServerEvent, now: Now) {
        self.touch(conn, now.instant);
        match command {
            ServerEvent::Response(response) => self.respond(conn, response),
            ServerEvent::Interrupt => {
                self.notify_agent(conn, NOTHING_TO_INTERRUPT, |run| run.is_interrupted = true);
            }
            ServerEvent::PromptUpdate(update) => {
                self.notify_agent(conn, NO_TURN, |run| run.goal = Some(update.prompt));
            }
            ServerEvent::ModeChange(change) => self.mode_change(conn, change, now),
            _ => {}
        }
    }

    fn respond(&mut self, conn: ConnId, response: Response) {
        if let Answer::Ulw(ulw) = &response.answer
            && let Some(error) = ulw.mode.as_ref().and_then(unsupported)
        {
            // The question stays open.
            return self.send_to(conn, &error);
        }
        if let Answer::Unknown { tag, .. } = &response.answer {
            return self.send_to(conn, &unknown_type(tag));
        }
        let Some((id, session)) = self.session_at(conn) else {
            return self.send_to(conn, &ErrorFrame::new(AUTHENTICATE_FIRST));
        };
        let Response {
            answer, request_id, ..
        } = response;
        let request_id = request_id.as_deref();
        let answered = match session.running() {
            Some(run) => run.answer(answer, request_id).map(|()| run.id),
            None => Err(stale(request_id)),
        };
        match answered {
            Ok(run) => self.events.push_back(HubEvent::Told(run)),
            Err(error) => self.send_to(conn, &error.with_session_id(id.as_str())),
        }
    }

    /// Changes the run whose agent is at work, and wakes the agent. Without one, the client gets an
    /// ERROR with these words.
    fn notify_agent(&mut self, conn: ConnId, idle: &'static str, change: impl FnOnce(&mut Run)) {
        let words = match self.session_at(conn) {
            None => AUTHENTICATE_FIRST,
            Some((_, session)) => match session.running() {
                Some(run) => {
                    change(run);
                    let run = run.id;
                    return self.events.push_back(HubEvent::Told(run));
                }
                None => idle,
            },
        };
        self.send_to(conn, &ErrorFrame::new(words));
    }

    fn mode_change(&mut self, conn: ConnId, change: ModeChange, now: Now) {
        let Some((id, session)) = self.session_at(conn) else {
            return self.send_to(conn, &ErrorFrame::new(AUTHENTICATE_FIRST));
        };
        if let Some(error) = unsupported(&change.mode) {
            return self.send_to(conn, &error);
        }
        if !session.is_known {
            return self.recall(&id, move |hub, _, error, now| match error {
                None => hub.mode_change(conn, change, now),
                Some(error) => hub.send_to(conn, &not_available(&error)),
            });
        }
        let ModeChange { mode, turns } = change;
        let turns = turns.filter(|_| mode == Mode::Ulw);
        let mut changed = ModeChanged::new(mode.clone(), "user");
        changed.turns_left = turns;
        let kind = EventKind::ModeChanged(changed);
        let value = Json::of(mode.name()).unwrap_or_default();
        let allowed = turns.and_then(|turns| Json::of(&turns).ok());
        if let Some(run) = session.running() {
            run.set_mode(value, allowed);
            let run = run.id;
            return self.emit_own(run, kind, None, now);
        }
        session.copy = with_mode(session.copy.as_ref(), &value, allowed.as_ref(), now.unix);
        session.is_unsaved = true;
        if let Some(run) = &mut session.run {
            run.set_mode(value, allowed);
        }
        // No run, so nothing that is replayed.
        let sockets = session.sockets.clone();
        let event = event_id(self.ids.next_bits());
        if let Ok(text) = encode(&StreamEvent::new(kind, event, now.unix, id.clone())) {
            for conn in sockets {
                self.reply(conn, Reply::Frame(text.clone()));
            }
        }
        self.save(&id, now);
    }
}

/// Returns the ERROR for a mode that the protocol does not know, and so no agent does.
fn unsupported(mode: &Mode) -> Option<ErrorFrame> {
    match mode {
        Mode::Other(word) => Some(unsupported_mode(word)),
        _ => None,
    }
}
