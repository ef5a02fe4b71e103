//! [`Part`]: what a message in the log of a session holds.

use bytes::{Bytes, BytesMut};
use rpc_core::Json;
use rpc_core::json::find_member;

use crate::frame::Replay;
use crate::replay::Entry;

/// What the parts make up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line of the storage.
    Record,
    /// A line for each event.
    Events,
}

/// A part of a record or of some events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) kind: Kind,
    /// The number of the ownership that wrote it.
    pub(super) owner: u64,
    pub(super) number: usize,
    /// How many parts there are; 0 if it only says who the owner is.
    pub(super) of: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Part<'a> {
    pub(super) fn encode(&self) -> Bytes {
        let kind = match self.kind {
            Kind::Record => 1,
            Kind::Events => 2,
        };
        let head = format!("{kind} {} {} {}\n", self.owner, self.number, self.of);
        let mut message = BytesMut::with_capacity(head.len() + self.bytes.len());
        message.extend_from_slice(head.as_bytes());
        message.extend_from_slice(self.bytes);
        message.freeze()
    }

    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        let end = message.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = message.split_at(end);
        let mut head = std::str::from_utf8(head).ok()?.split(' ');
        Some(Self {
            kind: match head.next()? {
                "1" => Kind::Record,
                "2" => Kind::Events,
                _ => return None,
            },
            owner: head.next()?.parse().ok()?,
            number: head.next()?.parse().ok()?,
            of: head.next()?.parse().ok()?,
            bytes: rest.get(1..)?,
        })
    }
}

/// Puts parts together.
#[derive(Default)]
pub(super) struct Parts {
    bytes: BytesMut,
    next: usize,
}

impl Parts {
    /// Takes a part. Returns what is complete with it.
    pub(super) fn take(&mut self, part: &Part<'_>) -> Option<(Kind, Bytes)> {
        if part.number == 0 {
            self.bytes.clear();
            self.next = 0;
        }
        if part.number != self.next || part.of == 0 {
            return None;
        }
        self.next += 1;
        self.bytes.extend_from_slice(part.bytes);
        (self.next == part.of).then(|| (part.kind, std::mem::take(&mut self.bytes).freeze()))
    }
}

/// Encodes events: each is one line, because JSON of this crate has no line breaks.
pub(super) fn encode_events(events: &[Entry]) -> String {
    let lines: Vec<_> = events.iter().map(|event| event.text().as_str()).collect();
    lines.join("\n")
}

/// Decodes events, with the ids that are in them. Leaves out what does not decode.
pub(super) fn decode_events(lines: &str) -> impl Iterator<Item = Entry> {
    lines
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            let id = find_member(line, "id");
            let id = id.as_ref().and_then(Json::as_str);
            Entry::new(line.into(), id.map(|id| (&*id).into()), Replay::Whole)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{EventKind, StreamEvent, Thinking, ToolCall};

    fn event() -> impl Strategy<Value = Entry> {
        (any::<Option<String>>(), any::<String>(), any::<bool>()).prop_map(|(id, text, calls)| {
            let kind = match calls {
                true => EventKind::ToolCall(ToolCall::new("t", text, Json::EMPTY_ARRAY)),
                false => EventKind::Thinking(Thinking::new(text)),
            };
            let mut event = StreamEvent::new(kind, "", 0.5, "s");
            event.id = id.map(Into::into);
            Entry::encode(&event).unwrap()
        })
    }

    proptest! {
        #[test]
        fn events_round_trip(
            events in prop::collection::vec(event(), 0..20),
            owner in any::<u64>(),
            size in 1..400_usize,
        ) {
            let lines = encode_events(&events);
            let pieces: Vec<_> = lines.as_bytes().chunks(size).collect();
            let mut parts = Parts::default();
            let mut whole = None;
            for (number, bytes) in pieces.iter().enumerate() {
                let part = Part { kind: Kind::Events, owner, number, of: pieces.len(), bytes };
                prop_assert_eq!(whole, None);
                let message = part.encode();
                prop_assert_eq!(Part::parse(&message), Some(part));
                whole = parts.take(&Part::parse(&message).unwrap());
            }
            let (kind, text) = whole.unwrap_or((Kind::Events, Bytes::new()));
            prop_assert_eq!(kind, Kind::Events);
            let decoded = decode_events(std::str::from_utf8(&text).unwrap());
            prop_assert_eq!(decoded.collect::<Vec<_>>(), events);
        }

        #[test]
        fn arbitrary_messages_never_panic(message in any::<Vec<u8>>(), lines in any::<String>()) {
            let mut parts = Parts::default();
            let _ = Part::parse(&message).and_then(|part| parts.take(&part));
            let _ = decode_events(&lines).count();
        }
    }
}
