//! Merging two copies of a session: vectors, and rules for any two.

use std::collections::HashMap;

use connectonion_proto::merge::merge;
use proptest::prelude::*;
use serde_json::value::RawValue;

#[derive(serde::Deserialize)]
struct Vector {
    what: String,
    server: Option<String>,
    client: Option<String>,
    server_newer: bool,
}

#[test]
fn the_vectors_come_out_as_written() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../vectors/merge.json")).unwrap();
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
    fn merging_again_changes_nothing(server in session(), client in session()) {
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
    fn the_sides_do_not_matter_unless_the_versions_are_equal(
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

    #[test]
    fn what_comes_out_is_what_went_in(server in session(), client in session()) {
        let merged = merge(server.as_deref(), client.as_deref());
        if let Some(session) = merged.session {
            let from = if merged.server_newer { &server } else { &client };
            prop_assert_eq!(Some(session), from.as_deref());
        }
    }

    #[test]
    fn three_copies_meet_at_the_newest(a in session(), b in session(), c in session()) {
        let (a, b, c) = (a.as_deref(), b.as_deref(), c.as_deref());
        let left = merge(merge(a, b).session, c);
        let right = merge(a, merge(b, c).session);
        prop_assert!(!merge(left.session, right.session).server_newer);
        prop_assert!(!merge(right.session, left.session).server_newer);
    }
}
