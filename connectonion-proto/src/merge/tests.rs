//! Merging two copies of a session: vectors, and rules for any two.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

#[derive(serde::Deserialize)]
struct Vector {
    what: String,
    server: Option<String>,
    client: Option<String>,
    server_newer: bool,
}

#[test]
fn merges_match_the_vectors() {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../tests/vectors/merge.json")).unwrap();
    assert!(vectors.len() >= 30);
    for Vector {
        what,
        server,
        client,
        server_newer,
    } in vectors
    {
        let (server, client) = (server.as_deref(), client.as_deref());
        let merged = merge(server, client);
        assert_eq!(merged.server_newer, server_newer, "{what}");
        if server_newer {
            assert_eq!(merged.session, server, "{what}");
        } else if let Some(session) = merged.session {
            assert_eq!(Some(session), client, "{what}");
        }
    }
}

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
fn the_iteration_decides_within_a_turn_and_then_the_time() {
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
fn an_absent_session_loses_the_merge() {
    assert!(merge(Some("{}"), None).server_newer);
    assert_eq!(merge(Some("{}"), None).session, Some("{}"));
    assert_eq!(merge(None, Some("{}")).session, Some("{}"));
    assert!(!merge(None, Some("{}")).server_newer);
    assert_eq!(merge(None, None).session, None);
    assert!(!merge(None, None).server_newer);
}

#[test]
fn a_session_that_is_not_an_object_counts_as_absent() {
    for text in ["", "null", "[]", r#""x""#, "7", r#"{"turn":9"#] {
        assert!(merge(Some("{}"), Some(text)).server_newer, "{text}");
        assert_eq!(merge(Some(text), None).session, None, "{text}");
    }
}

#[test]
fn a_non_number_counts_as_0() {
    for turn in [r#""9""#, "null", "true", "[9]", r#"{"turn":9}"#, "1e999"] {
        let text = format!(r#"{{"turn":{turn},"updated":5}}"#);
        assert_eq!(version(&text), Some([0.0, 0.0, 5.0]), "{turn}");
    }
    assert!(newer("{}", r#"{"turn":-1}"#));
}

#[test]
fn the_last_repeated_member_wins() {
    let text = r#"{"turn":9,"turn":1,"\u0074urn":2,"turns":7}"#;
    assert_eq!(version(text), Some([2.0, 0.0, 0.0]));
}

#[test]
fn the_winner_is_kept_verbatim() {
    let server = r#" { "turn" : 1, "mine": {"b":1,"a":[ 1.50 ]}, "\u00fc": null } "#;
    assert_eq!(merge(Some(server), Some("{}")).session, Some(server));
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..4_i32).prop_map(|it| it.to_string()),
        2 => (0..4_i32).prop_map(|it| format!("{it}.0")),
        1 => (0.0..4.0_f64).prop_map(|it| format!("{it:?}")),
        1 => prop::sample::select(vec!["null", "\"2\"", "true", "[1]", "-1", "1e999"])
            .prop_map(str::to_owned),
    ]
}

fn session() -> impl Strategy<Value = Option<String>> {
    let member = |name: &'static str| {
        prop::option::weighted(
            0.8,
            number().prop_map(move |it| format!(r#""{name}":{it}"#)),
        )
    };
    let other = (0..9_u8).prop_map(|it| Some(format!(r#""other":{it}"#)));
    let members = (
        member("turn"),
        member("iteration"),
        member("updated"),
        other,
    );
    let object = members.prop_map(|(turn, iteration, updated, other)| {
        let members = [other, turn, iteration, updated];
        let members: Vec<_> = members.into_iter().flatten().collect();
        format!("{{{}}}", members.join(","))
    });
    prop_oneof![
        8 => object.prop_map(Some),
        1 => Just(None),
        1 => Just(Some("[]".to_owned())),
    ]
}

/// The turn of a copy, which is an object.
fn turn_of(copy: &str) -> Option<f64> {
    let members: HashMap<String, &RawValue> = serde_json::from_str(copy).ok()?;
    let turn = members.get("turn").and_then(|turn| turn.get().parse().ok());
    Some(turn.filter(|it: &f64| it.is_finite()).unwrap_or_default())
}

proptest! {
    #[test]
    fn merging_is_idempotent(server in session(), client in session()) {
        let (server, client) = (server.as_deref(), client.as_deref());
        let merged = merge(server, client);
        prop_assert_eq!(merge(server, merged.session).session, merged.session);
        prop_assert_eq!(merge(merged.session, merged.session).session, merged.session);
        // A client that took what it was given is up to date.
        if merged.session.is_some() {
            prop_assert!(!merge(merged.session, merged.session).server_newer);
        }
    }

    #[test]
    fn merging_is_symmetric_unless_versions_are_equal(
        one in session(),
        other in session(),
    ) {
        let (one, other) = (one.as_deref(), other.as_deref());
        let (here, there) = (merge(one, other), merge(other, one));
        prop_assert!(!(here.server_newer && there.server_newer));
        if here.server_newer || there.server_newer {
            prop_assert_eq!(here.session, there.session);
        }
    }

    #[test]
    fn the_newer_turn_is_never_lost(server in session(), client in session()) {
        let (server, client) = (server.as_deref(), client.as_deref());
        let merged = merge(server, client);
        for copy in [server, client].into_iter().flatten() {
            let Some(turn) = turn_of(copy) else { continue };
            prop_assert!(!merge(Some(copy), merged.session).server_newer);
            prop_assert!(merged.session.and_then(turn_of) >= Some(turn));
        }
    }
}
