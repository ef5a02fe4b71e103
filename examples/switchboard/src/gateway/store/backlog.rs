//! [`Backlog`]: usage that could not be written yet.

use super::Commit;
use super::tables::DAY;
use crate::gateway::usage::UsageEntry;

/// Most separate entries; later ones are added up.
const MAX_KEPT: usize = 4096;

/// Entries that wait until the disk works again, oldest first. Their tokens are never lost; beyond
/// 4,096 entries they are added up: by session and day if there is an entry of the same session and
/// day, otherwise by day.
#[derive(Debug, Default)]
pub(super) struct Backlog(Vec<UsageEntry>);

impl Backlog {
    pub(super) fn keep(&mut self, commits: &[Commit]) {
        for entry in commits.iter().flat_map(|commit| &commit.usage) {
            self.add(entry);
        }
    }

    fn add(&mut self, entry: &UsageEntry) {
        if self.0.len() < MAX_KEPT {
            return self.0.push(entry.clone());
        }
        let is_that_day = |kept: &UsageEntry| kept.at / DAY == entry.at / DAY;
        let place = |session: &str| {
            let is_it = |kept: &UsageEntry| kept.session == session && is_that_day(kept);
            self.0.iter().position(is_it)
        };
        let place = place(&entry.session).or_else(|| place(""));
        match place.and_then(|place| self.0.get_mut(place)) {
            Some(kept) => kept.add(entry),
            // One for each day at most.
            None => self.0.push(UsageEntry {
                session: String::new(),
                agent: String::new(),
                ..entry.clone()
            }),
        }
    }

    /// Returns the commits to write.
    pub(super) fn commits(&self) -> Vec<Commit> {
        let commits = self
            .0
            .iter()
            .map(|entry| Commit::new(&*entry.session, entry.at).with_usage(entry.clone()));
        commits.collect()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the last entries, newest first.
    pub(super) fn last(&self, max: usize) -> Vec<UsageEntry> {
        self.0.iter().rev().take(max).cloned().collect()
    }

    pub(super) fn tokens(&self) -> u64 {
        let tokens = self.0.iter().map(UsageEntry::tokens);
        tokens.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(session: &str, at: u64) -> Commit {
        let entry = UsageEntry::new(at, session, "agent").with_tokens(2, 1);
        Commit::new(session, at).with_usage(entry)
    }

    #[test]
    fn many_entries_are_summed_by_session_and_by_day() {
        let mut backlog = Backlog::default();
        for number in 0..MAX_KEPT {
            backlog.keep(&[used(&number.to_string(), 5)]);
        }
        for _ in 0..10 {
            backlog.keep(&[used("7", 6), used("stranger", 7), used("other", DAY)]);
        }
        let commits = backlog.commits();
        assert_eq!(commits.len(), MAX_KEPT + 2);
        let tokens = |session: &str, day: u64| {
            let entries = commits.iter().flat_map(|commit| &commit.usage);
            let of_it = entries.filter(|it| it.session == session && it.at / DAY == day);
            of_it.map(UsageEntry::tokens).sum::<u64>()
        };
        assert_eq!((tokens("7", 0), tokens("8", 0)), (33, 3));
        assert_eq!((tokens("", 0), tokens("", 1)), (30, 30));
        assert_eq!(backlog.tokens(), 3 * (MAX_KEPT as u64 + 30));
        assert_eq!(backlog.last(1)[0].at, DAY);
    }
}
