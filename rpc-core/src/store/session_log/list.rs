//! All sessions of a [`SessionLog`]: their list, what is removed, and what is damaged.

use std::collections::{HashMap, HashSet};

use futures_util::future::FutureExt as _;
use futures_util::{StreamExt as _, stream};

use super::part::{Header, Part};
use super::{AT_ONCE, BESIDE, Session, SessionHead, SessionInfo, SessionLog, Sizes};
use crate::Str;
use crate::store::{Expect, Record, StoreError, name_of};

impl SessionLog {
    /// Returns the last record of a session; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn head(&self, id: &str) -> Result<Option<SessionInfo>, StoreError> {
        let last = self.last_of(self.subject(id)).await?;
        Ok(last.filter(|it| !it.is_removed()))
    }

    async fn last_of(&self, subject: Str) -> Result<Option<SessionInfo>, StoreError> {
        match self.log.last(&subject).await {
            Err(StoreError::Unreadable { sequence }) => {
                Ok(Some(self.info(subject, sequence, 0, None)))
            }
            found => Ok(found?.map(|last| self.listed(&last))),
        }
    }

    /// Returns what the last record of a session says of it, such as one that [`Log::watch`](crate::store::Log::watch) brings.
    #[must_use]
    pub fn listed(&self, last: &Record) -> SessionInfo {
        let part = Part::parse(&last.payload);
        self.info(last.subject.clone(), last.sequence, last.time, part)
    }

    fn info(&self, subject: Str, revision: u64, time: u64, last: Option<Part>) -> SessionInfo {
        let known = last.as_ref().map(|it| &it.header.id);
        let known = known.filter(|id| !id.is_empty()).cloned();
        SessionInfo {
            id: known.or_else(|| name_of(self.token_of(&subject)).map(Into::into)),
            subject,
            revision,
            time,
            bytes: last.as_ref().map_or(BESIDE as u64, |it| it.header.bytes),
            head: last.map(|part| part.head),
        }
    }

    /// Returns all sessions by their last records, in the order of these: the one that was not used for the
    /// longest time is first. It reads one record of each.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn heads(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let mut listed = self.lasts().await?;
        listed.retain(|it| !it.is_removed());
        Ok(listed)
    }

    /// Returns the last records of all sessions, also of those that are removed.
    async fn lasts(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let heads = self.log.heads(&format!("{}.*", self.config.name)).await?;
        let reads = heads
            .into_iter()
            .map(|head| self.last_of(head.subject).boxed());
        let reads: Vec<_> = reads.collect();
        let mut reads = stream::iter(reads).buffered(AT_ONCE);
        let mut listed = Vec::new();
        while let Some(last) = reads.next().await {
            listed.extend(last?);
        }
        let mut sizes = Sizes::default();
        for it in &listed {
            let owner = it.head.as_ref().map(|head| head.owner.clone());
            sizes.set(&it.subject, &owner.unwrap_or_default(), it.bytes);
        }
        *self.sizes.lock() = sizes;
        Ok(listed)
    }

    /// Removes a session, unless there is a record after `revision`. Returns whether it is removed. Who
    /// knows it finds a conflict at the next write.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be removed or not.
    pub async fn remove(&self, subject: &Str, revision: u64) -> Result<bool, StoreError> {
        let record = Part::encode(Header::default(), &SessionHead::default(), b"");
        let expect = Expect {
            id: None,
            last: Some(revision),
        };
        let last = match self.log.append(subject, record, expect).await {
            Ok(stored) => stored.sequence,
            Err(StoreError::Conflict) => return Ok(false),
            // Then no one else can write either.
            Err(StoreError::Full { .. }) => revision,
            Err(error) => return Err(error),
        };
        self.log.purge(subject, last.saturating_add(1)).await?;
        self.sizes.lock().set(subject, &Str::default(), 0);
        Ok(true)
    }

    /// Removes the sessions that have expired, and then those that were not used for the longest time until
    /// at most `max_sessions` with `max_bytes` are left; none that is not free, which `is_free` decides.
    /// Returns how many are removed. It reads one record of each session.
    ///
    /// # Errors
    /// [`StoreError`]; some may be removed, and retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, some are removed.
    pub async fn sweep<F: Future<Output = Result<bool, StoreError>>>(
        &self,
        max_sessions: u64,
        max_bytes: u64,
        is_free: impl Fn(SessionInfo) -> F,
    ) -> Result<u64, StoreError> {
        let (heads, now) = (self.lasts().await?, self.now());
        let (mut count, mut removed) = (heads.len() as u64, 0);
        let mut bytes: u64 = heads.iter().map(|it| it.bytes).sum();
        for session in &heads {
            let expires = session.head.as_ref().and_then(|head| head.expires);
            let is_over = session.is_removed() || expires.is_some_and(|at| at < now);
            let is_needed = count <= max_sessions && bytes <= max_bytes;
            if (is_needed && !is_over) || !is_free(session.clone()).await? {
                continue;
            }
            if self.remove(&session.subject, session.revision).await? {
                (count, removed) = (count - 1, removed + 1);
                bytes = bytes.saturating_sub(session.bytes);
            }
        }
        Ok(removed)
    }

    /// Reads all records once, and logs how many cannot be read or are missing.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn check(&self) -> Result<(), StoreError> {
        let (records, sessions) = self.damage().await?;
        if sessions > 0 {
            let what = "records of sessions cannot be read, and what they held is lost";
            tracing::warn!(records, sessions, "{what}");
        }
        Ok(())
    }

    /// Returns how many records cannot be read or are missing, and how many sessions they belong to.
    pub(super) async fn damage(&self) -> Result<(u64, u64), StoreError> {
        let (pattern, mut after) = (format!("{}.*", self.config.name), 0);
        let mut sessions: HashMap<Str, Session<()>> = HashMap::new();
        let mut unreadable = HashSet::new();
        loop {
            let (page, has_more) = self.page(&pattern, after).await?;
            for (number, record) in &page {
                after = *number;
                match record {
                    Some(record) => sessions
                        .entry(record.subject.clone())
                        .or_default()
                        .take(record),
                    None => drop(unreadable.insert(after)),
                }
            }
            if !has_more {
                break;
            }
        }
        // Behind one in the middle there is a gap.
        for last in self.log.heads(&pattern).await? {
            if unreadable.contains(&last.sequence) {
                let session = sessions.entry(last.subject).or_default();
                session.skip(last.sequence);
            }
        }
        let lost = sessions.values().map(Session::lost);
        let lost = lost.filter(|lost| *lost > 0);
        Ok(lost.fold((0, 0), |(records, sessions), lost| {
            (records + lost, sessions + 1)
        }))
    }
}
