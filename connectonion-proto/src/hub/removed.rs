//! The ends of sessions: removed, given up to other hosts, or forbidden.

use rpc_core::CloseFrame;

use super::event::{HubEvent, Now, Owner, Reply};
use super::job::Request;
use super::run::Phase;
use super::{Hub, Session};
use crate::console;
use crate::frame::ErrorFrame;
use crate::id::SessionId;
use crate::limits::{INPUT_REFUSED, SERVICE_RESTART};
use crate::storage::{RecordStatus, StorageError};

impl Hub {
    /// Gives up a session that this host may no longer write to: stops its run and closes its
    /// connections, whose clients then find the host that serves it. Nothing is stored and nothing
    /// more is acknowledged.
    pub(super) fn give_up(&mut self, id: &SessionId, now: Now) {
        let words = "the agent was stopped: this host does not serve its session any more";
        self.drop_session(id, &elsewhere(), words, now);
    }

    /// Gives up a session without connections and runs, all of which is stored. Returns `false` if it is in
    /// use.
    pub(crate) fn release_idle(&mut self, id: &SessionId, now: Now) -> bool {
        let is_used = |it: &Session| {
            it.parked.is_none() || !it.is_idle() || it.is_only_here || it.unstored.is_some()
        };
        let session = self.sessions.get(id.as_str());
        if self.loading.contains_key(id) || session.is_some_and(is_used) {
            return false;
        }
        self.give_up(id, now);
        true
    }

    /// Deletes the session of this owner, here and in the storage: its run is stopped, and its connections
    /// are closed. Calls `then` with whether there was one. That of another owner stays, as if there were none.
    pub fn delete(
        &mut self,
        id: &SessionId,
        owner: Owner,
        then: impl FnOnce(Result<bool, StorageError>) + Send + Sync + 'static,
        now: Now,
    ) {
        let was_here = self.forget(id, owner, now);
        let then =
            move |outcome: Result<bool, _>| then(outcome.map(|was_stored| was_here || was_stored));
        self.ask_storage(id.clone(), Request::Delete(owner, Box::new(then)));
    }

    /// Stops the run of a session that is to be deleted, and closes its connections. Returns whether it is
    /// here.
    pub(super) fn forget(&mut self, id: &SessionId, owner: Owner, now: Now) -> bool {
        let session = self.sessions.get(id.as_str());
        let is_here = session.is_some_and(|it| it.owner == owner);
        if is_here {
            let why = CloseFrame::new(CloseFrame::NORMAL, "the session was deleted");
            let words = "the agent was stopped: its session was deleted";
            self.drop_session(id, &why, words, now);
        }
        is_here
    }

    pub(super) fn drop_session(&mut self, id: &SessionId, why: &CloseFrame, words: &str, now: Now) {
        if let Some(session) = self.sessions.remove(id.as_str()) {
            self.unlist(&session);
            for conn in &session.sockets {
                self.moved.insert(*conn);
                self.reply(*conn, Reply::Close(why.clone()));
            }
            if let Some(run) = session.started() {
                self.events.push_back(HubEvent::Cancel(run.id));
                self.line(console::agent_error(words));
            }
        }
        self.release(id);
        self.feed_starved(now);
    }

    /// Gives up all sessions, as when the storage fences them:
    /// this host has lost its place among the hosts. Runs are stopped, connections closed, and nothing
    /// is stored.
    pub fn give_up_all(&mut self, now: Now) {
        let sessions = self.sessions.iter().map(|(id, _)| id.clone());
        for id in sessions.collect::<Vec<_>>() {
            self.give_up(&id, now);
        }
    }

    /// Ends all that these owners have here, for example because they were blocked: stops their runs,
    /// whose conversations are stored, and closes their connections.
    pub fn end_owners(&mut self, ends: impl Fn(Owner) -> bool, why: &CloseFrame, now: Now) {
        let sessions = self.sessions.iter().filter(|(_, it)| ends(it.owner));
        let sessions = sessions.map(|(id, it)| (id.clone(), it.sockets.clone()));
        let mut closed = Vec::new();
        for (id, sockets) in sessions.collect::<Vec<_>>() {
            if let Some(session) = self.sessions.remove(id.as_str()) {
                let words = "the agent was stopped: its session was removed";
                self.end_session(&id, session, words, now);
            }
            closed.extend(sockets);
        }
        self.feed_starved(now);
        let connecting = self.connecting.extract_if(|_, it| ends(it.owner));
        closed.extend(connecting.map(|(conn, _)| conn));
        for conn in closed {
            self.reply(conn, Reply::Close(why.clone()));
        }
    }

    /// Takes a session that was removed from all lists.
    fn unlist(&mut self, session: &Session) {
        for conn in &session.sockets {
            self.connections.remove(conn);
        }
        if let Some(place) = session.parked {
            self.parked.remove(&place);
        }
        if let Some(run) = &session.run {
            self.runs.remove(&run.id);
        }
        self.log_bytes -= session.log.bytes();
    }

    /// Stores what is left of a session that was removed, and informs the watchers of its run.
    pub(super) fn end_session(&mut self, id: &SessionId, session: Session, words: &str, now: Now) {
        self.unlist(&session);
        for prompt in session.prompts.iter().filter(|it| it.conn.is_some()) {
            let gone = ErrorFrame::new("the session is over: send CONNECT again");
            self.refuse_prompt(prompt.clone(), gone.with_retryable(true));
        }
        let ttl = self.config.result_ttl;
        let mut record = session.record(id, RecordStatus::Failed, now, ttl);
        match (session.run, session.unstored) {
            (None, Some(mut again)) => {
                (again.session, again.inputs) = (session.copy, record.inputs);
                self.ask_storage(id.clone(), Request::Append(again, None));
            }
            (Some(run), _) if run.phase != Phase::Beginning => {
                self.events.push_back(HubEvent::Cancel(run.id));
                for conn in session.sockets {
                    self.send_to(conn, &ErrorFrame::new(words));
                }
                self.line(console::agent_error(words));
                if run.is_running() {
                    record.session = Some(run.render(id.as_str(), None, now.unix));
                    self.ask_storage(id.clone(), Request::Append(record, None));
                }
            }
            _ => {}
        }
        self.release(id);
    }

    /// Tells the storage that a session is forgotten, unless it is being loaded: who gets it then keeps
    /// or releases it.
    fn release(&mut self, id: &SessionId) {
        if !self.loading.contains_key(id) {
            self.ask_storage(id.clone(), Request::Release);
        }
    }

    /// Tells the storage that a session is forgotten, unless it is there.
    pub(super) fn release_unused(&mut self, id: &SessionId) {
        if self.sessions.get(id.as_str()).is_none() {
            self.release(id);
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
