//! Sessions that this host does not serve any more.

use rpc_core::CloseFrame;

use super::event::{HubEvent, Now, Reply};
use super::job::Task;
use super::{Hub, SessionEntry};
use crate::console::Line;
use crate::frame::ErrorFrame;
use crate::id::SessionId;
use crate::limits::{INPUT_REFUSED, SERVICE_RESTART};
use crate::session::{ConnId, Owner, RunId};

impl Hub {
    /// Gives up a session that this host may no longer write to: stops its run and closes its
    /// connections, whose clients then find the host that serves it. Nothing is stored and nothing
    /// more is acknowledged.
    pub fn give_up(&mut self, session_id: &SessionId, now: Now) {
        self.registry.remove(session_id.as_str());
        while let Some(removed) = self.registry.poll_removed() {
            match removed.session_id == *session_id {
                true => self.forget(session_id, &removed.sockets, removed.run),
                false => self.removed(removed, now),
            }
        }
        self.release(session_id);
        self.feed_starved(now);
    }

    /// [Gives up](Self::give_up) all sessions: this host has lost its place among the hosts.
    pub fn give_up_all(&mut self, now: Now) {
        let sessions = self.registry.sessions().map(|(id, _)| id.clone());
        for session_id in sessions.collect::<Vec<_>>() {
            self.give_up(&session_id, now);
        }
    }

    /// Ends all that these owners have here, for example because they were blocked: stops their runs,
    /// whose conversations are stored, and closes their connections.
    pub fn end_owners(&mut self, ends: impl Fn(Owner) -> bool, why: &CloseFrame, now: Now) {
        let sessions = self.registry.sessions();
        let sessions = sessions.filter(|(_, session)| ends(session.owner));
        let sessions = sessions.map(|(id, session)| (id.clone(), session.sockets.to_vec()));
        let mut closed = Vec::new();
        for (session_id, sockets) in sessions.collect::<Vec<_>>() {
            self.registry.remove(session_id.as_str());
            closed.extend(sockets);
        }
        self.handle_timeout(now);
        let entering = self.entering.extract_if(|_, it| ends(it.owner));
        closed.extend(entering.map(|(conn, _)| conn));
        for conn in closed {
            self.reply(conn, Reply::Close(why.clone()));
        }
    }

    fn forget(&mut self, session_id: &SessionId, sockets: &[ConnId], run: Option<RunId>) {
        for conn in sockets {
            self.moved.insert(*conn);
            self.reply(*conn, Reply::Close(elsewhere()));
        }
        let entry = self.entries.remove(session_id);
        let work = entry.and_then(|entry: SessionEntry| entry.work);
        if work.is_some_and(|work| work.run.is_none()) {
            self.beginning -= 1;
        }
        if let Some(run) = run {
            self.events.push_back(HubEvent::Cancel { run });
            self.line(Line::AgentError {
                message: "the agent was stopped: this host does not serve its session any more"
                    .to_owned(),
            });
        }
    }

    /// Tells the storage that a session is forgotten, unless it is being loaded: who gets it then keeps
    /// or releases it.
    pub(super) fn release(&mut self, session_id: &SessionId) {
        if !self.loading.contains_key(session_id) {
            self.ask_storage(session_id.clone(), Task::Release);
        }
    }

    /// Tells the storage that a session is forgotten, unless it is there.
    pub(super) fn release_unused(&mut self, session_id: &str) {
        if self.registry.session(session_id).is_none() {
            self.release(&session_id.into());
        }
    }
}

/// Another host serves it, or will: this one may have lost its place.
const ELSEWHERE: &str = "this host does not serve the session: connect again";

/// The Close for clients of such a session.
pub(super) fn elsewhere() -> CloseFrame {
    CloseFrame::new(SERVICE_RESTART, ELSEWHERE)
}

/// The answer to a prompt that arrives before that Close has left.
pub(super) fn moved() -> ErrorFrame {
    let error = ErrorFrame::new(ELSEWHERE).with_code(INPUT_REFUSED);
    error.with_retryable(true)
}
