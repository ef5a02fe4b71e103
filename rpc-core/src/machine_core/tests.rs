//! What the core promises to every machine.

use super::*;
use crate::error::Disconnect;

const SECOND: Duration = Duration::from_secs(1);

fn core(limits: &Limits) -> (MachineCore<u8>, Instant) {
    (MachineCore::new(limits), Instant::now())
}

fn polled(core: &mut MachineCore<u8>) -> Vec<u8> {
    std::iter::from_fn(|| core.poll_event(|_| 0)).collect()
}

#[test]
fn the_end_is_emitted_once_after_earlier_events() {
    let (mut core, now) = core(&Limits::default());
    core.push_event(1, 0);
    core.close(CloseReason::RateLimited, CloseFrame::POLICY);
    core.push_event(2, 0);
    core.close(CloseReason::Local, CloseFrame::NORMAL);
    assert_eq!(core.close_reason(), Some(&CloseReason::RateLimited));
    assert_eq!(core.received(Incoming::Text("late"), now), None);
    assert_eq!(polled(&mut core), [1, 0]);
    assert_eq!(core.send_json(&1), Err(Refused::Closed));
    let close = CloseFrame::new(CloseFrame::POLICY, "the peer sent too many messages");
    assert_eq!(core.poll_transmit(), Some(Outgoing::Close(close)));
    assert_eq!(core.poll_transmit(), None);
}

#[test]
fn a_closed_machine_is_inert() {
    let limits = Limits {
        max_events: 1,
        ..Limits::default()
    };
    let (mut core, now) = core(&limits);
    core.start_keepalive(&KeepAlive::default(), now);
    core.start_timer("opening", SECOND, now);
    assert_eq!(core.next_timeout(), Some((now + SECOND, "opening")));
    core.push_event(1, 0);
    assert!(!core.wants_input(true));
    core.close(CloseReason::Local, CloseFrame::NORMAL);
    assert!(core.wants_input(false));
    assert_eq!(core.next_timeout(), None);
    assert_eq!(core.unless_paused(Some(now)), None);
    assert!(!core.timer_expired(now + SECOND));
}

#[test]
fn only_queued_frames_of_a_lost_connection_are_not_sent() {
    for lost in [false, true] {
        let (mut core, _) = core(&Limits::default());
        let [left, waits] = [1, 2].map(|n| core.send_json(&n).unwrap());
        assert!(core.poll_transmit().is_some());
        if lost {
            core.disconnected(Disconnect::Eof);
            core.disconnected(Disconnect::Local);
            assert_eq!(core.close_reason(), Some(&CloseReason::Lost));
            assert_eq!(core.poll_transmit(), None);
        } else {
            core.close(CloseReason::Local, CloseFrame::NORMAL);
        }
        assert_eq!(core.delivery(left), Delivery::Unknown);
        assert_eq!(core.delivery(waits) == Delivery::NotSent, lost);
    }
}

#[test]
fn a_lost_connection_drops_the_queued_close() {
    let (mut core, _) = core(&Limits::default());
    core.close(CloseReason::Local, CloseFrame::NORMAL);
    core.disconnected(CloseReason::Lost);
    assert_eq!(core.poll_transmit(), None);
    assert_eq!(core.close_reason(), Some(&CloseReason::Local));
}

#[test]
fn deadlines_are_suspended_once_the_backlog_is_full() {
    let limits = Limits {
        max_event_bytes: 10,
        ..Limits::default()
    };
    let (mut core, now) = core(&limits);
    let deadline = Some(now + 30 * SECOND);
    assert!(core.received(Incoming::Text(""), now).is_some());
    assert_eq!(core.unless_paused(deadline), deadline);
    core.push_event(1, 10);
    assert_eq!(core.unless_paused(deadline), None);
    assert_eq!(core.pop_event(), Some(1));
    let back = now + 60 * SECOND;
    assert!(!core.may_expire(back));
    assert_eq!(core.unless_paused(deadline), Some(back + SECOND));
    assert!(core.may_expire(back + SECOND));
}

#[test]
fn an_unread_pong_is_not_silence() {
    let limits = Limits {
        max_events: 1,
        ..Limits::default()
    };
    let (mut core, now) = core(&limits);
    let config = KeepAlive::default();
    core.start_keepalive(&config, now);
    let ping = now + config.interval.unwrap();
    core.push_event(1, 0);
    assert_eq!(core.check_keepalive(&config, true, ping), None);
    assert_eq!(core.poll_transmit(), Some(Outgoing::Ping("".into())));
    // Events are taken in the moment in which the pong is due, and the line is read again.
    assert!(core.pop_event().is_some());
    let late = ping + config.pong_timeout;
    assert_eq!(core.check_keepalive(&config, true, late), None);
    assert!(core.received(Incoming::Pong(b""), late).is_some());
    assert_eq!(core.next_timeout(), Some((ping + 30 * SECOND, "heartbeat")));
}

#[test]
fn a_peer_that_only_pings_is_closed_after_ten_missed_pongs() {
    let (config, second) = (KeepAlive::default(), Duration::from_secs(1));
    for (message, gone_at) in [
        (Incoming::Ping(b""), Some(11)),
        (Incoming::Pong(b""), None),
        (Incoming::Text("hi"), None),
    ] {
        let mut now = Instant::now();
        let mut core = MachineCore::<()>::default().with_login();
        core.start_keepalive(&config, now);
        core.log_in();
        let gone = (1..20).find(|_| {
            now += second * 30;
            let is_gone = core.check_keepalive(&config, true, now).is_some();
            while core.poll_transmit().is_some() {}
            let _ = core.received(message, now);
            is_gone
        });
        assert_eq!(gone, gone_at, "{message:?}");
    }
}

#[test]
fn before_login_only_pongs_count_as_life() {
    let (config, second) = (KeepAlive::default(), Duration::from_secs(1));
    for (is_logged_in, has_ponged, lives) in [
        (false, false, false),
        (true, false, true),
        (true, true, false),
    ] {
        let mut now = Instant::now();
        let mut core = MachineCore::<()>::default().with_login();
        core.start_keepalive(&config, now);
        if is_logged_in {
            core.log_in();
        }
        if has_ponged {
            let _ = core.received(Incoming::Pong(b""), now);
        }
        now += second * 30;
        assert_eq!(core.check_keepalive(&config, true, now), None);
        core.send_text("piece".into()).unwrap();
        while core.poll_transmit().is_some() {}
        if !is_logged_in {
            let _ = core.received(Incoming::Text("early"), now);
        }
        now += second * 15;
        let gone = core.check_keepalive(&config, true, now);
        assert_eq!(gone.is_none(), lives, "{is_logged_in} {has_ponged}");
    }
}

#[test]
fn in_strict_mode_only_pongs_count_as_life() {
    for only_pongs in [false, true] {
        let (mut core, now) = core(&Limits::default());
        if only_pongs {
            core = core.with_only_pongs();
        }
        let config = KeepAlive::default();
        core.start_keepalive(&config, now);
        let ping = now + config.interval.unwrap();
        assert_eq!(core.check_keepalive(&config, true, ping), None);
        assert!(core.received(Incoming::Text("hi"), ping).is_some());
        let late = ping + config.pong_timeout;
        let gone = core.check_keepalive(&config, true, late);
        assert_eq!(gone.is_some(), only_pongs);
    }
}

#[test]
fn a_refused_stream_is_notified_once_when_half_empty() {
    let limits = Limits {
        max_outbox_frames: 16,
        ..Limits::default()
    };
    let (mut core, _) = core(&limits);
    let step = |core: &mut MachineCore<u8>| {
        core.send_stream(|buffer| {
            buffer.push('1');
            Ok(())
        })
    };
    for _ in 0..4 {
        assert!(step(&mut core).is_ok());
    }
    assert!(!core.take_writable());
    assert_eq!(step(&mut core), Err(Refused::QueueFull));
    assert!(core.send_json(&1).is_ok());
    let mut reported = 0;
    while core.poll_transmit().is_some() {
        reported += usize::from(core.take_writable());
        assert!(reported == 0 || core.has_stream_slack());
    }
    assert_eq!(reported, 1);
}

#[test]
fn frames_of_one_command_are_refused_together() {
    let limits = Limits {
        max_outbox_frames: 2,
        ..Limits::default()
    };
    let (mut core, _) = core(&limits);
    assert_eq!(core.check_room(3), Ok(()));
    core.send_json(&1).unwrap();
    assert_eq!(core.check_room(1), Ok(()));
    assert_eq!(core.check_room(2), Err(Refused::QueueFull));
}
