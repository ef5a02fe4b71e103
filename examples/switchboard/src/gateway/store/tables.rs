//! [`Tables`]: the tables in a writing transaction.

use redb::{ReadableTable as _, ReadableTableMetadata as _, Table, WriteTransaction};

use super::engine::TxError;
use super::row::{
    ACTIVE, BYTES_KEY, DAYS, META, SESSIONS, SessionRow, TURNS, USAGE, decode, encode,
};
use super::{Commit, StoreLimits};
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// Seconds of a day.
pub(super) const DAY: u64 = 86_400;

/// The tables of one writing transaction.
pub(super) struct Tables<'t> {
    file: &'t str,
    limits: StoreLimits,
    sessions: Table<'t, &'static str, &'static [u8]>,
    active: Table<'t, (u64, &'static str), ()>,
    turns: Table<'t, (&'static str, u64), &'static [u8]>,
    usage: Table<'t, u64, &'static [u8]>,
    days: Table<'t, u64, u64>,
    meta: Table<'t, &'static str, u64>,
    /// Bytes of the turns of all sessions.
    bytes: u64,
}

impl<'t> Tables<'t> {
    pub(super) fn open(
        txn: &'t WriteTransaction,
        file: &'t str,
        limits: StoreLimits,
    ) -> Result<Self, TxError> {
        let sessions = txn.open_table(SESSIONS)?;
        let meta = txn.open_table(META)?;
        let known = meta.get(BYTES_KEY)?.map(|bytes| bytes.value());
        let bytes = match known {
            Some(bytes) => bytes,
            None => {
                let mut bytes: u64 = 0;
                for row in sessions.iter()? {
                    let row: SessionRow =
                        decode(file, "sessions", row?.1.value()).map_err(TxError::Store)?;
                    bytes = bytes.saturating_add(row.bytes);
                }
                bytes
            }
        };
        Ok(Self {
            file,
            limits,
            sessions,
            active: txn.open_table(ACTIVE)?,
            turns: txn.open_table(TURNS)?,
            usage: txn.open_table(USAGE)?,
            days: txn.open_table(DAYS)?,
            meta,
            bytes,
        })
    }

    fn encode<T: serde::Serialize>(&self, row: &T) -> Result<Vec<u8>, TxError> {
        encode(self.file, row).map_err(TxError::Store)
    }

    pub(super) fn row(&self, session: &str) -> Result<Option<SessionRow>, TxError> {
        let Some(row) = self.sessions.get(session)? else {
            return Ok(None);
        };
        let row = decode(self.file, "sessions", row.value()).map_err(TxError::Store)?;
        Ok(Some(row))
    }

    pub(super) fn put(&mut self, session: &str, row: &SessionRow) -> Result<(), TxError> {
        let row = self.encode(row)?;
        self.sessions.insert(session, row.as_slice())?;
        Ok(())
    }

    pub(super) fn add(&mut self, commit: &Commit) -> Result<(), TxError> {
        let session = commit.session.as_str();
        if session.is_empty() {
            // Only days know of the sums of a backlog.
            return commit.usage.iter().try_for_each(|entry| self.log(entry));
        }
        let mut row = if let Some(row) = self.row(session)? {
            self.active.remove((row.active, session))?;
            row
        } else {
            SessionRow {
                created: commit.at,
                ..SessionRow::default()
            }
        };
        // A clock that was set back makes no session older than it is.
        row.active = row.active.max(commit.at);
        self.active.insert((row.active, session), ())?;
        if let Some(turn) = &commit.turn {
            self.add_turn(session, turn, &mut row)?;
        }
        for entry in &commit.usage {
            row.tokens = row.tokens.saturating_add(entry.tokens());
            self.log(entry)?;
        }
        self.put(session, &row)
    }

    fn add_turn(
        &mut self,
        session: &str,
        turn: &Turn,
        row: &mut SessionRow,
    ) -> Result<(), TxError> {
        let turn = turn.shortened(self.limits.text_bytes);
        if turn.id.is_some()
            && self
                .last_turn(session, row)?
                .is_some_and(|it| it.id == turn.id)
        {
            row.next -= 1;
            self.drop_turn(session, row.next, row)?;
        }
        let bytes = self.encode(&*turn)?;
        self.turns.insert((session, row.next), bytes.as_slice())?;
        row.next += 1;
        row.bytes += bytes.len() as u64;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        while row.next - row.first > 1
            && (row.next - row.first > self.limits.turns || row.bytes > self.limits.session_bytes)
        {
            self.drop_turn(session, row.first, row)?;
            row.first += 1;
        }
        Ok(())
    }

    fn last_turn(&self, session: &str, row: &SessionRow) -> Result<Option<Turn>, TxError> {
        let Some(last) = row.next.checked_sub(1) else {
            return Ok(None);
        };
        let stored = self.turns.get((session, last))?;
        let turn = stored.map(|stored| decode(self.file, "turns", stored.value()));
        turn.transpose().map_err(TxError::Store)
    }

    fn drop_turn(
        &mut self,
        session: &str,
        number: u64,
        row: &mut SessionRow,
    ) -> Result<(), TxError> {
        let dropped = self.turns.remove((session, number))?;
        let dropped = dropped.map_or(0, |row| row.value().len() as u64);
        row.bytes = row.bytes.saturating_sub(dropped);
        self.bytes = self.bytes.saturating_sub(dropped);
        Ok(())
    }

    fn log(&mut self, entry: &UsageEntry) -> Result<(), TxError> {
        let last = self.usage.last()?.map(|(number, _)| number.value());
        let number = last.map_or(0, |last| last.saturating_add(1));
        let row = self.encode(entry)?;
        self.usage.insert(number, row.as_slice())?;
        let day = entry.at / DAY;
        let used = self.days.get(day)?.map_or(0, |used| used.value());
        self.days.insert(day, used.saturating_add(entry.tokens()))?;
        Ok(())
    }

    /// Forgets the turns of a session.
    pub(super) fn clear_turns(&mut self, session: &str) -> Result<(), TxError> {
        let all = (session, 0)..=(session, u64::MAX);
        self.turns.retain_in(all, |_, _| false)?;
        Ok(())
    }

    /// Forgets a session, which is no longer among the [active](Self::active).
    fn remove(&mut self, session: &str, row: &SessionRow) -> Result<(), TxError> {
        self.clear_turns(session)?;
        self.release(row);
        self.sessions.remove(session)?;
        Ok(())
    }

    /// Forgets all of a session.
    pub(super) fn delete(&mut self, session: &str, row: &SessionRow) -> Result<(), TxError> {
        self.active.remove((row.active, session))?;
        self.remove(session, row)
    }

    /// Subtracts the turns of a session from the total.
    pub(super) const fn release(&mut self, row: &SessionRow) {
        self.bytes = self.bytes.saturating_sub(row.bytes);
    }

    /// Keeps all tables within their limits, and stores the total size.
    pub(super) fn trim(&mut self) -> Result<(), TxError> {
        loop {
            let sessions = self.sessions.len()?;
            let too_much = self.bytes > self.limits.total_bytes && sessions > 1;
            if sessions <= self.limits.sessions.max(1) && !too_much {
                break;
            }
            let silent = self.active.pop_first()?;
            let Some(session) = silent.map(|(key, _)| key.value().1.to_owned()) else {
                break;
            };
            let row = self.row(&session)?.unwrap_or_default();
            self.remove(&session, &row)?;
        }
        while self.usage.len()? > self.limits.usage {
            self.usage.pop_first()?;
        }
        while self.days.len()? > self.limits.days {
            self.days.pop_first()?;
        }
        self.meta.insert(BYTES_KEY, self.bytes)?;
        Ok(())
    }
}
