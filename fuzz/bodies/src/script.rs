//! [`Script`]: bytes as a list of operations.

use std::time::Duration;

/// Bytes as a list of operations.
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// These bytes.
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// The first byte, which is one of settings, and the operations behind it.
    pub(crate) fn with_settings(data: &'a [u8]) -> (u8, Self) {
        let mut script = Self(data);
        (script.byte_or_zero(), script)
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

    /// A line of a text.
    pub(crate) fn pick_line(&mut self, lines: &'static str) -> &'static str {
        let lines: Vec<_> = lines.lines().collect();
        self.pick_text(&lines)
    }

    /// Up to 255 s.
    pub(crate) fn seconds(&mut self) -> Duration {
        Duration::from_secs(u64::from(self.byte_or_zero()))
    }
}
