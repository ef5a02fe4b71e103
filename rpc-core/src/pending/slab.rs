//! The slab under both tables: slots with a generation, and the timing wheel through them.

use super::Match;
use super::wheel::{Links, NEVER, NIL, Wheel};
use crate::Instant;

pub(super) struct Slot<T> {
    value: Option<T>,
    pub(super) links: Links,
}

/// The slot of an entry, and its generation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    wheel: Wheel,
    /// First vacant slot, or [`NIL`].
    free: u32,
    len: u32,
    max: u32,
    /// The generation of new slots, and the number of slots before memory was freed: addresses in
    /// those slots below this generation have ended.
    base_generation: u32,
    base_slots: u32,
}

impl<T> Slab<T> {
    pub(super) fn new(max: usize, origin: Instant) -> Self {
        Self {
            slots: Vec::new(),
            wheel: Wheel::new(origin),
            free: NIL,
            len: 0,
            max: u32::try_from(max).unwrap_or(NIL),
            base_generation: 0,
            base_slots: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn max(&self) -> usize {
        self.max as usize
    }

    /// Returns the address that the next insert will use.
    pub(super) fn next_address(&self) -> Option<Address> {
        if self.len >= self.max {
            return None;
        }
        if let Some(slot) = self.slots.get(self.free as usize) {
            return Some(Address {
                slot: self.free,
                generation: slot.links.generation,
            });
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        Some(Address {
            slot,
            generation: self.base_generation,
        })
    }

    /// Stores an entry; returns it if the slab is full.
    pub(super) fn insert(&mut self, value: T, deadline: Option<Instant>) -> Result<Address, T> {
        let Some(address) = self.next_address() else {
            return Err(value);
        };
        let when = self.wheel.tick_of(deadline);
        if let Some(slot) = self.slots.get_mut(address.slot as usize) {
            self.free = slot.links.next;
            slot.value = Some(value);
            slot.links.when = when;
        } else {
            let links = Links::unlinked(when, address.generation);
            if self.slots.capacity() == 0 {
                // Left to itself it would make room for four; many connections make one call.
                self.slots.reserve_exact(1);
            }
            self.slots.push(Slot {
                value: Some(value),
                links,
            });
        }
        self.len += 1;
        self.wheel.link(&mut self.slots, address.slot);
        Ok(address)
    }

    pub(super) fn slot_state(&self, address: Address) -> Match<()> {
        let slot = self.slots.get(address.slot as usize);
        match slot {
            Some(slot) if slot.links.generation == address.generation && slot.value.is_some() => {
                Match::Live(())
            }
            Some(slot) if address.generation < slot.links.generation => Match::Late,
            None if address.slot < self.base_slots && address.generation < self.base_generation => {
                Match::Late
            }
            _ => Match::Unknown,
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.value.as_mut()
    }

    /// Changes the deadline of the entry in the slot. Returns `false` if the slot is empty.
    pub(super) fn extend(&mut self, slot: u32, deadline: Option<Instant>) -> bool {
        if self.get(slot).is_none() {
            return false;
        }
        self.wheel.unlink(&mut self.slots, slot);
        self.slots[slot as usize].links.when = self.wheel.tick_of(deadline);
        self.wheel.link(&mut self.slots, slot);
        true
    }

    /// Removes the entry from the slot.
    pub(super) fn remove(&mut self, slot: u32) -> Option<(Address, T)> {
        let entry = self.slots.get_mut(slot as usize)?;
        let value = entry.value.take()?;
        let generation = entry.links.generation;
        self.wheel.unlink(&mut self.slots, slot);
        let links = &mut self.slots[slot as usize].links;
        *links = Links::unlinked(NEVER, generation.wrapping_add(1));
        links.next = self.free;
        self.free = slot;
        self.len -= 1;
        Some((Address { slot, generation }, value))
    }

    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<(Address, T)> {
        let slot = self.wheel.advance(&mut self.slots, now)?;
        self.remove(slot)
    }

    pub(super) fn peek_expired(&mut self, now: Instant) -> Option<Address> {
        let slot = self.wheel.advance(&mut self.slots, now)?;
        let generation = self.slots.get(slot as usize)?.links.generation;
        Some(Address { slot, generation })
    }

    /// Removes any entry; frees all memory when there is none.
    pub(super) fn pop_any(&mut self) -> Option<(Address, T)> {
        if let Some(slot) = self.wheel.any() {
            return self.remove(slot);
        }
        self.give_memory_back();
        None
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.wheel.poll_timeout(&self.slots)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Address, &T)> {
        (0..).zip(&self.slots).filter_map(|(slot, entry)| {
            let address = Address {
                slot,
                generation: entry.links.generation,
            };
            entry.value.as_ref().map(|value| (address, value))
        })
    }

    fn give_memory_back(&mut self) {
        let highest = self.slots.iter().map(|slot| slot.links.generation).max();
        // Slots made later start above every generation that was used, so no id comes twice.
        self.base_generation = self.base_generation.max(highest.unwrap_or(0));
        self.base_slots = self
            .base_slots
            .max(u32::try_from(self.slots.len()).unwrap_or(self.base_slots));
        self.slots = Vec::new();
        self.free = NIL;
        self.wheel.free();
    }
}
