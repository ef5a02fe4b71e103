//! [`check`]: the shapes and limits of frames by the specification of each protocol, for all that shows or judges frames.
//!
//! They stand in `shapes/`, a file for each protocol, with a line for each kind: `c2s` or `s2c`, the kind of the frame,
//! or of the frame and what it answers (`result/ping`), and a [pattern](crate::pattern). `*` stands for each kind, and
//! `event` for what a stream carries. A line `limit s2c BYTES` has the size of the largest text.

use std::sync::LazyLock;

use rpc_core::testing::Side;
use rustc_hash::FxHashMap;

use crate::Protocol;
use crate::frame::Fault;
use crate::pattern::Pattern;

/// The shapes of a protocol.
#[derive(Debug)]
struct Shapes {
    /// For each side.
    sides: [FxHashMap<String, Vec<Pattern>>; 2],
    limits: [usize; 2],
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

/// Returns what is wrong with the shape or the size of a frame of this kind, which answers the `asked` one.
pub(crate) fn check(
    protocol: Protocol,
    from: Side,
    kind: &str,
    asked: Option<&str>,
    text: &str,
) -> Option<Fault> {
    let shapes = shapes(protocol);
    let at = usize::from(from == Side::Server);
    let limit = shapes.limits.get(at).copied().unwrap_or(usize::MAX);
    if text.len() > limit {
        let error = format!("{} bytes: the limit is {limit}", text.len());
        return Some(Fault { error, at: limit });
    }
    let shapes = shapes.sides.get(at)?;
    let judge = |name: &str, text: &str| {
        let mut patterns = shapes.get(name).into_iter().flatten();
        patterns.find_map(|it| it.matches(text).err())
    };
    let answer = || judge(&format!("{kind}/{}", asked?), text);
    let event = kind.strip_prefix("chat.event/").map(|_| "event");
    let is_event = protocol == Protocol::ConnectOnion
        && from == Side::Server
        && kind.starts_with(|c: char| c.is_ascii_lowercase());
    let found = judge("*", text)
        .or_else(|| judge(kind, text))
        .or_else(answer)
        .or_else(|| judge(event.or(is_event.then_some("event"))?, text));
    found.map(|wrong| Fault {
        error: wrong.to_string(),
        at: wrong.at,
    })
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
