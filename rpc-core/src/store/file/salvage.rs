//! What can be read of a damaged file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use redb::{ReadableTable, ReadableTableMetadata, StorageBackend};

use super::disk::Disk;
use super::guard::guard;
use super::{Opener, ROWS, StoreError, frame};
use crate::store::local::{Recount, Table};
use crate::sync::Mutex;

/// How many bytes are looked through at once.
const PIECE: usize = 8 * 1024 * 1024;
/// How often a page is read, of which a file may say that it is below itself.
const READS: u32 = 64;
/// Where the format of redb has its flags, and the one for a file that was not closed.
const FLAGS: u64 = 9;
const UNCLEAN: u8 = 2;

/// What was taken over of a damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// How many records can be read.
    pub found: u64,
    /// How many records are known of which nothing can be read.
    pub damaged: u64,
}

/// Takes over what can be read into an empty table: what the database reaches, the frames of rows that it finds
/// damaged, and, if it does not come through, all frames that there are. Among those may be records that were removed.
pub(super) fn salvage(from: &Disk, into: &dyn Table) -> Result<Salvaged, StoreError> {
    let mut recount = Recount::new(into);
    let (mut failed, mut damaged) = (None, BTreeSet::new());
    let mut add = |(key, value): (&[u8], &[u8])| {
        if failed.is_none() {
            failed = recount.add(key, value).err();
        }
    };
    let is_walked = walk(from, &mut |key, framed| match frame::find(framed) {
        Some(found) => add(found),
        None if frame::is_empty(key, framed) => add((key, &[])),
        None => drop(damaged.insert(key.to_vec())),
    });
    if !is_walked || !damaged.is_empty() {
        let scanning = scan(from, &mut |key, value| {
            if !is_walked || damaged.contains(key) {
                add((key, value));
            }
        });
        scanning.map_err(StoreError::unavailable)?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let (found, damaged) = recount.finish()?;
    Ok(Salvaged { found, damaged })
}

/// Reads the rows from both ends. Returns whether it has read all.
fn walk(disk: &Disk, take: &mut dyn FnMut(&[u8], &[u8])) -> bool {
    let walking = || {
        let frozen = Frozen::new(disk, READS).ok()?;
        let database = Opener::database(frozen, 0).ok()?;
        let rows = database.begin_read().ok()?.open_table(ROWS).ok()?;
        let (expected, mut count) = (rows.len().ok()?, 0);
        for is_reversed in [false, true] {
            let mut rows = rows.iter().ok()?;
            while let Some(row) = match is_reversed {
                false => rows.next(),
                true => rows.next_back(),
            } {
                let Ok((key, value)) = row else {
                    break;
                };
                take(key.value(), value.value());
                count += 1;
            }
            // A damaged file may say that it is empty.
            if count == expected && count > 0 {
                return Some(());
            }
        }
        None
    };
    guard(walking).flatten().is_some()
}

/// Finds all frames.
fn scan(disk: &Disk, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<()> {
    let (len, mut at) = (disk.len()?, 0);
    while at < len {
        let piece = PIECE.min(usize::try_from(len - at).unwrap_or(PIECE));
        let bytes = disk.read(at, piece)?;
        // A frame at the end of it is whole in the next one.
        let is_end = at + piece as u64 == len;
        let end = if is_end { piece } else { piece / 2 };
        for start in memchr::memmem::find_iter(&bytes, &frame::MARK).take_while(|it| *it < end) {
            if let Some((key, value)) = frame::find(&bytes[start..]) {
                take(key, value);
            }
        }
        at += end as u64;
    }
    Ok(())
}

/// A file that is not changed: what is written is in memory.
#[derive(Debug)]
pub(super) struct Frozen {
    disk: Disk,
    state: Mutex<State>,
    /// How often a page may be read.
    reads: u32,
}

#[derive(Debug)]
struct State {
    len: u64,
    /// What is written, and where; later ones count.
    written: Vec<(u64, Vec<u8>)>,
    reads: BTreeMap<u64, u32>,
}

impl Frozen {
    /// With all that a database does not look at after it was closed well.
    pub(super) fn unclean(disk: &Disk) -> io::Result<Self> {
        let frozen = Self::new(disk, u32::MAX)?;
        let mut flags = frozen.read(FLAGS, 1)?;
        flags.iter_mut().for_each(|flags| *flags |= UNCLEAN);
        frozen.write(FLAGS, &flags)?;
        Ok(frozen)
    }

    fn new(disk: &Disk, reads: u32) -> io::Result<Self> {
        let state = State {
            len: disk.len()?,
            written: Vec::new(),
            reads: BTreeMap::new(),
        };
        Ok(Self {
            disk: disk.clone(),
            state: Mutex::new(state),
            reads,
        })
    }
}

impl StorageBackend for Frozen {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().len)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock();
        let reads = state.reads.entry(offset).or_default();
        *reads += 1;
        if *reads > self.reads || offset.saturating_add(len as u64) > state.len {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let there = self.disk.len()?.saturating_sub(offset);
        let there = usize::try_from(there).map_or(len, |there| there.min(len));
        let mut bytes = match there {
            0 => Vec::new(),
            _ => self.disk.read(offset, there)?,
        };
        bytes.resize(len, 0);
        for (at, written) in &state.written {
            let (ahead, behind) = (at.saturating_sub(offset), offset.saturating_sub(*at));
            let (Ok(ahead), Ok(behind)) = (usize::try_from(ahead), usize::try_from(behind)) else {
                continue;
            };
            let new = written.iter().skip(behind);
            bytes
                .iter_mut()
                .skip(ahead)
                .zip(new)
                .for_each(|(byte, new)| *byte = *new);
        }
        Ok(bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.state.lock().len = len;
        Ok(())
    }

    fn sync_data(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = &mut self.state.lock().written;
        written.retain(|(at, known)| *at != offset || known.len() > bytes.len());
        written.push((offset, bytes.to_vec()));
        Ok(())
    }
}
