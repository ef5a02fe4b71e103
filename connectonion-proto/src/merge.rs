//! The choice between two copies of a session: [`merge`].
//!
//! A client keeps the conversation and sends it with CONNECT; a server keeps its own copy with the
//! work of its agent. The copy with the later `turn` is the newer one, then the one with the higher
//! `iteration` in that turn, then the one with the later `updated`. If all three are equal, the
//! client's copy is used. A member that is absent, or not a representable number, counts as 0. The
//! newer copy is used whole, unknown members included; copies are never mixed.

use rpc_core::Json;
use rpc_core::json::{each_member, find_member};

use crate::auth::whole;

/// The chosen copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Merged<'a> {
    /// Its text, as received; `None` if there is no copy.
    pub(crate) session: Option<&'a str>,
    /// Whether it is the server's. CONNECTED then says `server_newer` and carries the session.
    pub(crate) server_newer: bool,
}

/// Chooses between the server's copy of a session and the client's. ConnectOnion specification,
/// *CONNECT*; a server calls it before it answers CONNECT.
///
/// A text that is not a JSON object counts as no copy, and loses against any copy.
pub(crate) fn merge<'a>(server: Option<&'a str>, client: Option<&'a str>) -> Merged<'a> {
    let with_version = |text: Option<&'a str>| text.and_then(|it| Some((it, version(it)?)));
    let (server, client) = (with_version(server), with_version(client));
    let server_newer = match (&server, &client) {
        (Some((_, server)), Some((_, client))) => server > client,
        (server, _) => server.is_some(),
    };
    let winner = if server_newer { server } else { client };
    Merged {
        session: winner.map(|(text, _)| text),
        server_newer,
    }
}

/// Returns the turn of a session, if it is a number that counts turns.
pub(crate) fn turn_of(session: &Json) -> Option<u64> {
    number(find_member(session.get(), "turn")?.get()).map(whole)
}

/// Returns `turn`, `iteration` and `updated` of a session's text, to be compared in this order:
/// `iteration` counts within a turn and starts again at 1. `None` if the text is not a JSON object.
/// Of a repeated member the last one counts, as for all other readers of the text.
fn version(session: &str) -> Option<[f64; 3]> {
    let (mut turn, mut iteration, mut updated) = (0.0, 0.0, 0.0);
    let read = each_member(session, |name, value| {
        let place = match &*name {
            "turn" => &mut turn,
            "iteration" => &mut iteration,
            "updated" => &mut updated,
            _ => return,
        };
        *place = number(value).unwrap_or_default();
    });
    read.ok().map(|()| [turn, iteration, updated])
}

/// Returns a number that a double can hold.
fn number(json: &str) -> Option<f64> {
    let is_number = json.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let number = is_number.then(|| json.parse().ok()).flatten();
    number.filter(|it: &f64| it.is_finite())
}

#[cfg(test)]
mod tests;
