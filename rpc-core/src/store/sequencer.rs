//! [`Sequencer`]: one order out of a feed that loses records.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::Instant;
use crate::timers::later;

/// How long to wait for a fill before asking again.
const FILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The records that a [`Sequencer`] asks the store for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Those with a greater sequence number than this.
    pub after: u64,
    /// Up to this one, itself included; `None` is all there are.
    pub until: Option<u64>,
}

/// Puts the records of one subject in the order of the store, each exactly once.
///
/// A live feed brings each record with its sequence number and that of the record before it on the same
/// subject (JetStream republishes with both), but may lose some. A record whose predecessor has not come is
/// held back, and the records between are asked for: [`poll_request`](Self::poll_request).
///
/// # How to start, and what else may be lost
///
/// Subscribe to the feed first, then read the subject's last sequence number, then create the sequencer with
/// it: what came meanwhile waits in the subscription.
///
/// A loss shows when the next record comes. After the feed was interrupted, and from time to time, call
/// [`check`](Self::check): it asks the store for what may have come last.
#[derive(Debug)]
pub struct Sequencer<T> {
    max_held: usize,
    /// Everything up to here has been returned or is in `ready`.
    delivered: u64,
    /// The greatest sequence number that is known to exist.
    known: u64,
    /// Records that came too early, with the number of the one before.
    held: BTreeMap<u64, (u64, T)>,
    /// The next records, with their sequence numbers.
    ready: VecDeque<(u64, T)>,
    /// Whether there may be more records than are known.
    unchecked: bool,
    /// Whether that was said again while the store was being asked.
    recheck: bool,
    fill: Option<(Fill, Instant)>,
    unsent: bool,
}

impl<T> Sequencer<T> {
    /// Creates a sequencer that returns what comes after this sequence number, which need not be one of the
    /// subject; 0 is the beginning. It holds at most `max_held` records that came too early; others are
    /// dropped, and filled later.
    #[must_use]
    pub const fn new(after: u64, max_held: usize) -> Self {
        Self {
            max_held,
            delivered: after,
            known: after,
            held: BTreeMap::new(),
            ready: VecDeque::new(),
            unchecked: false,
            recheck: false,
            fill: None,
            unsent: false,
        }
    }

    /// Returns the sequence number up to which everything has been put in order.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Takes a record of the live feed; `previous` is the sequence number of the record before it on the
    /// subject, 0 if there is none.
    ///
    /// A record that does not follow what was delivered may be of another log, which has taken the place of
    /// the first: the store is [asked](Self::check) before it counts.
    pub fn handle_live(&mut self, sequence: u64, previous: u64, item: T, now: Instant) {
        if sequence <= self.delivered {
            self.check(now);
            return;
        }
        self.known = self.known.max(sequence);
        // While the store is being asked, it may be of another log that has the same numbers.
        if previous == self.delivered && !self.unchecked {
            self.deliver(sequence, item);
            self.settle(now);
            return;
        }
        self.unchecked |= previous < self.delivered;
        if self.held.len() < self.max_held || self.held.contains_key(&sequence) {
            self.held.insert(sequence, (previous, item));
        }
        self.ask(now);
    }

    /// Takes what the store answers to a [`Fill`]: all records of the subject after `fill.after` up to
    /// `through`, in order. A page may end early; the rest is asked for. `through` is `fill.until` if there
    /// is nothing more up to it, the last item if there may be more, `fill.after` if there is none. A page
    /// without the records that are known to exist, from a replica that lags behind, is asked for again after
    /// a while.
    pub fn handle_fill(
        &mut self,
        fill: Fill,
        items: impl IntoIterator<Item = (u64, T)>,
        through: u64,
        now: Instant,
    ) {
        let asked = self.fill.is_some_and(|(asked, _)| asked == fill);
        if asked && fill.until.is_none() {
            self.fill = None;
            // It goes on until a page brings nothing.
            self.unchecked = through > fill.after || std::mem::take(&mut self.recheck);
        } else if asked && through > fill.after {
            self.fill = None;
        }
        if fill.after <= self.delivered {
            for (sequence, item) in items {
                if sequence > self.delivered {
                    self.deliver(sequence, item);
                }
            }
            self.delivered = self.delivered.max(through);
        }
        self.settle(now);
    }

    /// Asks the store whether there are records that the feed has not brought.
    pub fn check(&mut self, now: Instant) {
        self.recheck |= self.fill.is_some_and(|(fill, _)| fill.until.is_none());
        self.unchecked = true;
        self.ask(now);
    }

    /// Asks again for what has not come in time. An early call is a no-op.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.fill.is_some_and(|(_, at)| at <= now) {
            self.fill = None;
            self.ask(now);
        }
    }

    /// Returns the records that have to be read from the store, for [`handle_fill`](Self::handle_fill). If
    /// that fails do nothing: they are asked for again.
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Fill> {
        let unsent = std::mem::take(&mut self.unsent);
        self.fill.filter(|_| unsent).map(|(fill, _)| fill)
    }

    /// Returns the next record in order, with its sequence number.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<(u64, T)> {
        self.ready.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; `None` while nothing is
    /// asked for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.fill.map(|(_, at)| at)
    }

    fn deliver(&mut self, sequence: u64, item: T) {
        self.delivered = sequence;
        self.ready.push_back((sequence, item));
    }

    /// Delivers held records that are next, drops those that have come, and asks for what is missing.
    fn settle(&mut self, now: Instant) {
        while let Some(entry) = self.held.first_entry() {
            let sequence = *entry.key();
            if sequence > self.delivered && entry.get().0 > self.delivered {
                break;
            }
            let (_, item) = entry.remove();
            if sequence > self.delivered {
                self.deliver(sequence, item);
            }
        }
        self.known = self.known.max(self.delivered);
        // What a fill in flight asked for may have come by itself.
        if self
            .fill
            .is_some_and(|(fill, _)| fill.until.is_some_and(|until| until <= self.delivered))
        {
            self.fill = None;
        }
        self.ask(now);
    }

    fn ask(&mut self, now: Instant) {
        if self.fill.is_some() {
            return;
        }
        let gap = match self.held.first_key_value() {
            Some((_, (previous, _))) => Some(*previous),
            None => Some(self.known).filter(|known| *known > self.delivered),
        };
        if gap.is_none() && !self.unchecked {
            return;
        }
        let fill = Fill {
            after: self.delivered,
            until: gap.filter(|_| !self.unchecked),
        };
        self.fill = Some((fill, later(now, FILL_TIMEOUT)));
        self.unsent = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::schedule::Rng;

    fn drain(sequencer: &mut Sequencer<u64>) -> Vec<u64> {
        std::iter::from_fn(|| sequencer.poll_event())
            .map(|(sequence, item)| {
                assert_eq!(sequence, item);
                item
            })
            .collect()
    }

    fn start() -> (Sequencer<u64>, Instant) {
        (Sequencer::new(10, 64), Instant::now())
    }

    const fn fill(after: u64, until: u64) -> Fill {
        Fill {
            after,
            until: Some(until),
        }
    }

    #[test]
    fn in_order_records_pass_without_a_query() {
        let (mut sequencer, now) = start();
        sequencer.handle_live(12, 10, 12, now);
        sequencer.handle_live(15, 12, 15, now);
        assert_eq!(drain(&mut sequencer), [12, 15]);
        assert_eq!(
            (sequencer.poll_request(), sequencer.poll_timeout()),
            (None, None)
        );
    }

    #[test]
    fn old_records_are_dropped() {
        let (mut sequencer, now) = start();
        for _ in 0..2 {
            sequencer.handle_live(12, 10, 12, now);
            sequencer.handle_live(9, 3, 9, now);
        }
        assert_eq!(drain(&mut sequencer), [12]);
    }

    #[test]
    fn an_out_of_order_record_waits_for_the_store() {
        let (mut sequencer, now) = start();
        let open = Fill {
            after: 10,
            until: None,
        };
        // As after a restart of the store with another log.
        sequencer.handle_live(3, 2, 3, now);
        assert_eq!(sequencer.poll_request(), Some(open));
        sequencer.handle_live(12, 3, 12, now);
        assert_eq!(drain(&mut sequencer), [0; 0]);
        sequencer.handle_fill(open, [], 10, now);
        assert_eq!(drain(&mut sequencer), [12]);
    }

    #[test]
    fn nothing_of_the_feed_passes_while_the_store_is_asked_whether_it_is_the_same() {
        let (mut sequencer, now) = start();
        // Another log has come to the same number.
        sequencer.handle_live(8, 3, 8, now);
        sequencer.handle_live(12, 10, 12, now);
        assert_eq!(drain(&mut sequencer), [0; 0]);
        let open = sequencer.poll_request().unwrap();
        sequencer.handle_fill(open, [], 10, now);
        assert_eq!(drain(&mut sequencer), [12]);
    }

    #[test]
    fn a_gap_is_filled_before_what_follows_it() {
        let (mut sequencer, now) = start();
        sequencer.handle_live(15, 13, 15, now);
        assert_eq!(sequencer.poll_request(), Some(fill(10, 13)));
        sequencer.handle_live(18, 15, 18, now);
        assert_eq!(
            (sequencer.poll_request(), drain(&mut sequencer)),
            (None, vec![])
        );
        sequencer.handle_fill(fill(10, 13), [(11, 11), (13, 13)], 13, now);
        assert_eq!(drain(&mut sequencer), [11, 13, 15, 18]);
        assert_eq!(
            (sequencer.poll_request(), sequencer.poll_timeout()),
            (None, None)
        );
    }

    #[test]
    fn the_rest_of_a_short_page_is_requested() {
        let (mut sequencer, now) = start();
        sequencer.handle_live(15, 13, 15, now);
        assert_eq!(sequencer.poll_request(), Some(fill(10, 13)));
        sequencer.handle_fill(fill(10, 13), [(11, 11)], 11, now);
        assert_eq!(sequencer.poll_request(), Some(fill(11, 13)));
        assert_eq!(drain(&mut sequencer), [11]);
    }

    #[test]
    fn an_incomplete_page_is_requested_again_later() {
        let (mut sequencer, now) = start();
        sequencer.handle_live(15, 13, 15, now);
        assert_eq!(sequencer.poll_request(), Some(fill(10, 13)));
        sequencer.handle_fill(fill(10, 13), [], 10, now);
        assert_eq!(sequencer.poll_request(), None);
        let later = sequencer.poll_timeout().unwrap();
        sequencer.handle_timeout(later);
        assert_eq!(sequencer.poll_request(), Some(fill(10, 13)));
    }

    #[test]
    fn a_check_finds_records_lost_at_the_end_of_the_feed() {
        let (mut sequencer, now) = start();
        sequencer.check(now);
        let open = |after| Fill { after, until: None };
        assert_eq!(sequencer.poll_request(), Some(open(10)));
        sequencer.handle_fill(open(10), [(11, 11)], 11, now);
        assert_eq!(sequencer.poll_request(), Some(open(11)));
        sequencer.check(now);
        sequencer.handle_fill(open(11), [], 11, now);
        assert_eq!(sequencer.poll_request(), Some(open(11)), "checked again");
        sequencer.handle_fill(open(11), [], 11, now);
        assert_eq!(
            (sequencer.poll_request(), sequencer.poll_timeout()),
            (None, None)
        );
        assert_eq!(drain(&mut sequencer), [11]);
    }

    #[test]
    fn records_beyond_the_buffer_are_read_later() {
        let now = Instant::now();
        let mut sequencer = Sequencer::new(0, 1);
        for sequence in 2..6 {
            sequencer.handle_live(sequence, sequence - 1, sequence, now);
        }
        assert_eq!(sequencer.poll_request(), Some(fill(0, 1)));
        sequencer.handle_fill(fill(0, 1), [(1, 1)], 1, now);
        assert_eq!(drain(&mut sequencer), [1, 2]);
        assert_eq!(sequencer.poll_request(), Some(fill(2, 5)));
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_store(seed: u64, max_held in 0_usize..5) {
            let rng = &mut Rng::new(seed);
            let mut now = Instant::now();
            let mut sequencer = Sequencer::new(0, max_held);
            let mut stored = vec![0];
            let mut line = Vec::new();
            let mut seen = Vec::new();
            for round in 0..300 {
                let quiet = round > 200;
                if !quiet && rng.chance(60) {
                    let previous = stored[stored.len() - 1];
                    let sequence = previous + 1 + rng.below(3);
                    stored.push(sequence);
                    if rng.chance(70) {
                        line.push((sequence, previous));
                    }
                }
                if !line.is_empty() && rng.chance(60) {
                    let at = usize::try_from(rng.below(line.len().min(3) as u64)).unwrap();
                    let (sequence, previous) = if rng.chance(90) { line.remove(at) } else { line[at] };
                    sequencer.handle_live(sequence, previous, sequence, now);
                }
                if quiet || rng.chance(5) {
                    sequencer.check(now);
                }
                if let Some(fill) = sequencer.poll_request().filter(|_| rng.chance(80)) {
                    let page = 1 + usize::try_from(rng.below(4)).unwrap();
                    let all = stored.iter().copied().filter(|at| {
                        *at > fill.after && fill.until.is_none_or(|until| *at <= until)
                    });
                    let items: Vec<_> = all.take(page).map(|at| (at, at)).collect();
                    let last = items.last().map_or(fill.after, |(at, _)| *at);
                    sequencer.handle_fill(fill, items, last, now);
                }
                now += Duration::from_secs(1);
                sequencer.handle_timeout(now);
                prop_assert!(sequencer.held.len() <= max_held);
                seen.extend(drain(&mut sequencer));
            }
            prop_assert_eq!(&seen[..], &stored[1..]);
            prop_assert_eq!(sequencer.poll_timeout().is_none() || sequencer.unchecked, true);
        }
    }
}
