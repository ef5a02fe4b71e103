//! Numbers and words, to the letter: whoever changes one changes the protocol.

use std::time::Duration;

use smarthole_proto::{client, hub, server};

#[test]
fn defaults_match_the_specification() {
    let seconds = Duration::from_secs;
    let hub = hub::HubConfig::default();
    assert_eq!(hub.response_timeout, seconds(30));
    assert_eq!((hub.routing_limit, hub.max_history), (3, 100));
    let server = server::ServerConfig::default();
    assert_eq!(server.limits.max_message_bytes, 1_048_576);
    assert_eq!(server.keep_alive.interval, Some(seconds(30)));
    assert_eq!(server.keep_alive.pong_timeout, seconds(10));
    let backoff = client::reconnect_policy().backoff;
    assert_eq!(
        (backoff.initial, backoff.max),
        (seconds(1), Some(seconds(30)))
    );
    assert_eq!(backoff.max_attempts, Some(10));
}
