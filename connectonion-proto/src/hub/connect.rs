//! CONNECT: chooses the client's session and the newer copy of the conversation.

use rpc_core::{Json, Text};

use super::bytes::len_of;
use super::conversation::count_messages;
use super::event::{ConnId, ConnectRequest, Now, Owner, Reply};
use super::job::{Connecting, Loaded, Request, Then, not_available};
use super::removed::elsewhere;
use super::{ConnectionEntry, Hub, MAX_SESSION_ID, Session};
use crate::chat_items::chat_items;
use crate::console;
use crate::frame::{Connected, ErrorFrame, SessionState};
use crate::id::{SessionId, session_id as new_id};
use crate::limits::ALREADY_AUTHENTICATED;
use crate::merge::{merge, turn_of};
use crate::replay::EventLog;
use crate::storage::{Record, RecordStatus, StorageError};

impl Hub {
    /// Connects a client whose CONNECT was accepted. The answer may have to wait for the storage.
    pub fn connect(&mut self, conn: ConnId, request: ConnectRequest, now: Now) {
        let (owner, connect) = (request.owner, &request.connect);
        let handed = len_of(connect.session.as_ref());
        let wanted = connect.session_id.as_deref();
        let wanted = wanted.filter(|id| !id.is_empty() && id.len() <= MAX_SESSION_ID);
        let own = self.session_of(conn).cloned();
        let id = wanted.or(own.as_ref().map(SessionId::as_str));
        let here = id.and_then(|id| self.sessions.get(id));
        // What is held already counts once.
        let held = here.filter(|it| it.owner == owner);
        let held = held.map_or(0, |it| it.bytes().min(handed));
        // Someone else's session is not looked up: the client gets another one.
        let is_unknown = match here {
            Some(it) => it.owner == owner && !it.is_known,
            None => own.is_none(),
        };
        let unknown = id.filter(|_| is_unknown).map(SessionId::from);
        let refused = self.check_size(handed);
        let reserve = || self.reserve_bytes(request.caller, id, handed - held, 0, now);
        if let Some(error) = refused.or_else(reserve) {
            return self.refuse_connect(conn, error);
        }
        let Some(unknown) = unknown else {
            return self.enter(conn, &request, None, now);
        };
        let number = self.next_number();
        let connecting = Connecting {
            number,
            owner,
            caller: request.caller,
            bytes: handed,
        };
        self.connecting.insert(conn, connecting);
        let then: Then<_> = Box::new(move |hub, id, found, now| {
            hub.entered(conn, number, &request, id, found, now);
        });
        let request = match self.sessions.get(unknown.as_str()) {
            Some(it) if it.away > 0 => Request::Recall(then),
            _ => Request::Load(then),
        };
        self.ask_storage(unknown, request);
    }

    /// Continues a CONNECT when its session was loaded, unless a newer one of the connection waits.
    fn entered(
        &mut self,
        conn: ConnId,
        number: u64,
        request: &ConnectRequest,
        id: &SessionId,
        found: Loaded,
        now: Now,
    ) {
        let connecting = self.connecting.get(&conn);
        if connecting.is_some_and(|it| it.number == number) {
            self.connecting.remove(&conn);
            match found {
                Ok(record) => self.enter(conn, request, record, now),
                Err(StorageError::Fenced) => return self.reply(conn, Reply::Close(elsewhere())),
                Err(error) => self.refuse_connect(conn, not_available(&error)),
            }
        }
        self.release_unused(id);
    }

    fn enter(
        &mut self,
        conn: ConnId,
        request: &ConnectRequest,
        mut stored: Option<Record>,
        now: Now,
    ) {
        let (owner, connect) = (request.owner, &request.connect);
        let known = len_of(stored.as_ref().and_then(|record| record.session.as_ref()));
        // One that is stored already may be shown, however long it is.
        let known = known.min(self.config.max_session_bytes);
        let id = connect.session_id.as_deref();
        if let Some(error) = self.reserve_bytes(request.caller, id, known, 0, now) {
            return self.refuse_connect(conn, error);
        }
        let handed = connect.session.as_ref();
        let theirs = handed.map(Json::get);
        // Its client has gone on since the prompt of an interrupted run.
        let turn = |it: Option<&Json>| it.and_then(turn_of).unwrap_or_default();
        let is_later = |ours: Option<&Json>| turn(handed) > turn(ours);
        let mut is_stopped = false;
        if let Some(record) = &mut stored
            && record.owner == Some(owner)
        {
            let id = SessionId::from(&*record.session_id);
            if is_later(record.session.as_ref()) {
                is_stopped = record.status == RecordStatus::Interrupted;
            } else {
                self.begin_again(&id, record, now);
            }
        }
        if let Some(id) = connect.session_id.as_deref()
            && let Some(session) = self.sessions.get(id)
            && session.owner == owner
            && session.is_rerun()
            && is_later(session.settled())
        {
            self.stop_rerun(&SessionId::from(id));
            is_stopped = true;
        }
        let stored_owner = stored.as_ref().and_then(|record| record.owner);
        let (id, is_new) = match self.attach(conn, request, stored_owner, now) {
            Ok(attached) => attached,
            Err(error) => return self.refuse_connect(conn, error),
        };
        let last_msg_id = connect.last_msg_id.as_deref();
        let (has_gap, failure) = self.take_seat(conn, &id, last_msg_id, now);
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        let stored = stored.filter(|record| *record.session_id == *id.as_str());
        session.learn(stored, now.unix);
        if request.caller.is_some() && session.caller != request.caller {
            session.caller = request.caller;
            self.reserved.add(request.caller, session.bytes());
        }
        let is_running = session.started().is_some();
        let ours = session.settled().map(|it| it.get().to_owned());
        let merged = merge(ours.as_deref(), theirs);
        // What the client has of an interrupted run is over.
        let mut newer = merged.server_newer || session.rerun.is_some();
        if !newer
            && !is_running
            && let Some(theirs) = handed.filter(|_| merged.session.is_some())
        {
            session.is_handed |= ours.as_deref() != Some(theirs.get());
            session.copy = Some(theirs.clone());
            session.is_only_here = false;
            session.is_unsaved |= is_stopped;
        }
        let mut copy = session.settled().filter(|_| newer).cloned();
        if let Some(run) = session.started().filter(|_| has_gap) {
            // What was dropped cannot be sent again, so the client gets all that there is.
            copy = Some(run.render(id.as_str(), None, now.unix));
            newer = true;
        }
        let is_resumed = is_running || session.rerun.is_some();
        let status = match is_resumed {
            true => SessionState::Running,
            false if is_new => SessionState::New,
            false => SessionState::Connected,
        };
        let mut connected = Connected::new(id.as_str(), status);
        connected.bound_answers = is_resumed;
        connected.signature_recommended = request.recommend_signature;
        if let Some(copy) = copy {
            let items = chat_items(copy.get());
            connected = connected.with_newer(Some((copy, items)));
        }
        self.line(console::connected(owner, id.as_str(), status));
        if let Some(session) = handed {
            let messages = count_messages(session.get());
            self.line(console::client_session(messages));
        }
        if newer {
            self.line(console::MERGED);
        }
        if is_resumed {
            self.line(console::REATTACHED);
        }
        self.reply(conn, Reply::Accept(Box::new(connected)));
        if let Some(failure) = failure {
            self.reply(conn, Reply::Frame(failure));
        }
        if is_stopped {
            self.next_prompt(&id, now);
        }
    }

    /// Chooses the session of a connection, and makes it if there is none. Returns whether it did.
    ///
    /// A second CONNECT of the same connection must ask for the same session again.
    fn attach(
        &mut self,
        conn: ConnId,
        request: &ConnectRequest,
        stored_owner: Option<Owner>,
        now: Now,
    ) -> Result<(SessionId, bool), Box<ErrorFrame>> {
        let owner = request.owner;
        let wanted = request.connect.session_id.as_deref();
        let wanted = wanted.filter(|id| !id.is_empty());
        if let Some((id, session)) = self.session_at(conn) {
            let is_same = wanted.map_or(!session.used, |wanted| wanted == id.as_str());
            if session.owner == owner && is_same {
                return Ok((id, false));
            }
            let error = ErrorFrame::new(ALREADY_AUTHENTICATED);
            return Err(error.with_retryable(false).into());
        }
        let is_theirs = |id: &&str| {
            let known = self.sessions.get(*id).map(|session| session.owner);
            known.or(stored_owner).is_none_or(|known| known == owner)
        };
        let wanted = wanted.filter(|id| id.len() <= MAX_SESSION_ID);
        let wanted = wanted.filter(is_theirs);
        let id = wanted.map_or_else(|| new_id(request.random), SessionId::from);
        match self.sessions.get(id.as_str()) {
            Some(session) if session.sockets.len() >= self.config.max_sockets => {
                let error = ErrorFrame::new("too many connections to this session");
                Err(error.with_retryable(true).into())
            }
            Some(_) => Ok((id, false)),
            None => self.open(id.clone(), owner, now).map(|()| (id, true)),
        }
    }

    /// Adds a session without sockets. Without a socket or a run it does not expire. If there are too
    /// many, the one goes that was left first.
    pub(super) fn open(
        &mut self,
        id: SessionId,
        owner: Owner,
        now: Now,
    ) -> Result<(), Box<ErrorFrame>> {
        let too_many = || Box::new(ErrorFrame::new("too many sessions").with_retryable(true));
        if self.sessions.len() >= self.config.max_sessions {
            let oldest = self.parked.first_key_value().map(|(_, id)| id.clone());
            let oldest = oldest.ok_or_else(too_many)?;
            if let Some(session) = self.sessions.remove(oldest.as_str()) {
                self.end_session(&oldest, session, "", now);
            }
        }
        let session = Session {
            owner,
            log: EventLog::new(self.config.log),
            ..Session::default()
        };
        let inserted = self.sessions.insert(id, session, None);
        inserted.map_err(|_| too_many())
    }

    /// Adds a socket to an existing session, after the last event that its client has shown. Returns
    /// whether events of the run were dropped that follow it, and the ERROR of the last run that no
    /// socket has got.
    fn take_seat(
        &mut self,
        conn: ConnId,
        id: &SessionId,
        last_msg_id: Option<&str>,
        now: Now,
    ) -> (bool, Option<Text>) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return (false, None);
        };
        let before = self.connections.get(&conn).map(|entry| entry.cursor);
        let mut cursor = before.unwrap_or_else(|| session.log.end());
        let (mut has_gap, mut failure) = (false, None);
        if session.started().is_some() || session.rerun.is_some() {
            let (resumed, missed) = session.log.resume(last_msg_id);
            (cursor, has_gap) = (resumed, missed > 0);
        } else if before.is_none() {
            failure = session.failure.take().map(|(_, text)| text);
        }
        if !session.sockets.contains(&conn) {
            session.sockets.push(conn);
        }
        let is_ready = !session.log.is_read(cursor);
        if is_ready {
            self.ready.push_back(conn);
        }
        let entry = ConnectionEntry {
            session: id.clone(),
            cursor,
            is_ready,
        };
        self.connections.insert(conn, entry);
        self.evict_if_idle(id, now.instant);
        (has_gap, failure)
    }
}
