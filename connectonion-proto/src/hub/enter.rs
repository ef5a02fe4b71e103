//! CONNECT: chooses the client's session and the newer copy of the conversation.

use rpc_core::Json;

use super::Hub;
use super::bytes::len_of;
use super::chat::chat_items;
use super::entry::{Origin, SessionEntry};
use super::event::{ConnectRequest, Now, Reply};
use super::job::{Entering, Task};
use super::recover::revive;
use super::run_state::count_messages;
use crate::console::Line;
use crate::frame::{Connected, ErrorFrame, SessionState};
use crate::id::SessionId;
use crate::merge::merge;
use crate::session::{self, ConnId};
use crate::storage::Record;

impl Hub {
    /// Connects a client whose CONNECT was accepted. The answer may have to wait for the storage.
    pub fn connect(&mut self, conn: ConnId, connecting: ConnectRequest, now: Now) {
        let handed = len_of(connecting.connect.session.as_ref());
        // What is held already counts once.
        let asked = connecting.connect.session_id.as_deref();
        let held = asked.and_then(|id| self.entries.get(id));
        let held = held.filter(|entry| entry.owner == connecting.owner);
        let held = held.map_or(0, |entry| entry.bytes().min(handed));
        if let Some(error) = self.hold(connecting.owner, held, handed - held) {
            return self.refuse_connect(conn, error);
        }
        let wanted = connecting.connect.session_id.as_deref();
        let wanted = wanted.filter(|id| !id.is_empty() && id.len() <= session::MAX_SESSION_ID);
        let unknown = wanted.filter(|id| {
            let session = self.registry.session(id);
            // Somebody else's session is not looked up: the client gets another one.
            let is_theirs = session.is_some_and(|it| it.owner != connecting.owner);
            let is_at_hand = self.entries.contains_key(*id);
            !is_theirs && !is_at_hand && self.registry.session_of(conn).is_none()
        });
        let Some(unknown) = unknown.map(SessionId::from) else {
            return self.enter(conn, &connecting, None, now);
        };
        self.last_job += 1;
        let entering = Entering {
            number: self.last_job,
            owner: connecting.owner,
            bytes: handed,
        };
        self.entering.insert(conn, entering);
        let task = Task::Enter(conn, self.last_job, Box::new(connecting));
        self.load(unknown, task);
    }

    pub(super) fn enter(
        &mut self,
        conn: ConnId,
        connecting: &ConnectRequest,
        mut stored: Option<Record>,
        now: Now,
    ) {
        let connect = &connecting.connect;
        let known = len_of(stored.as_ref().and_then(|record| record.session.as_ref()));
        // One that is stored already may be shown, however long it is.
        let known = known.min(self.config.max_session_bytes);
        if let Some(error) = self.hold(connecting.owner, 0, known) {
            return self.refuse_connect(conn, error);
        }
        if let Some(record) = &mut stored
            && record.owner == Some(connecting.owner)
        {
            let session_id = SessionId::from(&*record.session_id);
            self.begin_again(&session_id, record, now);
        }
        let request = session::SessionRequest {
            owner: connecting.owner,
            session_id: connect.session_id.as_deref(),
            last_msg_id: connect.last_msg_id.as_deref(),
            stored_owner: stored.as_ref().and_then(|record| record.owner),
        };
        let entered = self
            .registry
            .connect(conn, request, connecting.random, now.instant);
        let entered = match entered {
            Ok(entered) => entered,
            Err(error) => {
                let frame = ErrorFrame::new(error.to_string());
                return self.refuse_connect(conn, frame.with_retryable(error.is_retryable()));
            }
        };
        // Making room may have removed an old session.
        self.handle_timeout(now);
        let session_id = entered.session_id;
        let got_it = connect.session_id.as_deref() == Some(session_id.as_str());
        let stored = stored.filter(|_| got_it);
        if !self.entries.contains_key(&session_id) {
            let mut entry = SessionEntry::new(connecting.owner);
            entry.copy = stored.and_then(|record| revive(record, now.unix));
            self.entries.insert(session_id.clone(), entry);
        }
        let Some(entry) = self.entries.get_mut(&session_id) else {
            return;
        };
        let is_rerunning = entry.rerun.is_some();
        let handed = connect.session.as_ref();
        let text = |copy: Option<&Json>| copy.map(|it| it.get().to_owned());
        let ours = text(entry.settled());
        let merged = merge(ours.as_deref(), handed.map(Json::get));
        let mut newer = merged.server_newer;
        let is_running = entry.run().is_some();
        if is_rerunning {
            // What the client has of the interrupted run is over.
            newer = true;
        } else if !newer
            && !is_running
            && let Some(session) = handed.filter(|_| merged.session.is_some())
        {
            entry.copy = Some(session.clone());
            entry.origin = Origin::Elsewhere;
        }
        let mut copy = entry.settled().filter(|_| newer).cloned();
        if let Some(work) = entry
            .work
            .as_ref()
            .filter(|_| is_running && entered.gap.is_some())
        {
            // What was dropped cannot be sent again, so the client gets all that there is.
            copy = Some(work.render(session_id.as_str(), None, now.unix));
            newer = true;
        }
        let status = match is_rerunning {
            true => SessionState::Running,
            false => entered.status,
        };
        let is_resumed = status == SessionState::Running;
        let mut connected = Connected::new(session_id.as_str(), status);
        connected.bound_answers = is_resumed;
        connected.signature_recommended = connecting.recommend_signature;
        if let Some(copy) = copy {
            let items = chat_items(copy.get());
            connected = connected.with_newer(Some((copy, items)));
        }
        self.line(Line::Connected {
            owner: connecting.owner,
            session: session_id.as_str().to_owned(),
            status,
        });
        if let Some(session) = handed {
            let messages = count_messages(session.get());
            self.line(Line::ClientSession { messages });
        }
        if newer {
            self.line(Line::Merged);
        }
        if is_resumed {
            self.line(Line::Reattached);
        }
        self.reply(conn, Reply::Accept(Box::new(connected)));
        if let Some(failure) = entered.failure {
            self.reply(conn, Reply::Frame(failure));
        }
    }
}
