//! [`Part`]: what one record of a session's log holds.

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::SessionHead;
use crate::Str;

/// The format that is written. A record of another one is as good as unreadable.
const FORMAT: u32 = 1;

/// A part of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) header: Header,
    pub(super) head: SessionHead,
    pub(super) body: Bytes,
}

/// The first line of a record, in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The format.
    pub(super) v: u32,
    /// Which record of its session it is, from 1: by a gap a reader knows that one is lost.
    #[serde(rename = "n")]
    pub(super) place: u64,
    /// Which part of the entry it is, from 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) part: usize,
    /// How many parts the entry has; 0 if the session is removed.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) of: usize,
    /// Whether nothing before the entry is needed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) whole: bool,
    /// The number of the writer's ownership; 0 without.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) fence: u64,
    /// The bytes of the session so far.
    pub(super) bytes: u64,
    /// The session's id, if its subject does not tell it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) id: Str,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) owner: Str,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) expires: Option<u64>,
    /// The length of the application's part of the head.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) head: usize,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_one(number: &usize) -> bool {
    *number == 1
}

impl Part {
    /// Returns the record, and the number of its bytes.
    pub(super) fn encode(mut header: Header, head: &SessionHead, body: &[u8]) -> Bytes {
        header.v = FORMAT;
        header.owner.clone_from(&head.owner);
        header.expires = head.expires;
        header.head = head.data.len();
        // Texts and numbers are JSON.
        let line = serde_json::to_vec(&header).unwrap_or_default();
        let len = line.len() + 1 + head.data.len() + body.len();
        let mut record = BytesMut::with_capacity(len);
        record.extend_from_slice(&line);
        record.extend_from_slice(b"\n");
        record.extend_from_slice(&head.data);
        record.extend_from_slice(body);
        record.freeze()
    }

    /// Parses a record. `None` if it is not one of this format.
    pub(super) fn parse(record: &Bytes) -> Option<Self> {
        let end = record.iter().position(|byte| *byte == b'\n')?;
        let header: Header = crate::json::from_slice(record.get(..end)?).ok()?;
        let middle = end.checked_add(1)?.checked_add(header.head)?;
        if header.v != FORMAT || middle > record.len() {
            return None;
        }
        let head = SessionHead {
            owner: header.owner.clone(),
            expires: header.expires,
            // The head is kept, and the record is not.
            data: Bytes::copy_from_slice(record.get(end + 1..middle)?),
        };
        let body = record.slice(middle..);
        Some(Self { header, head, body })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_round_trip(
            place in any::<u64>(),
            part in 0..5_usize,
            of in 0..5_usize,
            whole in any::<bool>(),
            owner in any::<String>(),
            expires in any::<Option<u64>>(),
            data in prop::collection::vec(any::<u8>(), 0..40),
            body in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let header = Header { place, part, of, whole, fence: 7, bytes: 9, ..Header::default() };
            let head = SessionHead { owner: owner.into(), expires, data: data.into() };
            let read = Part::parse(&Part::encode(header.clone(), &head, &body)).unwrap();
            prop_assert_eq!((read.header.place, read.header.part, read.header.of), (place, part, of));
            prop_assert_eq!((read.header.whole, read.header.fence, read.header.bytes), (whole, 7, 9));
            prop_assert_eq!((read.head, &read.body[..]), (head, &body[..]));
        }

        #[test]
        fn arbitrary_records_are_refused_without_a_panic(record in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(Part::parse(&record.into()), None);
            let cut = Bytes::from_static(b"{\"v\":1,\"n\":1,\"bytes\":1,\"head\":18446744073709551615}\n");
            prop_assert_eq!(Part::parse(&cut), None);
        }
    }
}
