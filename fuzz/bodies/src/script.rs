//! [`Script`]: bytes as a list of operations.

use std::time::Duration;

/// Bytes as a list of operations.
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// These bytes.
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// The next byte; `None` at the end.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte; 0 at the end.
    pub(crate) fn byte_or_zero(&mut self) -> u8 {
        self.byte().unwrap_or_default()
    }

    /// A text: its length in a byte, then its bytes. Empty if it is not UTF-8.
    pub(crate) fn text(&mut self) -> &'a str {
        let len = usize::from(self.byte_or_zero()).min(self.0.len());
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// An item of a list; `None` if it is empty.
    pub(crate) fn pick<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        let at = usize::from(self.byte_or_zero());
        list.get(at.checked_rem(list.len())?)
    }

    /// A text of a list; empty if the list is.
    pub(crate) fn pick_text<'l>(&mut self, list: &[&'l str]) -> &'l str {
        self.pick(list).copied().unwrap_or_default()
    }

    /// One of these lines, in which `$ID` stands for one of the ids, the newest first, and `$TEXT` for
    /// the next text.
    pub(crate) fn line(&mut self, lines: &str, ids: &[String]) -> String {
        let lines: Vec<_> = lines.lines().collect();
        let mut line = self.pick_text(&lines).to_owned();
        if line.contains("$ID") {
            let at = usize::from(self.byte_or_zero()).checked_rem(ids.len());
            let id = at.and_then(|at| ids.iter().rev().nth(at));
            line = line.replace("$ID", id.map_or("rpc_a", String::as_str));
        }
        if line.contains("$TEXT") {
            line = line.replace("$TEXT", self.text());
        }
        line
    }

    /// Up to 255 s.
    pub(crate) fn seconds(&mut self) -> Duration {
        Duration::from_secs(u64::from(self.byte_or_zero()))
    }
}
