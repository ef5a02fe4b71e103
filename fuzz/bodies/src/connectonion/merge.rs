//! Merging: the same decision made a second time, from what `serde_json` reads.

use std::collections::HashMap;

use connectonion_proto::merge::merge;
use serde_json::value::RawValue;

/// Of two texts, the server's and behind a line break the client's, the newer one is taken whole.
pub fn merge_texts(text: &str) {
    let (server, client) = match text.split_once('\n') {
        Some((server, client)) => (Some(server), Some(client)),
        None => (Some(text), None),
    };
    for (server, client) in [(server, client), (client, server)] {
        decided(server, client);
    }
}

fn decided(server: Option<&str>, client: Option<&str>) {
    let merged = merge(server, client);
    let (theirs, ours) = (server.and_then(version), client.and_then(version));
    let newer = match (theirs, ours) {
        (Some(theirs), Some(ours)) => theirs > ours,
        (theirs, _) => theirs.is_some(),
    };
    assert_eq!(merged.server_newer, newer, "whose is newer");
    let (winner, version) = if newer {
        (server, theirs)
    } else {
        (client, ours)
    };
    assert_eq!(merged.session, winner.filter(|_| version.is_some()));
    if let Some(session) = merged.session {
        assert_eq!(merge(server, Some(session)).session, Some(session));
        assert!(!merge(Some(session), Some(session)).server_newer);
    }
}

/// The three numbers; of a repeated member the last one.
fn version(session: &str) -> Option<[f64; 3]> {
    let members: HashMap<String, Box<RawValue>> = serde_json::from_str(session).ok()?;
    Some(["turn", "iteration", "updated"].map(|name| {
        let value = members.get(name).map_or("", |value| value.get());
        let is_number = value.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let number = value.parse().ok().filter(|it: &f64| it.is_finite());
        number.filter(|_| is_number).unwrap_or_default()
    }))
}
