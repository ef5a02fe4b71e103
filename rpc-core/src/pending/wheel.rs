//! The timing wheel: lists of slab slots by deadline, threaded through the slots themselves.
//!
//! Level `n` has 64 buckets of 64^n ticks each. An entry lies on the level of the highest digit
//! (in base 64) in which its tick differs from the wheel's, in the bucket of that digit. The place
//! thus depends on the two ticks alone: entries with the same tick always share a list, which
//! keeps them in order of insertion, and when the wheel reaches a bucket of a higher level, its
//! entries move down. Ticks are 64 bits wide and there are levels for all of them, so no deadline
//! is too far.

use std::time::Duration;

use super::slab::Slot;
use crate::Instant;

/// "No slot": the end of a list, or an empty list.
pub(super) const NIL: u32 = u32::MAX;
/// The tick of an entry without a deadline.
pub(super) const NEVER: u64 = u64::MAX;

const NANOS_PER_TICK: u32 = 1_000_000;
const TICKS_PER_SECOND: u64 = 1_000;
const DIGIT_BITS: u32 = 6;
const BUCKETS: u32 = 1 << DIGIT_BITS;
/// How many entries of the next bucket are looked at to find the exact deadline.
const EXACT_WITHIN: usize = 8;

/// The list of an entry. Buckets are numbered `level * 64 + digit`.
const HOME_DUE: u32 = u32::MAX;
const HOME_IDLE: u32 = u32::MAX - 1;
const HOME_NONE: u32 = u32::MAX - 2;

/// The wheel's data in each slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// The tick at which the entry is due, or [`NEVER`].
    pub(super) when: u64,
    prev: u32,
    /// The next slot of the list; in a vacant slot the next vacant one.
    pub(super) next: u32,
    home: u32,
    /// How often the slot has been vacated. The slab's; it lies here to share the padding.
    pub(super) generation: u32,
}

impl Links {
    pub(super) const fn unlinked(when: u64, generation: u32) -> Self {
        Self {
            when,
            prev: NIL,
            next: NIL,
            home: HOME_NONE,
            generation,
        }
    }
}

struct Level {
    /// Bit `n` is set if bucket `n` is not empty.
    occupied: u64,
    /// First entry of each list. Lists are rings, so the last is the first one's `prev`.
    heads: [u32; BUCKETS as usize],
}

impl Level {
    const EMPTY: Self = Self {
        occupied: 0,
        heads: [NIL; BUCKETS as usize],
    };
}

pub(super) struct Wheel {
    origin: Instant,
    /// Everything up to this tick has been moved to `due`.
    elapsed: u64,
    due: u32,
    /// No later than the earliest tick in `due`.
    due_from: u64,
    idle: u32,
    /// The last deadline and its tick: calls that begin together end together.
    last: (Instant, u64),
    /// Grows with the farthest deadline, so that a connection without calls holds nothing.
    levels: Vec<Level>,
}

impl Wheel {
    pub(super) const fn new(origin: Instant) -> Self {
        Self {
            origin,
            elapsed: 0,
            due: NIL,
            due_from: 0,
            idle: NIL,
            last: (origin, 0),
            levels: Vec::new(),
        }
    }

    /// Returns the first tick at or after the deadline.
    pub(super) fn tick_of(&mut self, deadline: Option<Instant>) -> u64 {
        let Some(deadline) = deadline else {
            return NEVER;
        };
        if self.last.0 != deadline {
            let after = deadline.saturating_duration_since(self.origin);
            let tick = ticks(after, after.subsec_nanos().div_ceil(NANOS_PER_TICK));
            self.last = (deadline, tick);
        }
        self.last.1
    }

    fn last_tick_at(&self, now: Instant) -> u64 {
        let after = now.saturating_duration_since(self.origin);
        ticks(after, after.subsec_nanos() / NANOS_PER_TICK)
    }

    /// Appends the slot, whose `when` is set, to its list.
    pub(super) fn link<T>(&mut self, slots: &mut [Slot<T>], slot: u32) {
        let when = slots[slot as usize].links.when;
        let (head, home) = if when == NEVER {
            (&mut self.idle, HOME_IDLE)
        } else if when <= self.elapsed {
            self.due_from = if self.due == NIL {
                when
            } else {
                self.due_from.min(when)
            };
            (&mut self.due, HOME_DUE)
        } else {
            let level = (u64::BITS - 1 - (self.elapsed ^ when).leading_zeros()) / DIGIT_BITS;
            let digit = digit(when, level);
            while self.levels.len() <= level as usize {
                self.levels.push(Level::EMPTY);
            }
            let place = &mut self.levels[level as usize];
            place.occupied |= 1 << digit;
            (&mut place.heads[digit as usize], level * BUCKETS + digit)
        };
        if *head == NIL {
            *head = slot;
            let links = &mut slots[slot as usize].links;
            (links.prev, links.next, links.home) = (slot, slot, home);
        } else {
            let last = slots[*head as usize].links.prev;
            slots[last as usize].links.next = slot;
            slots[*head as usize].links.prev = slot;
            let links = &mut slots[slot as usize].links;
            (links.prev, links.next, links.home) = (last, *head, home);
        }
    }

    /// Removes the slot from its list.
    pub(super) fn unlink<T>(&mut self, slots: &mut [Slot<T>], slot: u32) {
        let Links {
            prev, next, home, ..
        } = slots[slot as usize].links;
        let alone = next == slot;
        if !alone {
            slots[prev as usize].links.next = next;
            slots[next as usize].links.prev = prev;
        }
        let new_head = if alone { NIL } else { next };
        let head = match home {
            HOME_NONE => return,
            HOME_DUE => &mut self.due,
            HOME_IDLE => &mut self.idle,
            bucket => {
                let level = &mut self.levels[(bucket / BUCKETS) as usize];
                if alone {
                    level.occupied &= !(1 << (bucket % BUCKETS));
                }
                &mut level.heads[(bucket % BUCKETS) as usize]
            }
        };
        if *head == slot {
            *head = new_head;
        }
        slots[slot as usize].links.home = HOME_NONE;
    }

    /// Moves the wheel to `now`, or to the first tick before it at which something is due, and
    /// returns the first entry that is due. It stays linked.
    pub(super) fn advance<T>(&mut self, slots: &mut [Slot<T>], now: Instant) -> Option<u32> {
        if self.due == NIL {
            let now = self.last_tick_at(now);
            while self.due == NIL {
                match self.next_bucket() {
                    Some((level, digit, start)) if start <= now => {
                        self.elapsed = start;
                        self.empty_bucket(slots, level, digit);
                    }
                    _ => {
                        self.elapsed = self.elapsed.max(now);
                        return None;
                    }
                }
            }
        }
        Some(self.due)
    }

    /// Returns any entry, those with the earliest deadlines first. It stays linked.
    pub(super) fn any(&self) -> Option<u32> {
        if self.due != NIL {
            return Some(self.due);
        }
        if let Some((level, digit, _)) = self.next_bucket() {
            return Some(self.levels[level as usize].heads[digit as usize]);
        }
        (self.idle != NIL).then_some(self.idle)
    }

    /// Returns when [`advance`](Self::advance) will have something to do.
    pub(super) fn poll_timeout<T>(&self, slots: &[Slot<T>]) -> Option<Instant> {
        let tick = self.next_tick(slots)?;
        // Past the end of `Instant` is "never" as well as anything can be.
        self.origin.checked_add(Duration::from_millis(tick))
    }

    fn next_tick<T>(&self, slots: &[Slot<T>]) -> Option<u64> {
        if self.due != NIL {
            return Some(self.due_from);
        }
        let (level, digit, start) = self.next_bucket()?;
        if level == 0 {
            return Some(start);
        }
        let head = self.levels[level as usize].heads[digit as usize];
        let mut earliest = NEVER;
        let mut slot = head;
        for _ in 0..EXACT_WITHIN {
            let links = &slots[slot as usize].links;
            earliest = earliest.min(links.when);
            slot = links.next;
            if slot == head {
                return Some(earliest);
            }
        }
        Some(start)
    }

    /// Returns the next bucket in time: level, digit, first tick. Lower levels come before higher
    /// ones, and within a level every used bucket is ahead.
    fn next_bucket(&self) -> Option<(u32, u32, u64)> {
        let (level, place) = (0..)
            .zip(&self.levels)
            .find(|(_, level)| level.occupied != 0)?;
        let digit = place.occupied.trailing_zeros();
        let shift = level * DIGIT_BITS;
        let above = u64::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
        Some((
            level,
            digit,
            self.elapsed & above | u64::from(digit) << shift,
        ))
    }

    /// Relinks the entries of a bucket, in their order.
    fn empty_bucket<T>(&mut self, slots: &mut [Slot<T>], level: u32, digit: u32) {
        let place = &mut self.levels[level as usize];
        place.occupied &= !(1 << digit);
        let head = std::mem::replace(&mut place.heads[digit as usize], NIL);
        if head == NIL {
            return;
        }
        let last = slots[head as usize].links.prev;
        let mut slot = head;
        loop {
            let next = slots[slot as usize].links.next;
            self.link(slots, slot);
            if slot == last {
                break;
            }
            slot = next;
        }
    }

    /// Frees all memory. Nothing may be linked.
    pub(super) fn free(&mut self) {
        self.levels = Vec::new();
    }
}

/// Returns the ticks in the whole seconds of a duration, plus `more`. Avoids the 128 bits of
/// `as_nanos`, whose division takes longer than the rest of a call here.
fn ticks(duration: Duration, more: u32) -> u64 {
    let whole = duration.as_secs().saturating_mul(TICKS_PER_SECOND);
    whole.saturating_add(u64::from(more)).min(NEVER - 1)
}

/// The base-64 digit of a tick at a level.
fn digit(tick: u64, level: u32) -> u32 {
    // The mask leaves six bits.
    u32::try_from(tick >> (level * DIGIT_BITS) & u64::from(BUCKETS - 1)).unwrap_or(0)
}
