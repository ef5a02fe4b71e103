//! The hub by itself: conversations have a size, each, those of a caller, and all.

use connectonion_proto::auth::Address;
use connectonion_proto::frame::{Connect, Signed};
use connectonion_proto::internals::ConnId;
use connectonion_proto::session::{HubConfig, Owner};
use rpc_core::Json;

use crate::hub_play::{self, Play};

const ALICE: Owner = Owner::Key(Address::from_bytes([0xa1; 32]));

fn config() -> HubConfig {
    hub_play::config(|it| {
        it.max_session_bytes = 100_000;
        it.max_owner_bytes = 250_000;
        it.max_held_bytes = 400_000;
    })
}

fn conversation(bytes: usize) -> Connect {
    let session = format!(
        r#"{{"messages":[{{"role":"user","content":"{}"}}],"turn":1}}"#,
        "x".repeat(bytes)
    );
    let mut connect = Connect::new(Signed::none());
    connect.session = Some(Json::new(&session).unwrap());
    connect
}

fn enter(play: &mut Play, conn: u64, owner: Owner, bytes: usize) -> bool {
    play.connect_with(conn, owner, conversation(bytes));
    play.store_all();
    play.sockets[&ConnId(conn)].accepted > 0
}

fn refused(play: &Play, conn: u64) -> &str {
    play.sockets[&ConnId(conn)].refused.last().unwrap()
}

#[test]
fn an_oversized_conversation_is_refused_with_its_size_and_a_remedy() {
    let mut play = Play::new(config());
    assert!(!enter(&mut play, 1, ALICE, 100_001));
    let words = refused(&play, 1);
    assert!(
        words.contains("takes 100000: begin a new session"),
        "{words}"
    );
    assert!(enter(&mut play, 1, ALICE, 60_000));
    // It grows by what is said.
    play.input(1, &"y".repeat(50_000));
    let words = refused(&play, 1);
    assert!(words.contains("this host takes 100000"), "{words}");
    play.input(1, "a short one");
    play.store_all();
    assert_eq!(play.agents.len(), 1);
    // While the agent works too.
    play.input(1, &"y".repeat(50_000));
    assert!(refused(&play, 1).contains("this host takes 100000"));
}

#[test]
fn bytes_are_bounded_per_caller_and_in_total() {
    let mut play = Play::new(config());
    let entered = |play: &mut Play, from: u64, owner: &dyn Fn(u64) -> Owner| {
        (from..from + 9)
            .filter(|conn| enter(play, *conn, owner(*conn), 60_000))
            .count()
    };
    assert_eq!(entered(&mut play, 100, &|_| Owner::Unsigned), 4);
    assert!(refused(&play, 108).contains("of your conversations"));
    let other = |conn: u64| Owner::Key(Address::from_bytes([conn.to_le_bytes()[0]; 32]));
    assert_eq!(entered(&mut play, 200, &other), 2);
    assert!(refused(&play, 208).contains("try again later"));
    // Who leaves makes room.
    play.disconnect(100);
    play.disconnect(200);
    assert!(enter(&mut play, 300, Owner::Unsigned, 60_000));
    assert!(enter(&mut play, 301, ALICE, 60_000));
}

#[test]
fn a_conversation_counts_once_across_reconnects() {
    let mut play = Play::new(config());
    let mut connect = conversation(90_000);
    connect.session_id = Some("s".into());
    assert!(enter(&mut play, 100, ALICE, 90_000));
    for turn in 0..30 {
        play.connect_with(turn, ALICE, connect.clone());
        play.store_all();
        assert_eq!(play.sockets[&ConnId(turn)].accepted, 1, "{turn}");
    }
}
