//! The bytes of the conversations that a hub holds: those of one address, and those of all.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;

use rpc_core::{CloseFrame, Json};

use super::event::{ConnId, Now};
use super::job::{Loaded, Request, Then};
use super::recover::restore;
use super::{Hub, Prompt, Session};
use crate::frame::ErrorFrame;
use crate::id::SessionId;
use crate::limits::INPUT_REFUSED;
use crate::storage::{Record, StorageError};

/// The memory of a conversation besides its bytes.
const OVERHEAD: usize = 1024;
/// What has at most this many bytes may use what is in reserve.
const SMALL: usize = 64 * 1024;

/// What is held, or more: what goes is noticed when all is counted again.
#[derive(Default)]
pub(super) struct Reserved {
    all: usize,
    by_caller: HashMap<IpAddr, usize>,
}

impl Reserved {
    pub(super) fn add(&mut self, caller: Option<IpAddr>, bytes: usize) {
        let bytes = bytes.saturating_add(OVERHEAD);
        self.all = self.all.saturating_add(bytes);
        if let Some(caller) = caller {
            let of_caller = self.by_caller.entry(caller).or_default();
            *of_caller = of_caller.saturating_add(bytes);
        }
    }

    /// Returns the bytes of one address, or of all.
    fn of(&self, caller: Option<IpAddr>) -> usize {
        caller.map_or(self.all, |it| self.by_caller.get(&it).map_or(0, |it| *it))
    }
}

impl Hub {
    /// Returns the refusal of a conversation of this size, if it is too large.
    pub(super) fn check_size(&self, size: usize) -> Option<ErrorFrame> {
        let max = self.config.max_session_bytes;
        (size > max).then(|| {
            ErrorFrame::new(format!(
                "the conversation has {size} bytes, and this host takes {max}: begin a new session"
            ))
        })
    }

    /// Makes room in the memory for what a caller brings and what comes back from the storage with it, or
    /// returns the refusal. Idle conversations leave it, the largest first, but for that of this session. A
    /// quarter is in reserve, for what is small.
    pub(super) fn reserve_bytes(
        &mut self,
        caller: Option<IpAddr>,
        session: Option<&str>,
        brought: usize,
        recalled: usize,
        now: Now,
    ) -> Option<ErrorFrame> {
        let more = brought.saturating_add(recalled);
        let max = self.config.max_held_bytes;
        let own = caller.map(|_| (caller, max / 4, "of your address"));
        for (whose, max, words) in own.into_iter().chain([(None, max, "of all callers")]) {
            let max = if brought <= SMALL { max } else { max - max / 4 };
            let excess = |it: &Reserved| it.of(whose).saturating_add(more).saturating_sub(max);
            if excess(&self.reserved) > 0 {
                self.reserved = self.count();
            }
            let excess = excess(&self.reserved);
            if excess > 0 && !self.unload(whose, session, excess, now) {
                let words = format!(
                    "this host holds {max} bytes of conversations {words}: try again later"
                );
                return Some(ErrorFrame::new(words).with_retryable(true));
            }
        }
        self.reserved.add(caller, more);
        None
    }

    /// Takes at least so many bytes of idle conversations out of the memory: of one address, or of all.
    /// Returns `false`, and does nothing, if there are fewer.
    fn unload(&mut self, whose: Option<IpAddr>, but: Option<&str>, bytes: usize, now: Now) -> bool {
        let is_one = |(id, it): &(&SessionId, &Session)| {
            let is_theirs = whose.is_none() || it.caller == whose;
            is_theirs && but != Some(id.as_str()) && it.may_leave()
        };
        let idle = self.sessions.iter().filter(is_one);
        let mut idle: Vec<_> = idle.map(|(id, it)| (it.held(), id.clone())).collect();
        if idle.iter().map(|(size, _)| size + OVERHEAD).sum::<usize>() < bytes {
            return false;
        }
        idle.sort_unstable_by_key(|(size, _)| Reverse(*size));
        let mut left = bytes;
        for (size, id) in idle {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(size + OVERHEAD);
            self.unload_one(&id, now);
        }
        self.reserved = self.count();
        true
    }

    fn unload_one(&mut self, id: &SessionId, now: Now) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        if session.is_handed {
            let words = "the host needs the memory: connect again with the conversation";
            let why = CloseFrame::new(CloseFrame::TRY_AGAIN, words);
            return self.drop_session(id, &why, "", now);
        }
        session.is_known = false;
        session.copy = None;
        session.away = std::mem::take(&mut session.stored);
        self.ask_storage(id.clone(), Request::Unload);
    }

    /// Reads a conversation again that is not in the memory, and then calls `then`, with the error if it is not
    /// available.
    pub(super) fn recall(
        &mut self,
        id: &SessionId,
        then: impl FnOnce(&mut Self, &SessionId, Option<StorageError>, Now) + Send + Sync + 'static,
    ) {
        let then: Then<Loaded> = Box::new(move |hub, id, found, now| {
            let Some(session) = hub.sessions.get_mut(id.as_str()) else {
                return hub.release_unused(id);
            };
            let error = match found {
                Ok(record) => {
                    session.learn(record, now.unix);
                    None
                }
                Err(StorageError::Fenced) => return hub.give_up(id, now),
                Err(error) => Some(error),
            };
            then(hub, id, error, now);
            hub.free_unneeded(id);
        });
        self.ask_storage(id.clone(), Request::Recall(then));
    }

    /// Makes room for the files of a prompt while they are saved, or refuses it and returns `false`.
    pub(crate) fn begin_upload(&mut self, conn: ConnId, bytes: usize, now: Now) -> bool {
        let Some((id, session)) = self.session_at(conn) else {
            return true;
        };
        let caller = session.caller;
        if let Some(error) = self.reserve_bytes(caller, Some(id.as_str()), bytes, 0, now) {
            self.refuse_input(conn, error.with_code(INPUT_REFUSED));
            return false;
        }
        let uploading = self.uploading.entry(conn).or_insert((caller, 0));
        uploading.1 += bytes;
        true
    }

    /// They are saved, or not.
    pub(crate) fn end_upload(&mut self, conn: ConnId, bytes: usize) {
        if let Some((_, left)) = self.uploading.get_mut(&conn) {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.uploading.remove(&conn);
            }
        }
    }

    fn count(&self) -> Reserved {
        let mut held = Reserved::default();
        let sessions = self.sessions.iter();
        for (_, session) in sessions.filter(|(_, it)| it.is_known || it.stored > 0) {
            held.add(session.caller, session.held() + session.log.bytes());
        }
        for connecting in self.connecting.values() {
            held.add(connecting.caller, connecting.bytes);
        }
        for (caller, bytes) in self.uploading.values() {
            held.add(*caller, *bytes);
        }
        held
    }
}

impl Session {
    /// Returns the bytes of the conversation and of what waits to become a part of it.
    pub(super) fn bytes(&self) -> usize {
        let waiting = self.prompts.iter().skip(self.read);
        let waiting: usize = waiting.map(Prompt::size).sum();
        let run = self.run.as_ref();
        let run = run.map_or(0, |run| run.message_bytes + run.trace_bytes);
        len_of(self.copy.as_ref()) + waiting + run
    }

    /// Returns its bytes in the memory, with those that the storage has there: between runs, they are the same.
    fn held(&self) -> usize {
        match self.run {
            Some(_) => self.bytes() + self.stored,
            None => self.bytes().max(self.stored),
        }
    }

    /// Returns whether the conversation may leave the memory: the storage or the client has it.
    fn may_leave(&self) -> bool {
        let is_stored = !self.is_only_here && self.unstored.is_none() && !self.is_unsaved;
        self.is_idle() && is_stored && self.held() > 0
    }

    /// Takes the conversation of a record, unless it is known.
    pub(super) fn learn(&mut self, record: Option<Record>, now: f64) {
        if !std::mem::replace(&mut self.is_known, true) {
            self.copy = record.and_then(|record| restore(record, now));
            self.stored = len_of(self.copy.as_ref());
            (self.away, self.is_handed) = (0, false);
        }
    }
}

/// Returns the bytes of a conversation, if there is one.
pub(super) fn len_of(session: Option<&Json>) -> usize {
    session.map_or(0, |it| it.get().len())
}
