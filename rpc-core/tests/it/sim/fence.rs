//! [`Fence`]: whether an owner may still write.

/// The error of an owner that is one no longer: it stops working for the name at once. Retrying never helps;
/// claim the name again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced;

/// What an owner knows of the log of its name: by it the store refuses the writes of all others.
///
/// The log is one subject. Each write names the sequence number of the record before it
/// ([`expected`](Self::expected)), and the store refuses it if the subject's last record is another one.
/// A new owner
///
/// 1. reads the log to its end, giving each record to [`read`](Self::read);
/// 2. writes a record that says that it owns the name, with its [`fence`](Self::fence) number. If the store
///    refuses this one, another node wrote in between: it reads on and writes it again;
/// 3. works. If the store refuses a later write, another owner has taken over: it stops at once.
///
/// After step 2 every write of an earlier owner is refused. A late one that reads on in step 2 finds the
/// greater number of its successor and stops: two owners never take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    fence: u64,
    last: u64,
    owner: bool,
}

impl Fence {
    /// Begins an ownership with the number that the claim gives, before the log is read.
    pub const fn new(fence: u64) -> Self {
        Self {
            fence,
            last: 0,
            owner: false,
        }
    }

    /// Returns the number of this ownership.
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Returns the sequence number that the next write has to name: the subject's last record, 0 if it has
    /// none.
    pub const fn expected(&self) -> u64 {
        self.last
    }

    /// Returns whether the record that says who owns the name is stored.
    pub const fn is_owner(&self) -> bool {
        self.owner
    }

    /// Takes a record of the log, in order. `owner` is the number in it, if it says who owns the name.
    ///
    /// # Errors
    /// [`Fenced`]: there is a later owner, or a record that this owner did not write after its own.
    pub const fn read(&mut self, sequence: u64, owner: Option<u64>) -> Result<(), Fenced> {
        if sequence <= self.last {
            return Ok(());
        }
        match owner {
            Some(owner) if owner > self.fence => return Err(Fenced),
            Some(owner) if owner == self.fence => self.owner = true,
            _ if self.owner => return Err(Fenced),
            _ => {}
        }
        self.last = sequence;
        Ok(())
    }

    /// Notes that the store has this owner's next record; `owner` if it says who owns the name.
    pub const fn stored(&mut self, sequence: u64, owner: bool) {
        if sequence > self.last {
            self.last = sequence;
        }
        self.owner |= owner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_writes_after_what_it_has_read() {
        let mut fence = Fence::new(7);
        assert_eq!(fence.expected(), 0);
        fence.read(3, Some(2)).unwrap();
        fence.read(5, None).unwrap();
        assert_eq!((fence.expected(), fence.is_owner()), (5, false));
        fence.stored(9, true);
        assert_eq!((fence.expected(), fence.is_owner()), (9, true));
    }

    #[test]
    fn an_owner_stops_at_its_successors_record() {
        let mut fence = Fence::new(7);
        fence.read(3, Some(2)).unwrap();
        assert_eq!(fence.read(5, Some(8)), Err(Fenced));
    }

    #[test]
    fn an_owner_whose_record_is_stored_has_read_all_others() {
        let mut fence = Fence::new(7);
        fence.stored(9, true);
        assert_eq!(fence.read(9, None), Ok(()), "read before");
        assert_eq!(fence.read(11, None), Err(Fenced));
    }
}
