//! Tests of [`Relay`] in virtual time: two ends, and a line between them that may lose packets.

use proptest::prelude::*;
use rpc_core::CloseFrame;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Two ends and the line between them.
struct Line {
    now: Instant,
    ends: [Relay; 2],
    /// Whether packets to this end are lost.
    is_cut: [bool; 2],
    packets: usize,
}

impl Line {
    fn new(config: RelayConfig) -> Self {
        let now = Instant::now();
        Self {
            now,
            ends: [Relay::new(config, now), Relay::new(config, now)],
            is_cut: [false; 2],
            packets: 0,
        }
    }

    /// Carries packets until neither end has any.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for from in 0..2 {
                while let Some(packet) = self.ends[from].poll_packet(self.now) {
                    moved = true;
                    self.packets += 1;
                    let (id, packet) = Packet::decode(packet.encode(7)).unwrap();
                    assert_eq!(id, 7);
                    if !self.is_cut[1 - from] {
                        self.ends[1 - from].handle_packet(packet, self.now);
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let next = self.ends.iter().filter_map(Relay::poll_timeout).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            for relay in &mut self.ends {
                relay.handle_timeout(self.now);
            }
        }
        self.now = end;
    }

    /// Sends a frame from the first end, and returns what the second end takes.
    fn carry(&mut self, frame: Frame) -> Vec<Frame> {
        self.ends[0].send(frame);
        let mut taken = Vec::new();
        loop {
            self.settle();
            match self.ends[1].poll_frame() {
                Some(frame) => taken.push(frame),
                None => return taken,
            }
        }
    }
}

fn text(len: usize) -> Frame {
    Frame::Text("x".repeat(len).into())
}

#[test]
fn frames_of_any_size_arrive_whole_and_in_order() {
    let config = RelayConfig {
        window: 4096,
        max_piece_bytes: 1000,
        ..RelayConfig::default()
    };
    let mut line = Line::new(config);
    for len in [0, 1, 999, 1000, 1001, 4096, 1_000_000] {
        assert_eq!(line.carry(text(len)), [text(len)], "{len}");
    }
    let close = Frame::Close(Some(CloseFrame::new(1012, "later")));
    assert_eq!(line.carry(close.clone()), [close]);
    assert_eq!(line.ends[0].end(), Some(RelayEnd::Over));
    assert_eq!(line.ends[1].end(), Some(RelayEnd::Over));
    assert_eq!(line.ends[0].poll_timeout(), None);
}

#[test]
fn a_slow_end_holds_no_more_than_the_window() {
    let mut line = Line::new(RelayConfig {
        window: 10_000,
        ..RelayConfig::default()
    });
    let mut sent = 0;
    while line.ends[0].has_room() {
        line.ends[0].send(text(1000));
        line.settle();
        sent += 1;
        assert!(sent < 100);
    }
    // The last one is still here.
    assert!((7..=9).contains(&sent), "{sent}");
    line.pass(100 * SECOND);
    assert_eq!(line.ends[0].end(), None, "slow is not gone");
    for _ in 0..sent {
        assert_eq!(line.ends[1].poll_frame(), Some(text(1000)));
        line.settle();
    }
    assert!(line.ends[0].has_room());
}

#[test]
fn a_lost_packet_ends_the_connection_with_the_next_one() {
    let mut line = Line::new(RelayConfig::default());
    line.is_cut[1] = true;
    assert!(line.carry(text(1)).is_empty());
    line.is_cut[1] = false;
    assert!(line.carry(text(2)).is_empty());
    assert_eq!(line.ends[1].end(), Some(RelayEnd::Gap));
}

#[test]
fn a_lost_last_packet_is_noticed_without_another_one() {
    let mut line = Line::new(RelayConfig::default());
    line.is_cut[1] = true;
    line.carry(text(1));
    line.is_cut[1] = false;
    line.pass(3 * SECOND);
    assert_eq!(line.ends[1].end(), Some(RelayEnd::Gap));
}

#[test]
fn a_dead_node_is_noticed_while_something_is_unconfirmed_and_while_nothing_is() {
    let mut line = Line::new(RelayConfig::default());
    line.is_cut = [true; 2];
    line.carry(text(1));
    line.pass(11 * SECOND);
    assert_eq!(line.ends[0].end(), Some(RelayEnd::Timeout));
    assert_eq!(line.ends[1].end(), None);
    line.pass(30 * SECOND);
    assert_eq!(line.ends[1].end(), Some(RelayEnd::Timeout));
}

#[test]
fn an_idle_connection_costs_two_packets_each_half_minute() {
    let mut line = Line::new(RelayConfig::default());
    line.carry(text(1));
    line.pass(10 * SECOND);
    let before = line.packets;
    line.pass(Duration::from_secs(600));
    assert!(line.packets - before <= 4 * 20, "{}", line.packets - before);
    assert_eq!((line.ends[0].end(), line.ends[1].end()), (None, None));
}

#[test]
fn an_end_that_gives_up_ends_the_other() {
    let mut line = Line::new(RelayConfig::default());
    line.ends[0].handle_packet(Packet::Gone, line.now);
    assert_eq!(line.ends[0].end(), Some(RelayEnd::Gone));
}

#[test]
fn a_frame_above_the_limit_ends_the_connection() {
    let config = RelayConfig::default();
    let mut line = Line::new(config);
    line.ends[1] = Relay::new(
        RelayConfig {
            max_frame_bytes: 100_000,
            ..config
        },
        line.now,
    );
    assert!(line.carry(text(200_000)).is_empty());
    assert_eq!(line.ends[1].end(), Some(RelayEnd::TooLarge));
    assert!(line.ends[1].partial.len() <= 100_000);
}

#[test]
fn a_node_that_sends_beyond_the_window_ends_the_connection() {
    let mut line = Line::new(RelayConfig {
        window: 1000,
        ..RelayConfig::default()
    });
    line.ends[0] = Relay::new(RelayConfig::default(), line.now);
    line.carry(Frame::Text("x".repeat(800).into()));
    for _ in 0..3 {
        line.ends[0].send(text(800));
        line.settle();
    }
    assert_eq!(line.ends[1].end(), Some(RelayEnd::Violation));
}

proptest! {
    #[test]
    fn whatever_is_sent_both_ways_arrives_in_order_within_bounds(
        steps in prop::collection::vec((0..2_usize, 0..3000_usize, any::<bool>()), 1..200),
    ) {
        let config = RelayConfig { window: 3000, max_piece_bytes: 700, ..RelayConfig::default() };
        let mut line = Line::new(config);
        let mut sent: [Vec<usize>; 2] = Default::default();
        let mut got: [Vec<usize>; 2] = Default::default();
        for (from, len, takes) in steps {
            if line.ends[from].has_room() {
                line.ends[from].send(text(len));
                sent[from].push(len);
            }
            line.settle();
            if takes && let Some(Frame::Text(frame)) = line.ends[1 - from].poll_frame() {
                got[from].push(frame.len());
            }
            prop_assert!(line.ends.iter().all(|it| it.received - it.passed <= 3000 + cost(0)));
        }
        for from in [0, 1, 0, 1] {
            line.settle();
            while let Some(Frame::Text(frame)) = line.ends[1 - from].poll_frame() {
                got[from].push(frame.len());
                line.settle();
            }
        }
        prop_assert_eq!(sent, got);
        prop_assert!(line.ends.iter().all(|it| it.end().is_none()));
    }

    #[test]
    fn with_losses_no_frame_is_missing_before_the_end(
        losses in prop::collection::vec(prop::bool::weighted(0.1), 1..100),
    ) {
        let mut line = Line::new(RelayConfig::default());
        let (mut count, mut taken) = (0, 0);
        for is_lost in losses {
            line.is_cut[1] = is_lost;
            if !line.ends[0].has_room() {
                break;
            }
            for frame in line.carry(text(count)) {
                prop_assert_eq!(frame, text(taken));
                taken += 1;
            }
            count += 1;
        }
        line.is_cut[1] = false;
        line.pass(60 * SECOND);
        prop_assert!(taken == count || line.ends[1].end() == Some(RelayEnd::Gap));
    }
}
