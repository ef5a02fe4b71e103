//! Sockets of sessions: signs of life, frames, disconnecting.

use rpc_core::encode::encode;
use rpc_core::{Instant, Text};

use super::{ConnId, Entry, Hub, Now};
use crate::frame::{EventKind, StreamEvent};
use crate::id::{SessionId, event_id};
use crate::replay::Next;

impl Hub {
    /// Removes a closed connection. Its run goes on.
    pub fn disconnect(&mut self, conn: ConnId, now: Now) {
        self.connecting.remove(&conn);
        self.moved.remove(&conn);
        let Some(entry) = self.connections.remove(&conn) else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(entry.session.as_str()) {
            session.sockets.retain(|one| *one != conn);
            if session.sockets.is_empty() && session.started().is_none() {
                self.evict_if_idle(&entry.session, now.instant);
            }
        }
        self.free_unneeded(&entry.session);
    }

    /// Notes that a connection has sent something: its session is alive.
    pub fn touch(&mut self, conn: ConnId, now: Instant) {
        if let Some(id) = self.session_of(conn).cloned() {
            self.evict_if_idle(&id, now);
        }
    }

    /// Names a connection that has room for frames again, if there are some.
    pub(crate) fn resume(&mut self, conn: ConnId) {
        if let Some(entry) = self.connections.get_mut(&conn) {
            entry.is_ready = true;
            self.ready.push_back(conn);
        }
    }

    /// Returns a connection with frames to take, once until there are new ones for it.
    pub fn poll_ready(&mut self) -> Option<ConnId> {
        loop {
            let conn = self.ready.pop_front()?;
            // It may be gone, or have been served when its number was here twice.
            if let Some(entry) = self.connections.get_mut(&conn)
                && std::mem::take(&mut entry.is_ready)
            {
                return Some(conn);
            }
        }
    }

    /// Returns the next frame for a connection: an event, an OUTPUT, the ERROR of a failed run.
    /// Call it until `None` while there is room to send; a slow connection later continues where it
    /// stopped.
    ///
    /// A connection that is so slow that events are dropped before it takes them gets the current
    /// session instead, as `session_sync`.
    pub fn next_frame(&mut self, conn: ConnId, now: Now) -> Option<Text> {
        loop {
            let entry = self.connections.get_mut(&conn)?;
            let session = self.sessions.get_mut(entry.session.as_str())?;
            let next = session.log.next(&mut entry.cursor);
            if let (Some(Next::Closing(_)), Some((place, _))) = (&next, &session.failure)
                && entry.cursor == *place
            {
                session.failure = None;
            }
            let is_over = session.started().is_none() && !session.log.is_empty();
            if is_over && session.log.is_read(entry.cursor) {
                let id = entry.session.clone();
                self.free_unneeded(&id);
            }
            match next? {
                Next::Event(text) | Next::Closing(text) => return Some(text),
                // Between runs the OUTPUT that follows has the session.
                Next::Gap(_) => {
                    if let Some(text) = self.snapshot(conn, now) {
                        return Some(text);
                    }
                }
            }
        }
    }

    /// Returns the frame for a connection that has missed events of a run.
    fn snapshot(&mut self, conn: ConnId, now: Now) -> Option<Text> {
        let (id, session) = self.session_at(conn)?;
        let whole = session.run.as_ref()?.render(id.as_str(), None, now.unix);
        let event = event_id(self.ids.next_bits());
        let event = StreamEvent::new(EventKind::SessionSync(whole), event, now.unix, id);
        encode(&event).ok()
    }

    /// Adds a frame for all sockets of a session.
    pub(super) fn push(&mut self, id: &SessionId, entry: Entry) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        self.log_bytes -= session.log.bytes();
        session.log.push(entry);
        let over = (self.log_bytes + session.log.bytes()).saturating_sub(self.config.max_log_bytes);
        if over > 0 {
            let keep = session.log.bytes().saturating_sub(over);
            session.log.shrink_to(keep);
        }
        self.log_bytes += session.log.bytes();
        for conn in &session.sockets {
            if let Some(entry) = self.connections.get_mut(conn)
                && !entry.is_ready
            {
                entry.is_ready = true;
                self.ready.push_back(*conn);
            }
        }
    }
}
