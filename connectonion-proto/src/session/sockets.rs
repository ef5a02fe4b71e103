//! The registry's methods for sockets: connecting, signs of life, frames, disconnecting.

use std::time::Instant;

use super::event::{ConnectError, Joined, MAX_SESSION_ID, Owner, Removed, SessionRequest};
use super::{ConnId, ConnectionEntry, Session, SessionRegistry};
use crate::frame::SessionState;
use crate::id::{SessionId, session_id as new_id};
use crate::replay::{Entry, EventLog, Next};

impl SessionRegistry {
    /// Adds a socket whose CONNECT was accepted to the requested session, or to a new one. `random`
    /// should be 128 random bits: unsigned callers are known by their session's id alone.
    /// ConnectOnion specification, *CONNECT*.
    ///
    /// A second CONNECT of the same socket is accepted if it asks for the same session again.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing changed.
    pub(crate) fn connect(
        &mut self,
        conn: ConnId,
        mut request: SessionRequest<'_>,
        random: u128,
        now: Instant,
    ) -> Result<Joined, ConnectError> {
        request.session_id = request.session_id.filter(|id| !id.is_empty());
        if let Some(entry) = self.connections.get(&conn) {
            let session_id = entry.session.clone();
            let same = self.sessions.get(session_id.as_str()).is_some_and(|it| {
                let same_id = request
                    .session_id
                    .map_or(!it.used, |id| id == session_id.as_str());
                it.owner == request.owner && same_id
            });
            if !same {
                return Err(ConnectError::AlreadyConnected);
            }
            return Ok(self.take_seat(conn, session_id, &request, now));
        }
        let asked_for = request.session_id.filter(|id| id.len() <= MAX_SESSION_ID);
        let session_id = asked_for.filter(|id| self.may_have(id, &request));
        let session_id = session_id.map_or_else(|| new_id(random), SessionId::from);
        if let Some(session) = self.sessions.get(session_id.as_str()) {
            if session.sockets.len() >= self.config.max_sockets {
                return Err(ConnectError::TooManySockets);
            }
            return Ok(self.take_seat(conn, session_id, &request, now));
        }
        self.open(session_id.clone(), request.owner)?;
        let joined = self.take_seat(conn, session_id, &request, now);
        Ok(Joined {
            status: SessionState::New,
            ..joined
        })
    }

    /// Adds a session without sockets, whose run begins next: until then it does not expire. Does
    /// nothing if there is such a session.
    ///
    /// # Errors
    /// [`ConnectError::TooManySessions`]; nothing changed.
    pub(crate) fn open(&mut self, session_id: SessionId, owner: Owner) -> Result<(), ConnectError> {
        if self.sessions.get(session_id.as_str()).is_some() {
            return Ok(());
        }
        self.make_room()?;
        let session = Session {
            owner,
            sockets: Vec::new(),
            run: None,
            used: false,
            begins_again: false,
            log: EventLog::new(self.config.log),
            failure: None,
            parked: None,
        };
        let inserted = self.sessions.insert(session_id, session, None);
        inserted.map_err(|_| ConnectError::TooManySessions)
    }

    /// Adds the events of an interrupted run that the next input begins again. Clients that connect
    /// resume among them. Does nothing without the session, or during a run.
    pub(crate) fn restore(
        &mut self,
        session_id: &SessionId,
        events: impl IntoIterator<Item = Entry>,
    ) {
        match self.sessions.get_mut(session_id.as_str()) {
            Some(session) if session.run.is_none() => session.begins_again = true,
            _ => return,
        }
        for event in events {
            self.push(session_id, event);
        }
        if let Some(session) = self.sessions.get_mut(session_id.as_str()) {
            session.log.begin_again();
        }
    }

    /// Returns whether there is room for one more session, beside so many others.
    #[must_use]
    pub(crate) fn has_room(&self, others: usize) -> bool {
        let free = self.config.max_sessions.saturating_sub(self.sessions.len());
        free + self.parked.len() > others
    }

    /// Removes a closed socket, and returns its session. The session's run goes on.
    pub(crate) fn disconnect(&mut self, conn: ConnId, now: Instant) -> Option<SessionId> {
        let entry = self.connections.remove(&conn)?;
        let session = self.sessions.get_mut(entry.session.as_str())?;
        session.sockets.retain(|one| *one != conn);
        if session.sockets.is_empty() && session.run.is_none() {
            self.rest(&entry.session, now);
        }
        self.tidy(&entry.session);
        Some(entry.session)
    }

    /// Notes that a socket has sent something, whatever it was: its session is alive. Returns
    /// `false` if the socket has no session.
    pub(crate) fn heard(&mut self, conn: ConnId, now: Instant) -> bool {
        let Some(entry) = self.connections.get(&conn) else {
            return false;
        };
        let id = entry.session.clone();
        self.rest(&id, now);
        true
    }

    /// Returns a socket with frames to take, once until there are new ones for it.
    #[must_use]
    pub(crate) fn poll_ready(&mut self) -> Option<ConnId> {
        loop {
            let conn = self.ready.pop_front()?;
            // It may be gone, or have been told when its number stood here twice.
            if let Some(entry) = self.connections.get_mut(&conn)
                && std::mem::take(&mut entry.is_ready)
            {
                return Some(conn);
            }
        }
    }

    /// Returns the next frame for a socket, in order. Call it until `None` while there is room to
    /// send; a socket that stops early later continues where it stopped.
    #[must_use]
    pub(crate) fn next_frame(&mut self, conn: ConnId) -> Option<Next> {
        let entry = self.connections.get_mut(&conn)?;
        let session = self.sessions.get_mut(entry.session.as_str())?;
        let next = session.log.next(&mut entry.cursor);
        if let (Some(Next::Closing(_)), Some((place, _))) = (&next, &session.failure)
            && entry.cursor == *place
        {
            session.failure = None;
        }
        if session.log.is_read(entry.cursor) && session.run.is_none() && !session.log.is_empty() {
            let id = entry.session.clone();
            self.tidy(&id);
        }
        next
    }

    /// Returns whether this caller may have a session with this id: it is theirs, or does not
    /// exist.
    fn may_have(&self, id: &str, request: &SessionRequest<'_>) -> bool {
        let owner = self.sessions.get(id).map(|session| session.owner);
        let owner = owner.or(request.stored_owner);
        owner.is_none_or(|owner| owner == request.owner)
    }

    /// Makes room for one more session.
    fn make_room(&mut self) -> Result<(), ConnectError> {
        if self.sessions.len() < self.config.max_sessions {
            return Ok(());
        }
        let oldest = self.parked.first_key_value().map(|(_, id)| id.clone());
        let oldest = oldest.ok_or(ConnectError::TooManySessions)?;
        if let Some(session) = self.sessions.complete(oldest.as_str()).live() {
            self.end(oldest, session, Removed::Evicted);
        }
        Ok(())
    }

    /// Adds a socket to an existing session.
    fn take_seat(
        &mut self,
        conn: ConnId,
        session_id: SessionId,
        request: &SessionRequest<'_>,
        now: Instant,
    ) -> Joined {
        let mut joined = Joined {
            session_id,
            status: SessionState::Connected,
            gap: None,
            failure: None,
        };
        let Some(session) = self.sessions.get_mut(joined.session_id.as_str()) else {
            return joined;
        };
        let before = self.connections.get(&conn).map(|entry| entry.cursor);
        let mut cursor = before.unwrap_or_else(|| session.log.end());
        if session.run.is_some() || session.begins_again {
            let resumed = session.log.resume(request.last_msg_id);
            joined.status = session.status();
            joined.gap = resumed.gap;
            cursor = resumed.cursor;
        } else if before.is_none() {
            joined.failure = session.failure.take().map(|(_, text)| text);
        }
        if !session.sockets.contains(&conn) {
            session.sockets.push(conn);
        }
        let is_ready = !session.log.is_read(cursor);
        if is_ready {
            self.ready.push_back(conn);
        }
        let entry = ConnectionEntry {
            session: joined.session_id.clone(),
            cursor,
            is_ready,
        };
        self.connections.insert(conn, entry);
        self.rest(&joined.session_id, now);
        joined
    }
}
