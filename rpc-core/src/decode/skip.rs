//! Skipping a value of any depth without recursion.

use super::DecodeError;
use super::reader::Reader;

impl Reader<'_> {
    /// Skips a value, checking that it is JSON.
    pub(super) fn skip_value(&mut self) -> Result<(), DecodeError> {
        match self.token() {
            Some(b'{' | b'[') => self.skip_container(),
            _ => self.skip_scalar(),
        }
    }

    fn skip_container(&mut self) -> Result<(), DecodeError> {
        let mut open = Nesting::default();
        loop {
            // A value begins here. An empty container is left to what follows a value.
            match self.token() {
                Some(b'{') => {
                    self.at += 1;
                    open.push(true);
                    if self.token() != Some(b'}') {
                        self.skip_name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    open.push(false);
                    if self.token() != Some(b']') {
                        continue;
                    }
                }
                _ => self.skip_scalar()?,
            }
            // What follows a value: the end of containers, then another value.
            loop {
                match (self.token(), open.in_object()) {
                    (Some(b','), in_object) => {
                        self.at += 1;
                        if in_object {
                            self.skip_name()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        open.pop();
                        if open.depth == 0 {
                            return Ok(());
                        }
                    }
                    _ => return Err(self.syntax()),
                }
            }
        }
    }
}

/// The containers that are open, a bit for each: 1 is an object.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    /// The innermost ones, the last in the lowest bit.
    bits: u64,
    /// Full words of those around them. Stays empty, and costs no allocation, up to 64 levels.
    outer: Vec<u64>,
}

impl Nesting {
    const WORD: usize = 64;

    fn push(&mut self, object: bool) {
        if self.depth % Self::WORD == 0 && self.depth > 0 {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth % Self::WORD == 0 {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    const fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}
