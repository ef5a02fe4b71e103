//! [`Progress`]: how long a peer that answers in order has made no progress on a request.

use std::collections::VecDeque;

use crate::Instant;
use crate::outbox::FrameNumber;

/// How many ended requests may be kept besides the open ones.
const SLACK: usize = 16;

/// When the peer last made progress on each open request, for idle timeouts inside a machine.
///
/// A peer that answers the requests of a connection one after the other says nothing about the last
/// one until it has answered the others. So a frame about a request is progress for later requests,
/// too, but not for earlier ones: if a peer that answers concurrently forgets a request, that is
/// noticed at the latest when the requests before it have ended. From then on only its own frames
/// count.
///
/// A frame costs a binary search, however many requests are open. It moves no deadline: let
/// deadlines pass, then ask [`since`](Self::since) whether to extend them.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::MachineCore;
/// use rpc_core::progress::Progress;
///
/// let (start, second) = (Instant::now(), Duration::from_secs(1));
/// let mut core = MachineCore::<()>::default();
/// let [first, second_one] = [(); 2].map(|()| core.send_json("ask").unwrap());
/// let mut progress = Progress::default();
/// progress.sent(first, start);
/// progress.sent(second_one, start);
///
/// progress.on_frame(first, start + second);
/// assert_eq!(progress.since(second_one), Some(start + second));
/// progress.ended(first);
/// progress.on_frame(second_one, start + 2 * second);
/// assert_eq!(progress.since(second_one), Some(start + 2 * second));
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    /// The requests in the order in which they were sent.
    requests: VecDeque<Request>,
    open: usize,
    /// When the peer last made progress on a request from this frame on, up to the next step.
    /// Frames and times increase.
    steps: Vec<(FrameNumber, Instant)>,
}

#[derive(Debug)]
struct Request {
    frame: FrameNumber,
    is_open: bool,
}

impl Progress {
    /// Notes that a request was sent with this frame, after all others.
    pub fn sent(&mut self, frame: FrameNumber, now: Instant) {
        self.requests.push_back(Request {
            frame,
            is_open: true,
        });
        self.open += 1;
        self.step_at(frame, now);
    }

    /// Notes progress from this frame on, unless the step before it says as much.
    fn step_at(&mut self, frame: FrameNumber, now: Instant) {
        if self.steps.last().is_none_or(|(_, at)| *at < now) {
            self.steps.push((frame, now));
        }
    }

    /// Notes that a frame about this request has arrived.
    pub fn on_frame(&mut self, frame: FrameNumber, now: Instant) {
        let last = self.steps.last();
        let is_noted = last.is_some_and(|(from, at)| *from <= frame && *at == now);
        if !is_noted && self.find(frame).is_some() {
            // Nothing is newer than this.
            self.steps.truncate(self.step(frame));
            self.step_at(frame, now);
        }
    }

    /// Notes that this request has ended: answered, cancelled, or expired.
    pub fn ended(&mut self, frame: FrameNumber) {
        let found = self.find(frame);
        let Some(request) = found.and_then(|at| self.requests.get_mut(at)) else {
            return;
        };
        if std::mem::take(&mut request.is_open) {
            self.open -= 1;
        }
        if self.open == 0 {
            self.requests.clear();
            self.requests.shrink_to(SLACK);
            self.steps.clear();
            self.steps.shrink_to(SLACK);
            return;
        }
        // Most answers come in order.
        while self.requests.front().is_some_and(|it| !it.is_open) {
            self.requests.pop_front();
        }
        if self.requests.len().max(self.steps.len()) > 2 * self.open + SLACK {
            self.compact();
        }
    }

    /// Returns when the peer last made progress on this request or on one before it. `None` if the
    /// request is unknown.
    #[must_use]
    pub fn since(&self, frame: FrameNumber) -> Option<Instant> {
        let after = self.steps.partition_point(|(from, _)| *from <= frame);
        let step = after.checked_sub(1).and_then(|at| self.steps.get(at));
        step.map(|(_, at)| *at)
    }

    /// Returns the first step that begins with this frame or later.
    fn step(&self, frame: FrameNumber) -> usize {
        self.steps.partition_point(|(from, _)| *from < frame)
    }

    fn find(&self, frame: FrameNumber) -> Option<usize> {
        if self.requests.front().is_some_and(|it| it.frame == frame) {
            return Some(0);
        }
        let found = self.requests.binary_search_by_key(&frame, |it| it.frame);
        found.ok()
    }

    /// Removes requests that have ended, and steps that no open one needs.
    fn compact(&mut self) {
        self.requests.retain(|request| request.is_open);
        let mut steps = Vec::new();
        for Request { frame, .. } in &self.requests {
            let later = |at: &Instant| steps.last().is_none_or(|(_, last)| last < at);
            if let Some(at) = self.since(*frame).filter(later) {
                steps.push((*frame, at));
            }
        }
        self.steps = steps;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::outbox::Outbox;

    const SECOND: Duration = Duration::from_secs(1);

    /// `count` requests that were sent at the same time.
    fn sent(count: u32) -> (Progress, Vec<FrameNumber>, Instant) {
        let now = Instant::now();
        let mut outbox = Outbox::default();
        let mut progress = Progress::default();
        let frames: Vec<_> = (0..count).map(|_| outbox.json("").unwrap()).collect();
        for frame in &frames {
            progress.sent(*frame, now);
        }
        (progress, frames, now)
    }

    #[test]
    fn only_frames_of_earlier_requests_are_progress() {
        let (mut progress, frames, start) = sent(3);
        progress.on_frame(frames[1], start + SECOND);
        let since: Vec<_> = frames.iter().map(|it| progress.since(*it)).collect();
        let [before, after] = [Some(start), Some(start + SECOND)];
        assert_eq!(since, [before, after, after]);
    }

    #[test]
    fn progress_ends_with_the_last_earlier_request() {
        let (mut progress, frames, start) = sent(3);
        progress.on_frame(frames[0], start + SECOND);
        progress.ended(frames[0]);
        progress.on_frame(frames[2], start + 9 * SECOND);
        assert_eq!(progress.since(frames[1]), Some(start + SECOND));
    }

    #[test]
    fn a_long_request_uses_bounded_memory() {
        let (mut progress, frames, start) = sent(1);
        let mut outbox = Outbox::default();
        let _ = outbox.json("").unwrap();
        for at in 0..100_000 {
            let frame = outbox.json("").unwrap();
            let _ = outbox.pop();
            progress.sent(frame, start + SECOND * at);
            progress.ended(frame);
        }
        assert!(progress.requests.len() <= 2 + SLACK + 1);
        assert!(progress.steps.len() <= 2 + SLACK + 1);
        progress.ended(frames[0]);
        assert!(progress.requests.is_empty() && progress.steps.is_empty());
    }

    proptest! {
        /// Against the definition, with every frame remembered.
        #[test]
        fn evicted_entries_do_not_change_the_result(
            steps in prop::collection::vec((0_u8..4, 0_usize..64), 0..100),
        ) {
            let (_, _, start) = sent(0);
            let mut outbox = Outbox::default();
            let mut progress = Progress::default();
            let mut open: Vec<FrameNumber> = Vec::new();
            let mut received: Vec<(FrameNumber, Instant)> = Vec::new();
            for (at, (step, pick)) in (0..).zip(steps) {
                let now = start + SECOND * at;
                let chosen = pick.checked_rem(open.len()).and_then(|at| open.get(at).copied());
                match (step, chosen) {
                    (0 | 1, _) => {
                        let frame = outbox.json("").unwrap();
                        let _ = outbox.pop();
                        progress.sent(frame, now);
                        open.push(frame);
                        received.push((frame, now));
                    }
                    (2, Some(frame)) => {
                        progress.on_frame(frame, now);
                        received.push((frame, now));
                    }
                    (_, Some(frame)) => {
                        progress.ended(frame);
                        open.retain(|other| *other != frame);
                    }
                    _ => {}
                }
                // In the order in which deadlines pass, or in another.
                if pick % 2 == 1 {
                    open.reverse();
                }
                for frame in &open {
                    let expected = received.iter().filter(|(of, _)| of <= frame).map(|(_, at)| *at);
                    let sent_at = received.iter().find(|(of, _)| of == frame).map(|(_, at)| *at);
                    prop_assert_eq!(progress.since(*frame), expected.chain(sent_at).max());
                }
                open.sort_unstable();
            }
        }
    }
}
