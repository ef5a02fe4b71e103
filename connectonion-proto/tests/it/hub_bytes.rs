//! The hub by itself: conversations have a size, each, those of an address, and all.

use std::net::IpAddr;

use connectonion_proto::auth::Address;
use connectonion_proto::frame::{Connect, Signed};
use connectonion_proto::internals::ConnId;
use connectonion_proto::net::Prompt;
use connectonion_proto::session::{HubConfig, Owner};
use rpc_core::Json;
use serde_json::json;

use crate::hub_play::{self, Play};

const ALICE: Owner = Owner::Key(Address::from_bytes([0xa1; 32]));

fn config() -> HubConfig {
    hub_play::config(|it| {
        it.max_session_bytes = 100_000;
        it.max_held_bytes = 1_200_000;
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

fn stranger(number: u64) -> Owner {
    Owner::Key(Address::from_bytes([number.to_le_bytes()[0]; 32]))
}

/// A stranger with a key of its own enters from this address, and its agent works. Returns whether it does.
fn work_from(play: &mut Play, conn: u64, host: u8, bytes: usize) -> bool {
    let caller = Some(IpAddr::from([192, 0, 2, host]));
    play.connect_from(conn, caller, stranger(conn), conversation(bytes));
    play.store_all();
    if play.sockets[&ConnId(conn)].accepted == 0 {
        return false;
    }
    send(play, conn)
}

/// Returns whether a short prompt begins a run.
fn send(play: &mut Play, conn: u64) -> bool {
    play.input(conn, "count to 2");
    play.store_all();
    play.sockets[&ConnId(conn)].answer == Some(true)
}

#[test]
fn one_address_with_many_keys_leaves_room_for_all_others() {
    let mut play = Play::new(config());
    // They came before.
    assert!(enter(&mut play, 1, ALICE, 1_000));
    let neighbour = Some(IpAddr::from([192, 0, 2, 1]));
    play.connect_from(2, neighbour, ALICE, conversation(1_000));
    let busy = (100..120).filter(|conn| work_from(&mut play, *conn, 1, 90_000));
    assert_eq!(busy.count(), 1);
    let words = refused(&play, 119);
    assert!(
        words.contains("of your address: try again later"),
        "{words}"
    );
    // From its own address, and from another one.
    assert!(send(&mut play, 2) && send(&mut play, 1));
    assert!(work_from(&mut play, 3, 2, 1_000));
    assert!(work_from(&mut play, 4, 3, 90_000));
}

#[test]
fn many_addresses_leave_room_for_short_prompts() {
    let mut play = Play::new(config());
    assert!(enter(&mut play, 1, ALICE, 1_000));
    let busy = (10..40).filter(|conn| work_from(&mut play, *conn, conn.to_le_bytes()[0], 90_000));
    assert!((4..8).contains(&busy.count()));
    let words = refused(&play, 39);
    assert!(words.contains("of all callers: try again later"), "{words}");
    assert!(send(&mut play, 1));
    assert!(work_from(&mut play, 50, 50, 1_000));
    // Who leaves makes room, once the agent has ended.
    let run = *play.agents.keys().nth(2).unwrap();
    play.finish(run, "done");
    play.store_all();
    play.disconnect(10);
    assert!(work_from(&mut play, 51, 51, 90_000));
}

/// Alice has a long conversation that is stored, and is idle while others need the memory.
fn unloaded() -> Play {
    let mut play = Play::new(config());
    let mut connect = conversation(95_000);
    connect.session_id = Some("hers".into());
    play.connect_with(1, ALICE, connect);
    play.store_all();
    assert!(send(&mut play, 1));
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "1, 2");
    play.store_all();
    for conn in 10..23 {
        assert!(enter(&mut play, conn, stranger(conn), 70_000));
    }
    assert_eq!(play.sockets[&ConnId(1)].closed, None);
    play
}

#[test]
fn an_idle_conversation_that_made_room_goes_on() {
    let mut play = unloaded();
    // Also after its record has expired.
    play.now.unix += 100_000.0;
    play.input(1, "count to 4");
    play.input(1, "and to 5");
    assert_eq!(play.jobs(), 1, "it is read once");
    play.store_all();
    let run = *play.agents.keys().last().unwrap();
    assert_eq!(play.agents[&run], "count to 4");
    play.finish(run, "1, 2, 3, 4");
    play.finish(run, "5");
    play.store_all();
    let session = play.storage_record("hers").session.unwrap();
    let session: serde_json::Value = session.parse().unwrap();
    let said = session["messages"].as_array().unwrap();
    let said = said[1..].iter().map(|it| it["content"].as_str().unwrap());
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "count to 2",
            "1, 2",
            "count to 4",
            "1, 2, 3, 4",
            "and to 5",
            "5"
        ]
    );
}

#[test]
fn a_mode_changes_in_a_conversation_that_made_room() {
    let mut play = unloaded();
    play.mode(1);
    play.store_all();
    let session = play.storage_record("hers").session.unwrap();
    let session: serde_json::Value = session.parse().unwrap();
    assert_eq!(session["mode"], "plan");
    assert_eq!(session["messages"].as_array().unwrap().len(), 3);
    assert_eq!(play.sockets[&ConnId(1)].count("mode_changed"), 1);
}

#[test]
fn a_prompt_is_refused_whose_conversation_cannot_be_read() {
    let mut play = unloaded();
    play.input(1, "count to 4");
    play.store_one(true);
    let words = refused(&play, 1);
    assert!(words.starts_with("the session is not available"), "{words}");
    assert!(send(&mut play, 1));
}

#[test]
fn another_device_finds_a_conversation_that_made_room() {
    let mut play = unloaded();
    play.connect(2, ALICE, Some("hers"));
    play.store_all();
    let connected = play.sockets[&ConnId(2)].connected.as_ref().unwrap();
    let session = connected.session.as_ref().unwrap();
    assert!(session.get().contains("count to 2"));
}

#[test]
fn a_conversation_that_only_the_client_has_makes_room_with_its_connection() {
    let mut play = Play::new(config());
    assert!(enter(&mut play, 1, ALICE, 95_000));
    assert!(enter(&mut play, 2, ALICE, 1_000));
    let busy = (10..20).filter(|conn| work_from(&mut play, *conn, conn.to_le_bytes()[0], 90_000));
    assert!(busy.count() > 3);
    assert_eq!(play.sockets[&ConnId(1)].closed, Some(1013));
    assert_eq!(play.sockets[&ConnId(2)].closed, None, "the largest first");
}

#[test]
fn files_of_a_refused_prompt_are_not_needed() {
    let mut play = Play::new(hub_play::config(|it| it.max_running = 1));
    let with_file = |text: &str| {
        let mut prompt = Prompt::new(text);
        let file = serde_json::from_value(json!({"name": text}));
        prompt.files.push(file.unwrap());
        prompt
    };
    let unused =
        |play: &Play| -> Vec<String> { play.unused.iter().map(|it| it.name.to_string()).collect() };
    play.connect(1, ALICE, Some("a"));
    play.connect(2, ALICE, Some("b"));
    play.store_all();
    play.input_with(1, with_file("not stored"));
    play.store_one(true);
    play.input_with(1, with_file("taken"));
    play.store_all();
    assert_eq!(unused(&play), ["not stored"]);
    play.input_with(2, with_file("too many"));
    play.input_with(1, with_file("waits"));
    play.disconnect(1);
    play.connect(3, ALICE, Some("a"));
    play.store_all();
    assert_eq!(
        unused(&play),
        ["not stored", "too many"],
        "the run has the others"
    );
    // Its connection has gone meanwhile.
    play.sockets.entry(ConnId(9)).or_default();
    play.input_with(9, with_file("late"));
    assert_eq!(unused(&play).pop().unwrap(), "late");
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
