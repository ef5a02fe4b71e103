//! Tests of timeouts at gateways that answer one request after the other, and at those that do not.

use rpc_core::keepalive::KeepAlive;

use super::*;

impl Played {
    /// A gateway that answers no ping may live.
    fn without_pings() -> Self {
        Self::ready_with(ClientConfig {
            keep_alive: KeepAlive::off(),
            ..ClientConfig::default()
        })
    }

    fn ping(&mut self) -> CallId {
        self.conn.ping(self.now).unwrap()
    }

    fn pong(&mut self, id: CallId) {
        self.take(&json!({"id": id.to_string(), "result": "pong"}).to_string());
    }

    /// How the requests end that end now: true for well.
    fn ends(&mut self) -> Vec<(CallId, bool)> {
        let ends = self.events().into_iter().filter_map(|event| match event {
            ClientEvent::ChatEnded { id, result } => Some((id, result.is_ok())),
            ClientEvent::Reply { id, result } => Some((id, result.is_ok())),
            _ => None,
        });
        ends.collect()
    }
}

#[test]
fn a_hundred_sequentially_answered_chats_succeed() {
    let mut played = Played::ready();
    let chats: Vec<_> = (0..100).map(|_| played.chat()).collect();
    let ping = played.ping();
    for id in chats {
        played.wait(SECOND * 2);
        played.step(id, "text", &json!("x"));
        played.wait(SECOND);
        played.done(id);
        assert_eq!(played.ends(), [(id, true)]);
    }
    played.pong(ping);
    assert_eq!(played.ends(), [(ping, true)]);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn a_silent_gateway_times_out_each_request() {
    let mut played = Played::ready();
    let (first, second) = (played.chat(), played.chat());
    let ping = played.ping();
    played.wait(SECOND * 20);
    played.step(first, "text", &json!("x"));
    played.wait(CALL_TIMEOUT);
    assert_eq!(played.ends(), [(ping, false)]);
    played.wait(CHAT_IDLE_TIMEOUT - CALL_TIMEOUT - SECOND);
    assert_eq!(played.ends(), []);
    played.wait(SECOND);
    let mut ends = played.ends();
    ends.sort_by_key(|(id, _)| *id != first);
    assert_eq!(ends, [(first, false), (second, false)]);
}

#[test]
fn a_lost_request_times_out_although_later_ones_are_answered() {
    let mut played = Played::ready();
    let lost = played.chat();
    let busy = played.chat();
    for _ in 0..59 {
        played.wait(SECOND);
        played.step(busy, "text", &json!("x"));
    }
    assert_eq!(played.ends(), []);
    played.wait(SECOND);
    assert_eq!(played.ends(), [(lost, false)]);
}

#[test]
fn a_lost_request_times_out_once_no_earlier_one_is_open() {
    let mut played = Played::ready();
    let busy = played.chat();
    let lost = played.ping();
    for _ in 0..100 {
        played.wait(SECOND * 10);
        played.step(busy, "text", &json!("x"));
    }
    assert_eq!(played.ends(), []);
    played.done(busy);
    let later = played.chat();
    played.wait(CALL_TIMEOUT - SECOND);
    played.step(later, "text", &json!("x"));
    assert_eq!(played.ends(), [(busy, true)]);
    played.wait(SECOND);
    assert_eq!(played.ends(), [(lost, false)]);
}

#[test]
fn a_request_waits_for_a_cancelled_chat_before_it() {
    let mut played = Played::ready();
    let cancelled = played.chat();
    let ping = played.ping();
    assert!(played.conn.cancel(cancelled));
    assert_eq!(played.conn.in_flight(), 1);
    for _ in 0..10 {
        played.wait(SECOND * 20);
        played.step(cancelled, "text", &json!("x"));
    }
    played.done(cancelled);
    assert_eq!(played.ends(), []);
    played.wait(CALL_TIMEOUT - SECOND);
    played.pong(ping);
    assert_eq!(played.ends(), [(ping, true)]);
    assert_eq!(played.conn.stray_frames(), 11);
}

#[test]
fn a_silent_cancelled_chat_delays_nothing() {
    // Also where a chat that no one cancels waits for ever.
    for timeout in [Some(CHAT_IDLE_TIMEOUT), None] {
        let config = ClientConfig {
            keep_alive: KeepAlive::off(),
            chat_idle_timeout: timeout,
            ..ClientConfig::default()
        };
        let mut played = Played::ready_with(config);
        let cancelled = played.chat();
        assert!(played.conn.cancel(cancelled));
        played.wait(CHAT_IDLE_TIMEOUT);
        let lost = played.ping();
        // The gateway comes back to it, but it is known no more.
        played.wait(CALL_TIMEOUT - SECOND);
        played.step(cancelled, "text", &json!("x"));
        played.wait(SECOND);
        assert_eq!(played.ends(), [(lost, false)]);
    }
}

#[test]
fn a_request_waits_for_a_timed_out_one_before_it() {
    let mut played = Played::without_pings();
    let slow = played.chat();
    played.wait(CHAT_IDLE_TIMEOUT);
    assert_eq!(played.ends(), [(slow, false)]);
    assert!(!played.conn.cancel(slow) && !played.conn.set_timeout(slow, None, played.now));
    let behind = played.chat();
    for _ in 0..10 {
        played.wait(CHAT_IDLE_TIMEOUT - SECOND);
        played.step(slow, "text", &json!("late"));
    }
    played.done(slow);
    assert_eq!(played.ends(), []);
    played.done(behind);
    assert_eq!(played.ends(), [(behind, true)]);
}

#[test]
fn a_total_timeout_starts_with_the_request() {
    let config = ClientConfig {
        chat_total_timeout: Some(SECOND * 100),
        ..ClientConfig::default()
    };
    let mut played = Played::ready_with(config);
    let (first, second) = (played.chat(), played.chat());
    let ping = played.ping();
    let total = Some(SECOND * 10);
    assert!(played.conn.set_total_timeout(ping, total, played.now));
    assert!(played.conn.set_total_timeout(first, None, played.now));
    let mut ends = Vec::new();
    for second in 1..=120 {
        played.wait(SECOND);
        played.step(first, "text", &json!("x"));
        ends.extend(played.ends().into_iter().map(|(id, _)| (second, id)));
    }
    assert_eq!(ends, [(10, ping), (100, second)]);
}

#[test]
fn dropped_requests_use_bounded_memory() {
    let limits = Limits {
        max_pending: 2,
        ..Limits::default()
    };
    let mut played = Played::ready_with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    for _ in 0..10 {
        let chats = [(); 2].map(|()| played.chat());
        let full = Err(Refused::TooManyCalls { max: 2 });
        assert_eq!(played.conn.ping(played.now), full);
        assert!(chats.into_iter().all(|id| played.conn.cancel(id)));
        assert_eq!(played.conn.in_flight(), 0);
    }
    played.conn.handle_disconnect(Disconnect::Eof, played.now);
    assert_eq!(played.events(), [ClientEvent::Closed(CloseReason::Lost)]);
}

#[test]
fn missed_pongs_disconnect_after_a_cancelled_chat() {
    let mut played = Played::ready();
    let cancelled = played.chat();
    assert!(played.conn.cancel(cancelled));
    played.wait(PING_INTERVAL + PONG_TIMEOUT);
    let after = PONG_TIMEOUT;
    assert_eq!(reason(&played.events()), CloseReason::KeepAlive { after });
}
