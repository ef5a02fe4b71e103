//! [`AddressList`]: a file with one address per line.

use std::collections::HashSet;
use std::fmt;

use rpc_core::Refused;

use crate::auth::Address;
use crate::limits::MAX_ADDRESSES;

/// A list of addresses, as the known hosts keep it in a file: one address per line, in any
/// spelling, and comments after a `#`. A line with `*` is a pattern: it matches addresses that
/// contain everything but the stars (`0x3d40*`); a star alone matches every address.
///
/// ```
/// use connectonion_proto::auth::{Address, AddressList};
///
/// let list = AddressList::parse("# friends\n0x0101*\n");
/// assert!(list.contains(&Address::from_bytes([1; 32])));
/// assert!(!list.contains(&Address::from_bytes([2; 32])));
/// ```
#[derive(Clone, Default)]
pub struct AddressList {
    /// As they were read, so that a list can be written again.
    lines: Vec<String>,
    addresses: HashSet<Address>,
    /// The parts that an address must contain, in lower case.
    patterns: Vec<String>,
}

impl AddressList {
    /// Parses a list. A line that is neither an address nor a pattern nor a comment is kept and
    /// matches nothing: see [`unknown_lines`](Self::unknown_lines).
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut list = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for line in text.lines() {
            let entry = without_comment(line);
            if let Ok(address) = Address::parse(entry) {
                list.addresses.insert(address);
            } else if entry.contains('*') {
                list.patterns.push(entry.replace('*', "").to_lowercase());
            }
            list.lines.push(line.to_owned());
        }
        list
    }

    /// Returns whether an address is in the list, itself or by a pattern.
    #[must_use]
    pub fn contains(&self, address: &Address) -> bool {
        if self.addresses.contains(address) {
            return true;
        }
        if self.patterns.is_empty() {
            return false;
        }
        let text = address.to_string();
        self.patterns.iter().any(|pattern| text.contains(pattern))
    }

    /// Adds an address. Returns `false` if it is already in the list, itself or by a pattern.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if the list is full.
    pub fn insert(&mut self, address: Address) -> Result<bool, Refused> {
        if self.contains(&address) {
            return Ok(false);
        }
        if self.addresses.len() >= MAX_ADDRESSES {
            let why = format!("it takes {MAX_ADDRESSES} addresses");
            return Err(Refused::invalid("list", why));
        }
        self.addresses.insert(address);
        self.lines.push(address.to_string());
        Ok(true)
    }

    /// Removes an address. Returns `false` if it was not there. A pattern may still match it.
    pub fn remove(&mut self, address: &Address) -> bool {
        if !self.addresses.remove(address) {
            return false;
        }
        self.lines
            .retain(|line| Address::parse(without_comment(line)) != Ok(*address));
        true
    }

    /// Returns whether the list has neither addresses nor patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.patterns.is_empty()
    }

    /// Returns the addresses in the list in no particular order, without those that only a pattern
    /// matches.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.iter()
    }

    /// Returns the lines that match nothing, because they are neither an address nor a pattern nor
    /// a comment, with their numbers from 1. Report them to the operator, who expects them to have
    /// an effect.
    pub fn unknown_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().enumerate().filter_map(|(at, line)| {
            let entry = without_comment(line);
            let is_known = entry.is_empty() || entry.contains('*') || Address::parse(entry).is_ok();
            (!is_known).then_some((at + 1, entry))
        })
    }
}

/// Returns the part of a line before its comment.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// Prints the list so that it can be read again: lines that were read as they were, and added
/// addresses in their usual spelling.
impl fmt::Display for AddressList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

// Prints the size of the list.
rpc_core::debug_fields!([] AddressList, this => {
    addresses: this.addresses.len(),
    patterns: this.patterns.len(),
});
