//! [`Index`]: the positions of the last records of sessions in a file of lines.

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::record::{Record, RecordStatus};
use crate::hub::Owner;

/// A line in the file, without its line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Span {
    /// Returns the length with the line break.
    const fn size(self) -> u64 {
        self.len as u64 + 1
    }
}

/// The facts about a session that need no reading of its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    /// The lines of the record: the last one, and those that it adds to.
    pub(crate) lines: Vec<Span>,
    pub(crate) status: RecordStatus,
    pub(crate) expires: Option<f64>,
    pub(crate) owner: Option<Owner>,
    /// Whether the owner is that of a line which is replaced.
    pub(crate) inherits_owner: bool,
}

impl Slot {
    /// Returns how many bytes of the file belong to this session.
    pub(crate) fn size(&self) -> u64 {
        self.lines.iter().copied().map(Span::size).sum()
    }
}

/// The sessions of a file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Index {
    slots: HashMap<Box<str>, Slot>,
    /// The length of the file.
    pub(crate) len: u64,
    /// Whether the file ends in the middle of a line.
    pub(crate) is_torn: bool,
    /// The number of lines that are not records.
    pub(crate) skipped: u64,
}

impl Index {
    /// Reads a file from its beginning. Lines that are not records, or longer than `max_line`
    /// bytes, are skipped, and so is an incomplete last line.
    pub(crate) fn read(mut file: impl BufRead, max_line: usize) -> io::Result<Self> {
        let mut index = Self::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            let (size, is_whole) = read_line(&mut file, max_line, &mut line)?;
            if size == 0 {
                return Ok(index);
            }
            let offset = index.len;
            index.len += size;
            index.is_torn = !is_whole;
            if line.is_empty() {
                continue;
            }
            let span = Span {
                offset,
                len: line.len(),
            };
            if line.len() > max_line || !index.take(span, &line) {
                index.skipped += 1;
            }
        }
    }

    /// Adds a line to the index. Returns `false` if it is not a record.
    pub(crate) fn take(&mut self, span: Span, line: &[u8]) -> bool {
        let found = std::str::from_utf8(line).ok();
        let Some(found) = found.and_then(|line| Record::parse(line).ok()) else {
            return false;
        };
        let before = self.slots.remove(&*found.session_id);
        let before = before.filter(|it| found.follows(it.owner, &it.status, it.expires));
        let owner = found.owner.or_else(|| before.as_ref()?.owner);
        let (mut lines, inherits_owner) = match before {
            Some(before) if found.session.is_none() => (before.lines, before.inherits_owner),
            _ => (Vec::new(), owner != found.owner),
        };
        lines.push(span);
        let slot = Slot {
            lines,
            inherits_owner,
            status: found.status,
            expires: found.expires,
            owner,
        };
        self.slots.insert((&*found.session_id).into(), slot);
        true
    }

    pub(crate) fn get(&self, session_id: &str) -> Option<&Slot> {
        self.slots.get(session_id)
    }

    pub(crate) fn sessions(&self) -> usize {
        self.slots.len()
    }

    /// Returns how many bytes of the file belong to the sessions that satisfy `keep`.
    pub(crate) fn live(&self, keep: impl Fn(&Slot) -> bool) -> u64 {
        let slots = self.slots.values().filter(|slot| keep(slot));
        slots.map(Slot::size).sum()
    }

    /// Returns the sessions that satisfy `keep`, in the order of their last records.
    pub(crate) fn list(&self, keep: impl Fn(&Slot) -> bool) -> Vec<(&str, &Slot)> {
        let slots = self.slots.iter().map(|(id, slot)| (&**id, slot));
        let mut list: Vec<_> = slots.filter(|(_, slot)| keep(slot)).collect();
        list.sort_unstable_by_key(|(_, slot)| slot.lines.last().copied());
        list
    }
}

/// Reads a line, without its line break. Returns its length in the file, and whether the line break
/// was there. Of a line longer than `max` bytes, at most one more is kept.
fn read_line(file: &mut impl BufRead, max: usize, line: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    let mut size = 0;
    loop {
        let buffer = match file.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok((size, false));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        let room = (max + 1).saturating_sub(line.len());
        let piece = buffer.get(..end.unwrap_or(taken)).unwrap_or_default();
        line.extend(piece.iter().take(room));
        file.consume(taken);
        size += taken as u64;
        if end.is_some() {
            return Ok((size, true));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    /// Short enough for inputs to reach.
    const MAX_LINE: usize = 200;

    fn read(file: &[u8], pieces: usize) -> Index {
        Index::read(BufReader::with_capacity(pieces, file), MAX_LINE).unwrap()
    }

    proptest! {
        #[test]
        fn an_index_points_to_the_last_records_however_a_file_is_read(
            pieces in 1..256_usize,
            lines in prop::collection::vec(
                r#"\{"session_id":"[ab]","status":"(running|done|x)","created":1,?("(session|prompt|result|owner)":("unsigned"|"a"|7|\{\}|\{"a":\r1\}),?){0,4}\}[ \r]?"#,
                0..6,
            ),
            junk in prop::collection::vec(any::<u8>(), 0..9),
            end in r#"\n|\{"sess|"#,
        ) {
            let text = lines.join("\n").replace(",}", "}") + &end;
            let file = [text.as_bytes(), &junk[..]].concat();
            let index = read(&file, file.len().max(1));
            prop_assert_eq!(&index, &read(&file, pieces));
            prop_assert_eq!(index.is_torn, file.last().is_some_and(|it| *it != b'\n'));
            // The last line counts as if its line break were there.
            prop_assert!(index.live(|_| true) <= index.len + 1);
            for (id, slot) in index.list(|_| true) {
                let last = slot.lines.last().unwrap();
                let at = usize::try_from(last.offset).unwrap();
                let line = std::str::from_utf8(&file[at..at + last.len]).unwrap();
                let record = Record::parse(line).unwrap();
                prop_assert_eq!((&*record.session_id, &record.status), (id, &slot.status));
            }
        }
    }
}
