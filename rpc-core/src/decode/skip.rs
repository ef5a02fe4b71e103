//! Skipping a value of any depth without recursion.

use super::scan::{Misfit, number_end, past_space, string_end, word_end};

/// The index after a value, which is checked to be JSON, from its first byte.
pub(super) fn value_end(bytes: &[u8], at: usize) -> Result<usize, Misfit> {
    match bytes.get(at) {
        Some(b'{' | b'[') => container_end(bytes, at),
        _ => scalar_end(bytes, at),
    }
}

/// The same for a value that is no object and no array.
#[inline(always)]
fn scalar_end(bytes: &[u8], at: usize) -> Result<usize, Misfit> {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at + 1).map(|end| end + 1),
        Some(b'-' | b'0'..=b'9') => number_end(bytes, at),
        Some(b't') => word_end(bytes, at, "true"),
        Some(b'f') => word_end(bytes, at, "false"),
        Some(b'n') => word_end(bytes, at, "null"),
        _ => Err(Misfit(at)),
    }
}

fn container_end(bytes: &[u8], mut at: usize) -> Result<usize, Misfit> {
    let mut open = Nesting::default();
    loop {
        if open.in_object() {
            at = name_end(bytes, at)?;
        }
        // Whether a container is empty is left to what follows a value.
        match bytes.get(at) {
            Some(b'{') => {
                open.push(true);
                at = past_space(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    continue;
                }
            }
            Some(b'[') => {
                open.push(false);
                at = past_space(bytes, at + 1);
                if bytes.get(at) != Some(&b']') {
                    continue;
                }
            }
            _ => at = past_space(bytes, scalar_end(bytes, at)?),
        }
        // What follows a value: the end of containers, then a comma.
        loop {
            match (bytes.get(at), open.in_object()) {
                (Some(b','), _) => {
                    at = past_space(bytes, at + 1);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    open.pop();
                    if open.depth == 0 {
                        return Ok(at + 1);
                    }
                    at = past_space(bytes, at + 1);
                }
                _ => return Err(Misfit(at)),
            }
        }
    }
}

/// The index of a member's value, from its name.
#[inline(always)]
fn name_end(bytes: &[u8], at: usize) -> Result<usize, Misfit> {
    if bytes.get(at) != Some(&b'"') {
        return Err(Misfit(at));
    }
    let colon = past_space(bytes, string_end(bytes, at + 1)? + 1);
    if bytes.get(colon) != Some(&b':') {
        return Err(Misfit(colon));
    }
    Ok(past_space(bytes, colon + 1))
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
