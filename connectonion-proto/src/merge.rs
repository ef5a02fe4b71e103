//! The choice between two copies of a session: [`merge`].
//!
//! A client keeps the conversation and sends it with CONNECT; a server keeps its own copy with the
//! work of its agent. The copy with the later `turn` is the newer one, then the one with the higher
//! `iteration` in that turn, then the one with the later `updated`. If all three are equal, the
//! client's copy is used. A member that is absent, or not a representable number, counts as 0. The
//! newer copy is used whole, unknown members included; copies are never mixed.
//!
//! ```
//! use connectonion_proto::merge::merge;
//!
//! let stored = r#"{"messages":[{"role":"user","content":"hi"}],"turn":2,"iteration":1}"#;
//! let sent = r#"{"messages":[],"turn":1,"iteration":7,"mode":"safe"}"#;
//! let merged = merge(Some(stored), Some(sent));
//! assert!(merged.server_newer);
//! assert_eq!(merged.session, Some(stored));
//! ```

use rpc_core::json::each_member;

/// The chosen copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged<'a> {
    /// Its text, as received; `None` if there is no copy.
    pub session: Option<&'a str>,
    /// Whether it is the server's. CONNECTED then says `server_newer` and carries the session.
    pub server_newer: bool,
}

/// Chooses between the server's copy of a session and the client's. ConnectOnion specification,
/// *CONNECT*; a server calls it before it answers CONNECT.
///
/// A text that is not a JSON object counts as no copy, and loses against any copy.
#[must_use]
pub fn merge<'a>(server: Option<&'a str>, client: Option<&'a str>) -> Merged<'a> {
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
mod tests {
    use super::*;

    fn newer(server: &str, client: &str) -> bool {
        merge(Some(server), Some(client)).server_newer
    }

    #[test]
    fn a_later_turn_beats_any_iteration() {
        assert!(newer(
            r#"{"turn":2,"iteration":2}"#,
            r#"{"turn":1,"iteration":7}"#
        ));
        assert!(!newer(
            r#"{"turn":1,"iteration":7}"#,
            r#"{"turn":2,"iteration":2}"#
        ));
    }

    #[test]
    fn within_a_turn_the_iteration_decides_and_then_the_time() {
        assert!(newer(
            r#"{"turn":1,"iteration":3,"updated":1.5}"#,
            r#"{"turn":1,"iteration":2,"updated":9}"#
        ));
        assert!(newer(
            r#"{"turn":1,"iteration":3,"updated":1795293457.0320854}"#,
            r#"{"turn":1,"iteration":3,"updated":1795293457.0320852}"#
        ));
    }

    #[test]
    fn the_client_wins_a_tie() {
        let (server, client) = (
            r#"{"turn":1,"by":"server"}"#,
            r#"{"turn":1.0,"by":"client"}"#,
        );
        let merged = merge(Some(server), Some(client));
        assert!(!merged.server_newer);
        assert_eq!(merged.session, Some(client));
        assert!(!newer(r#"{"turn":0}"#, r#"{"turn":-0.0}"#));
    }

    #[test]
    fn who_sends_nothing_loses() {
        assert!(merge(Some("{}"), None).server_newer);
        assert_eq!(merge(Some("{}"), None).session, Some("{}"));
        assert_eq!(merge(None, Some("{}")).session, Some("{}"));
        assert!(!merge(None, Some("{}")).server_newer);
        assert_eq!(merge(None, None).session, None);
        assert!(!merge(None, None).server_newer);
    }

    #[test]
    fn a_session_that_is_no_object_is_none() {
        for text in ["", "null", "[]", r#""x""#, "7", r#"{"turn":9"#] {
            assert!(merge(Some("{}"), Some(text)).server_newer, "{text}");
            assert_eq!(merge(Some(text), None).session, None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_counts_as_0() {
        for turn in [r#""9""#, "null", "true", "[9]", r#"{"turn":9}"#, "1e999"] {
            let text = format!(r#"{{"turn":{turn},"updated":5}}"#);
            assert_eq!(version(&text), Some([0.0, 0.0, 5.0]), "{turn}");
        }
        assert!(newer("{}", r#"{"turn":-1}"#));
    }

    #[test]
    fn of_a_repeated_member_the_last_one_counts() {
        let text = r#"{"turn":9,"turn":1,"\u0074urn":2,"turns":7}"#;
        assert_eq!(version(text), Some([2.0, 0.0, 0.0]));
    }

    #[test]
    fn the_winner_is_taken_as_it_came() {
        let server = r#" { "turn" : 1, "mine": {"b":1,"a":[ 1.50 ]}, "\u00fc": null } "#;
        assert_eq!(merge(Some(server), Some("{}")).session, Some(server));
    }
}
