//! Client and server together, under virtual time.

use std::time::Instant;

use serde_json::json;
use snek_proto::codec;
use snek_proto::frame::{Event, Final, Message};

use crate::played::{ready, serve};

#[test]
fn the_whole_conversation_matches_the_specification() {
    let mut pair = ready(0, Instant::now());
    let hello = Message::new("ch1", "alice", "Alice", "hello @MyBot");
    pair.server
        .push(codec::encode(&Event::Message(hello)).unwrap())
        .unwrap();
    pair.settle();
    let now = pair.now();
    pair.client
        .send_message("ch1", "hey, what's up?", Final::Yes, now)
        .unwrap();
    let requests = serve(&mut pair);
    pair.server.reply(requests[0].0, &json!({})).unwrap();
    pair.client.set_typing("ch1", "#FF6B35").unwrap();
    for (text, is_final) in [
        ("Working on", Final::No),
        ("Working on it...", Final::No),
        ("Working on it... done!", Final::Yes),
    ] {
        pair.client.notify_message("ch1", text, is_final).unwrap();
    }
    assert_eq!(serve(&mut pair).len(), 4);
    insta::assert_snapshot!(pair.trace().to_string());
}
