//! What a node does to find messages that its feeds have not brought.

use std::time::Duration;

use rpc_core::Instant;
use rpc_core::timers::later;

use super::feed::Feed;
use super::{Heads, Node, Request};

/// How often the stream is compared with the feeds, in the time after which the node gives up.
const PROBES: u32 = 6;
/// How soon after a comparison that has failed.
const AGAIN: Duration = Duration::from_secs(1);

impl Node {
    /// Compares the feeds, which may have lost something, and reads the records again: call it after each loss
    /// of the line to the stream, and when the stream was made again.
    pub(crate) fn check(&mut self, now: Instant) {
        self.gap_at = now;
        self.is_compared = false;
        self.compared = None;
        self.probe(now);
        for username in self.members.keys() {
            let username = username.clone();
            self.out.requests.push_back(Request::Watch { username });
        }
    }

    pub(super) fn probe(&mut self, now: Instant) {
        self.probe_at = later(now, self.config.max_outage / PROBES);
        let compared = self.compared;
        self.out.requests.push_back(Request::Probe { compared });
    }

    /// Takes the answer to [`Request::Probe`], which was asked at this time; `None` if there is none. All that
    /// the feeds have brought meanwhile was taken before. What differs is read.
    pub(crate) fn handle_probe(&mut self, asked: Instant, heads: Option<Heads>, now: Instant) {
        let Some(heads) = heads else {
            self.is_compared = false;
            self.probe_at = self.probe_at.min(later(now, AGAIN));
            return;
        };
        self.seen_at = self.seen_at.max(asked);
        self.is_compared |= self.gap_at <= asked;
        self.newest = self.newest.max(heads.newest);
        let Some(channels) = &heads.channels else {
            return;
        };
        let mut differing = Vec::new();
        for (channel, feed) in &mut self.feeds {
            if !feed.compare(&heads, channels.get(channel), now) {
                differing.push(channel.clone());
            }
        }
        let is_same = differing.is_empty() && self.gap_at <= asked;
        self.compared = is_same.then_some((heads.created, heads.last));
        for channel in differing {
            self.drive(&channel);
        }
    }

    /// Returns whether the feeds were compared with the stream, and what differed is read.
    pub(crate) fn is_current(&self) -> bool {
        self.is_compared && !self.feeds.values().any(Feed::is_behind)
    }

    /// Returns whether the stream has been silent for half the time after which the node gives up.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        later(self.seen_at, self.config.max_outage / 2) <= now
    }
}
