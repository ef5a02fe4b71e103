//! [`judge`]: the shapes and limits of frames by the specification of each protocol, for all that shows or judges frames.
//!
//! They stand in `shapes/`, a file for each protocol, with a line for each kind: `c2s` or `s2c`, the kind of the frame,
//! or of the frame and what it answers (`result/ping`), and a [pattern](crate::pattern) with all of its members. `*`
//! stands for each kind, `event` for the events of a run, and a second line of a kind has more to say of it. A line
//! `limit s2c BYTES` has the size of the largest text; `open s2c members` says that frames may have further members, and
//! `open s2c REGEX` that there may be further kinds like that. Such ones are not known, and not wrong.

use std::rc::Rc;
use std::sync::LazyLock;

use regex::Regex;
use rpc_core::testing::Side;
use rustc_hash::FxHashMap;

use crate::Protocol;
use crate::frame::{Fault, Frame};
use crate::pattern::{Pattern, Walk};

/// The shapes of a protocol.
#[derive(Debug)]
struct Shapes {
    /// For each side, by the kind: what its frames are.
    sides: [FxHashMap<String, Vec<Pattern>>; 2],
    limits: [usize; 2],
    open: [Open; 2],
}

/// What a side may send beside what is known.
#[derive(Debug, Default)]
struct Open {
    members: bool,
    kinds: Option<Regex>,
}

fn shapes(protocol: Protocol) -> &'static Shapes {
    static SNEK: LazyLock<Shapes> = LazyLock::new(|| read(include_str!("shapes/snek.suite")));
    static EXOCLAW: LazyLock<Shapes> = LazyLock::new(|| read(include_str!("shapes/exoclaw.suite")));
    static SMARTHOLE: LazyLock<Shapes> =
        LazyLock::new(|| read(include_str!("shapes/smarthole.suite")));
    static CONNECTONION: LazyLock<Shapes> =
        LazyLock::new(|| read(include_str!("shapes/connectonion.suite")));
    static ACOLYTE: LazyLock<Shapes> = LazyLock::new(|| read(include_str!("shapes/acolyte.suite")));
    match protocol {
        Protocol::Snek => &SNEK,
        Protocol::Exoclaw => &EXOCLAW,
        Protocol::SmartHole => &SMARTHOLE,
        Protocol::ConnectOnion => &CONNECTONION,
        Protocol::Acolyte => &ACOLYTE,
    }
}

fn read(text: &str) -> Shapes {
    let mut shapes = Shapes {
        sides: [FxHashMap::default(), FxHashMap::default()],
        limits: [usize::MAX; 2],
        open: Default::default(),
    };
    // A test reads all of them: no line is left out.
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(first), Some(second), Some(rest)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        match (first, side(first), side(second)) {
            ("limit", _, Some(at)) => {
                if let Some(limit) = shapes.limits.get_mut(at) {
                    *limit = rest.parse().unwrap_or(usize::MAX);
                }
            }
            ("open", _, Some(at)) => {
                if let Some(open) = shapes.open.get_mut(at) {
                    match rest {
                        "members" => open.members = true,
                        kinds => open.kinds = Regex::new(kinds).ok(),
                    }
                }
            }
            (_, Some(at), _) => {
                let pattern = serde_json::from_str(rest)
                    .ok()
                    .and_then(|it| Pattern::new(&it).ok());
                if let Some(side) = shapes.sides.get_mut(at) {
                    side.entry(second.to_owned()).or_default().extend(pattern);
                }
            }
            _ => {}
        }
    }
    shapes
}

fn side(word: &str) -> Option<usize> {
    ["c2s", "s2c"].iter().position(|it| *it == word)
}

/// What the table says of a frame.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Whether the protocol has its kind.
    pub(crate) is_known: bool,
    /// Why it is none of the protocol.
    pub(crate) fault: Option<Fault>,
    /// The members that the protocol does not have, as paths.
    pub(crate) unknown: Vec<String>,
    /// Why its kind or its members are wrong that are not known: some protocols may have others.
    pub(crate) stray: Option<String>,
}

impl Shapes {
    /// Returns what the frames of a kind are.
    fn of(&self, from: Side, kind: &str) -> &[Pattern] {
        let side = self.sides.get(usize::from(from == Side::Server));
        side.and_then(|it| it.get(kind)).map_or(&[], Vec::as_slice)
    }
}

/// Judges the shape and the size of a frame. `kind` is the one of the frame.
pub(crate) fn judge<'a>(
    (protocol, from, is_sse): (Protocol, Side, bool),
    frame: &Frame<'a>,
    text: &'a str,
) -> Judged {
    let shapes = shapes(protocol);
    let limit = shapes.limits.get(usize::from(from == Side::Server));
    if let Some(limit) = limit.filter(|limit| text.len() > **limit) {
        let error = format!("{} bytes: the limit is {limit}", text.len());
        let fault = Some(Fault { error, at: *limit });
        return Judged {
            is_known: true,
            fault,
            ..Judged::default()
        };
    }
    let kind = &*frame.kind;
    let is_event = protocol == Protocol::ConnectOnion
        && from == Side::Server
        && kind.starts_with(|c: char| c.is_ascii_lowercase());
    let root = text.trim_ascii();
    // The event in a frame of a chat, or the whole frame of a stream.
    let inner = match kind.strip_prefix("chat.event/") {
        Some(event) => frame.raw("event").map(|raw| (event, raw)),
        None => is_sse.then_some((kind, root)),
    };
    let outer = inner.map_or(kind, |_| "chat.event");
    let of = |name: &str| shapes.of(from, if is_sse { "" } else { name });
    let others = of("*").iter();
    let others = others.chain(of(if is_event { "event" } else { "" }));
    let main = of(outer);
    let carried = inner.map(|(event, raw)| (shapes.of(from, &format!("event/{event}")), raw));
    let is_known =
        (is_sse || !main.is_empty()) && carried.is_none_or(|(patterns, _)| !patterns.is_empty());
    let mut known = vec![(root, Rc::clone(&frame.members))];
    known.extend(frame.inner.clone());
    let mut walk = Walk {
        whole: text,
        known,
        ..Walk::default()
    };
    let (patterns, raw) = carried.unwrap_or_default();
    let whole = others.clone().chain(main).map(|it| (it, root));
    let mut all = whole.chain(patterns.iter().map(|it| (it, raw)));
    let wrong = all.find_map(|(it, raw)| it.walk(Some(raw), &mut walk).err());
    let mut unknown = Vec::new();
    if is_known && wrong.is_none() {
        let known: Vec<&str> = others.flat_map(Pattern::members).collect();
        for pattern in main {
            pattern.unknown(root, &mut walk, &known, "", &mut unknown);
        }
        let path = if is_sse { "" } else { "event." };
        for pattern in patterns {
            pattern.unknown(raw, &mut walk, &[], path, &mut unknown);
        }
    }
    let open = shapes.open.get(usize::from(from == Side::Server));
    let may_be = |open: &Open| open.kinds.as_ref().is_some_and(|it| it.is_match(kind));
    let stray = match &unknown[..] {
        _ if !is_known && !open.is_some_and(may_be) => Some("the kind is not known".to_owned()),
        [path, more @ ..] if !open.is_some_and(|it| it.members) => Some(match more {
            [] => format!("the member `{path}` is not known"),
            _ => format!("the member `{path}` and others are not known"),
        }),
        _ => None,
    };
    let fault = wrong.map(|wrong| Fault {
        error: wrong.to_string(),
        at: wrong.at,
    });
    Judged {
        is_known,
        fault,
        unknown,
        stray,
    }
}

/// Returns what is wrong with the shape of a frame that answers one of the `asked` kind.
pub(crate) fn answers(
    protocol: Protocol,
    from: Side,
    kind: &str,
    asked: &str,
    text: &str,
) -> Option<Fault> {
    let patterns = shapes(protocol).of(from, &format!("{kind}/{asked}"));
    let wrong = patterns.iter().find_map(|it| it.matches(text).err())?;
    let (error, at) = (wrong.to_string(), wrong.at);
    Some(Fault { error, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_shapes_is_read() {
        for text in [
            include_str!("shapes/snek.suite"),
            include_str!("shapes/exoclaw.suite"),
            include_str!("shapes/smarthole.suite"),
            include_str!("shapes/connectonion.suite"),
            include_str!("shapes/acolyte.suite"),
        ] {
            let lines = text
                .lines()
                .filter(|it| it.starts_with("c2s") || it.starts_with("s2c"));
            for line in lines {
                let pattern = line.splitn(3, ' ').nth(2).unwrap();
                let value =
                    serde_json::from_str(pattern).unwrap_or_else(|error| panic!("{line}: {error}"));
                Pattern::new(&value).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
}
