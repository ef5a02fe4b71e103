//! The frame of a value in the file: a mark, its lengths, a checksum, the key once more, and the value.
//!
//! So it is found in a file whose other parts are damaged. An empty value has the checksum of the key alone.

use bytes::Bytes;

use crate::store::Row;

pub(super) const MARK: [u8; 4] = *b"\xf1SB\x01";
/// Mark, checksum, length of the key, length of the value.
const HEAD: usize = 4 + 4 + 2 + 4;

pub(super) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    if value.is_empty() {
        return crc32fast::hash(key).to_be_bytes().to_vec();
    }
    // Keys and values are checked to be short.
    let lens = (
        u16::try_from(key.len()).unwrap_or(u16::MAX),
        u32::try_from(value.len()).unwrap_or(u32::MAX),
    );
    let lens = [&lens.0.to_be_bytes()[..], &lens.1.to_be_bytes()].concat();
    let sum = sum(&[&lens, key, value]).to_be_bytes();
    [&MARK, &sum[..], &lens, key, value].concat()
}

fn sum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// The row of a key and a framed value.
pub(super) fn open(key: &[u8], framed: &[u8]) -> Row {
    let value = match find(framed) {
        Some((found, value)) if found == key => Some(Bytes::copy_from_slice(value)),
        _ => is_empty(key, framed).then(Bytes::new),
    };
    (key.to_vec(), value)
}

/// Whether it is that of an empty value.
pub(super) fn is_empty(key: &[u8], framed: &[u8]) -> bool {
    *framed == crc32fast::hash(key).to_be_bytes()
}

/// The key and the value of the frame that begins here.
pub(super) fn find(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (mark, head) = head.split_at(4);
    let (expected, lens) = head.split_at(4);
    let (key, value) = lens.split_at(2);
    let key = usize::from(u16::from_be_bytes(key.try_into().ok()?));
    let value = u32::from_be_bytes(value.try_into().ok()?) as usize;
    if mark != MARK {
        return None;
    }
    let (key, rest) = rest.split_at_checked(key)?;
    let value = rest.get(..value)?;
    (sum(&[lens, key, value]).to_be_bytes() == expected).then_some((key, value))
}
