//! The hub by itself: results that the storage had no room for.

use std::time::Duration;

use connectonion_proto::frame::SessionState;
use connectonion_proto::internals::{ConnId, StorageError};
use connectonion_proto::session::{HubConfig, Owner};
use connectonion_proto::storage::RecordStatus;

use crate::hub_play::Play;

const OWNER: Owner = Owner::Unsigned;
const DELAY: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);

fn reruns() -> HubConfig {
    HubConfig {
        max_reruns: 2,
        ..HubConfig::default()
    }
}

/// A host whose client has an answer that is not stored.
fn answered() -> Play {
    let mut play = Play::new(reruns());
    let run = play.begin("s", "roll");
    play.finish(run, "six");
    play.store_one(true);
    let client = &play.sockets[&ConnId(1)];
    assert_eq!(client.count("OUTPUT"), 1);
    // Whoever sees it is told.
    let output = client.frames.last().unwrap();
    assert!(output["not_stored"].is_string(), "{output}");
    assert_eq!(play.hub.unstored(), 1);
    play
}

/// The host is killed. Whether the next one knows the answer, and does not run the prompt again.
fn survives(mut play: Play) -> bool {
    play.kill(reruns());
    play.connect(9, OWNER, Some("s"));
    play.store_all();
    let connected = play.sockets[&ConnId(9)].connected.clone().unwrap();
    let session = connected.session.unwrap();
    let is_known = session.get().contains("six");
    assert_eq!(connected.status == SessionState::Running, !is_known);
    is_known
}

#[test]
fn an_unstored_result_is_stored_once_there_is_room() {
    let mut play = answered();
    assert!(play.hub.poll_timeout().unwrap() <= play.now.instant + DELAY);
    play.advance(DELAY / 2);
    assert_eq!(play.jobs(), 0);
    for _ in 0..2 {
        play.advance(DELAY);
        assert_eq!(play.jobs(), 1);
        // No one is asked to store it twice at a time.
        play.advance(DELAY);
        assert!(play.store_one(true));
        assert_eq!(play.jobs(), 0);
    }
    play.advance(DELAY);
    play.store_all();
    let record = play.storage_record("s");
    assert_eq!(record.status, RecordStatus::Done);
    assert_eq!(record.result.as_deref(), Some("six"));
    assert_eq!(play.hub.unstored(), 0);
    let failures = play.lines.iter().filter(|line| line.contains("not stored"));
    assert_eq!(failures.count(), 1);
    play.advance(2 * DELAY);
    assert_eq!(play.jobs(), 0);
    assert!(survives(play));
}

#[test]
fn an_unstored_result_is_stored_at_shutdown() {
    let mut play = answered();
    play.store_again();
    assert!(!play.hub.is_idle(), "the end waits for it");
    play.store_all();
    assert!(play.hub.is_idle());
    assert!(survives(play));
    // Without room the prompt is run again.
    assert!(!survives(answered()));
}

#[test]
fn the_next_run_stores_the_previous_result() {
    let mut play = answered();
    play.input(1, "again");
    play.store_all();
    play.advance(2 * DELAY);
    assert_eq!(play.jobs(), 0, "the conversation is stored");
    let run = *play.agents.keys().next().unwrap();
    play.finish(run, "five");
    play.store_all();
    assert_eq!(play.hub.unstored(), 0);
    assert!(survives(play));
}

#[test]
fn a_refused_prompt_does_not_prevent_storing_the_previous_result() {
    let mut play = answered();
    play.input(1, "again");
    play.advance(DELAY);
    play.store_one(true);
    play.store_all();
    assert!(play.agents.is_empty());
    assert_eq!(play.storage_record("s").result.as_deref(), Some("six"));
    assert!(survives(play));
}

#[test]
fn a_mode_change_stores_the_previous_result() {
    let mut play = answered();
    play.mode(1);
    play.store_all();
    let record = play.storage_record("s");
    assert_eq!(record.result.as_deref(), Some("six"));
    assert!(record.session.unwrap().get().contains(r#""mode":"plan""#));
    assert_eq!(play.hub.unstored(), 0);
}

#[test]
fn an_unstored_mode_change_is_stored_later() {
    let mut play = Play::new(reruns());
    play.connect(1, OWNER, Some("s"));
    play.store_all();
    play.mode(1);
    play.store_one(true);
    play.disconnect(1);
    play.advance(DELAY);
    play.store_all();
    let session = play.storage_record("s").session.unwrap();
    assert!(session.get().contains(r#""mode":"plan""#));
}

#[test]
fn a_removed_session_tries_again_to_store_its_result() {
    let mut play = answered();
    play.disconnect(1);
    play.advance(11 * MINUTE);
    assert_eq!((play.jobs(), play.released.len()), (1, 1));
    play.store_all();
    assert!(play.hub.is_idle() && play.hub.poll_timeout().is_none());
    assert!(survives(play));
}

#[test]
fn an_oversized_result_is_not_retried() {
    let mut play = Play::new(reruns());
    let run = play.begin("s", "roll");
    play.finish(run, "six");
    play.refuse_one(StorageError::TooLarge { size: 2, max: 1 });
    assert_eq!(play.sockets[&ConnId(1)].count("OUTPUT"), 1);
    play.advance(2 * DELAY);
    assert_eq!((play.jobs(), play.hub.unstored()), (0, 0));
}

#[test]
fn a_session_owned_elsewhere_is_left_alone() {
    let mut play = answered();
    play.advance(DELAY);
    play.store_fenced();
    assert_eq!(play.sockets[&ConnId(1)].closed, Some(1012));
    play.advance(2 * DELAY);
    assert_eq!((play.jobs(), play.hub.unstored()), (0, 0));
}
