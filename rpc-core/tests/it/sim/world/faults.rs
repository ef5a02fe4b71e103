//! Nodes that die, pause or are cut off, and a store that is away, full or slow.

use switchboard_testing::sim::tell;

use super::{Event, NODES, SECOND, Time, World};

impl World {
    /// One fault, and when the next one comes.
    pub(super) fn fault(&mut self) {
        if self.now >= self.calm_at {
            return;
        }
        self.faults += 1;
        let slot = self.rng.below(NODES as u64) as usize;
        let long = self.now + 1 + self.rng.below(25 * SECOND);
        let short = self.now + 1 + self.rng.below(5 * SECOND);
        match self.rng.below(100) {
            0..20 => {
                tell(|| format!("{} node on {slot} dies", self.now));
                self.kill(slot, 20 * SECOND);
            }
            20..50 => {
                tell(|| format!("{} node on {slot} pauses until {long}", self.now));
                self.slots[slot].paused_until = long;
                self.push(long, Event::Resume(slot));
            }
            50..75 => {
                tell(|| format!("{} node on {slot} is cut off until {long}", self.now));
                self.slots[slot].cut_until = long;
                self.push(long, Event::Interrupt(slot));
            }
            75..85 => {
                let until = if self.rng.chance(30) { long } else { short };
                tell(|| format!("{} the store is down until {until}", self.now));
                self.store_down_until = until;
                self.interrupt_all(until);
            }
            85..92 => {
                tell(|| format!("{} the store is full until {short}", self.now));
                self.full_until = short;
            }
            _ => {
                tell(|| format!("{} all is slow until {long}", self.now));
                self.slow_until = long;
            }
        }
        self.after(8 * SECOND, Event::Fault);
    }

    pub(super) fn interrupt_all(&mut self, at: Time) {
        for slot in 0..NODES {
            self.push(at, Event::Interrupt(slot));
        }
    }

    /// Ends all faults.
    pub(super) fn make_peace(&mut self) {
        tell(|| "peace".to_owned());
        self.now = self.calm_at;
        for slot in 0..NODES {
            let at = self.now;
            if self.slots[slot].paused_until > at {
                self.slots[slot].paused_until = at;
                self.push(at, Event::Resume(slot));
            }
            if self.slots[slot].cut_until > at {
                self.slots[slot].cut_until = at;
                self.push(at, Event::Interrupt(slot));
            }
            if self.slots[slot].node.as_ref().is_some_and(|node| node.lost) {
                self.kill(slot, SECOND);
            }
        }
        if self.store_down_until > self.now {
            self.store_down_until = self.now;
            self.interrupt_all(self.now);
        }
        self.full_until = 0;
        self.slow_until = 0;
    }

    pub(super) fn kill(&mut self, slot: usize, within: Time) {
        let at = &mut self.slots[slot];
        at.node = None;
        at.parked.clear();
        at.paused_until = 0;
        at.subscribed = false;
        at.timer_at = 0;
        self.after(within, Event::Start(slot));
    }
}
