//! [`ReceiveBudget`]: how many bytes of messages that are not whole a server holds.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use crate::Instant;
use crate::net::time::{self, Sleep};
use crate::sync::Mutex;

/// Most bytes of a message that do not count while it is not whole.
const FREE: usize = 16 * 1024;
/// How long a message may take to be whole, beside a second for each [`PACE`] bytes.
const PATIENCE: Duration = Duration::from_secs(10);
const PACE: usize = 64 * 1024;
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Why a message is not received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// It is larger than this.
    Ever { max: usize },
    /// There is no room at present.
    Now,
    /// It is not whole in time.
    Late,
}

/// What all connections of a server hold of messages that are not whole, from the header of a frame on. An
/// address has a quarter of it. Where there is no room, the oldest of those messages makes room: of the
/// same address, or else of the address that holds the most.
#[derive(Debug)]
pub(crate) struct ReceiveBudget {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The messages, oldest first.
    messages: BTreeMap<u64, Counted>,
    next: u64,
    /// Those that wait until others have made room.
    waiting: Vec<Waker>,
    refused: LogCount,
}

#[derive(Debug)]
struct Counted {
    address: IpAddr,
    bytes: usize,
    /// Whether it makes room.
    is_leaving: bool,
    /// Wakes the connection that waits for the rest.
    waker: Option<Waker>,
}

impl State {
    /// Returns the bytes that are held, of one address or of all, with or without those that make room.
    fn held(&self, address: Option<IpAddr>, with_leaving: bool) -> usize {
        let all = self.messages.values();
        let of = all.filter(|it| address.is_none_or(|address| it.address == address));
        let of = of.filter(|it| with_leaving || !it.is_leaving);
        of.map(|it| it.bytes).sum()
    }

    fn heaviest(&self) -> Option<IpAddr> {
        let mut held = HashMap::new();
        for it in self.messages.values().filter(|it| !it.is_leaving) {
            *held.entry(it.address).or_default() += it.bytes;
        }
        let heaviest = held
            .into_iter()
            .max_by_key(|(_, bytes): &(_, usize)| *bytes);
        heaviest.map(|(address, _)| address)
    }

    fn refuse(&mut self, why: NoRoom) -> NoRoom {
        if let Some(count) = self.refused.count() {
            tracing::warn!(
                count,
                "messages were cut off that came too slowly, or for which there was no room"
            );
        }
        why
    }
}

impl ReceiveBudget {
    #[cfg(feature = "server")]
    pub(crate) fn new(max: usize) -> Self {
        let state = Mutex::default();
        Self { max, state }
    }
}

/// What one connection holds of a message that is not whole.
#[derive(Debug)]
pub(crate) struct Receive {
    budget: Arc<ReceiveBudget>,
    address: IpAddr,
    /// Most bytes of a message, which grows once the peer has logged in.
    limit: Arc<AtomicUsize>,
    /// Whether the connection had a turn to look for the login.
    has_looked: bool,
    number: u64,
    bytes: usize,
    begin: Instant,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Receive {
    #[cfg(feature = "server")]
    pub(crate) fn new(
        budget: &Arc<ReceiveBudget>,
        address: IpAddr,
        limit: &Arc<AtomicUsize>,
    ) -> Self {
        Self {
            budget: Arc::clone(budget),
            address,
            limit: Arc::clone(limit),
            has_looked: false,
            number: 0,
            bytes: 0,
            begin: time::now(),
            deadline: None,
        }
    }

    /// Counts `to` bytes of the message, once there is room.
    pub(crate) fn poll_grow(
        &mut self,
        cx: &mut Context<'_>,
        to: usize,
    ) -> Poll<Result<(), NoRoom>> {
        let limit = self.limit.load(Ordering::Relaxed);
        if to > limit {
            if std::mem::replace(&mut self.has_looked, true) {
                return Poll::Ready(Err(NoRoom::Ever { max: limit }));
            }
            // The login may have come just before.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if to <= FREE.max(self.bytes) {
            return Poll::Ready(Ok(()));
        }
        let mut wakers = Vec::new();
        let grown = self.grow(cx, to, &mut wakers);
        // Not under the lock: a task may end with it.
        wakers.into_iter().for_each(Waker::wake);
        ready!(grown)?;
        let pace = u64::try_from(self.bytes / PACE).unwrap_or(u64::MAX);
        let until = self.begin + PATIENCE + Duration::from_secs(pace);
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().reset(until.into()),
            None => self.deadline = Some(Box::pin(time::sleep_until(until))),
        }
        Poll::Ready(Ok(()))
    }

    fn grow(
        &mut self,
        cx: &Context<'_>,
        to: usize,
        wakers: &mut Vec<Waker>,
    ) -> Poll<Result<(), NoRoom>> {
        let (address, max) = (self.address, self.budget.max);
        let own_max = if address.is_unspecified() {
            max
        } else {
            max / 4
        };
        if to > own_max {
            return Poll::Ready(Err(NoRoom::Ever { max: own_max }));
        }
        // As much as `grow` reserves.
        let to = to.max((self.bytes + self.bytes / 8).min(own_max));
        let more = to - self.bytes;
        let state = &mut *self.budget.state.lock();
        if self.bytes == 0 {
            state.next += 1;
            (self.number, self.begin) = (state.next, time::now());
        }
        let own = state.messages.get(&self.number);
        if own.is_some_and(|own| own.is_leaving) {
            return Poll::Ready(Err(state.refuse(NoRoom::Now)));
        }
        loop {
            let from = if state.held(Some(address), false) + more > own_max {
                Some(address)
            } else if state.held(None, false) + more > max {
                state.heaviest()
            } else {
                break;
            };
            let mut others = state.messages.iter_mut();
            let oldest = others.find(|(number, it)| {
                **number != self.number && Some(it.address) == from && !it.is_leaving
            });
            let Some((_, oldest)) = oldest else {
                return Poll::Ready(Err(state.refuse(NoRoom::Now)));
            };
            oldest.is_leaving = true;
            wakers.extend(oldest.waker.take());
        }
        if state.held(Some(address), true) + more > own_max || state.held(None, true) + more > max {
            // Until what makes room has done so.
            state.waiting.retain(|waker| !waker.will_wake(cx.waker()));
            state.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        let own = state.messages.entry(self.number).or_insert(Counted {
            address,
            bytes: 0,
            is_leaving: false,
            waker: None,
        });
        (own.bytes, self.bytes) = (to, to);
        Poll::Ready(Ok(()))
    }

    /// Waits for the rest of the message: ready once it may not come any more.
    pub(crate) fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoRoom>> {
        let Some(deadline) = &mut self.deadline else {
            return Poll::Pending;
        };
        let state = &mut *self.budget.state.lock();
        if let Some(own) = state.messages.get_mut(&self.number) {
            if own.is_leaving {
                return Poll::Ready(Err(state.refuse(NoRoom::Now)));
            }
            own.waker = Some(cx.waker().clone());
        }
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(state.refuse(NoRoom::Late)))
    }

    /// The message is whole, or is not received any more.
    pub(crate) fn end(&mut self) {
        self.deadline = None;
        if std::mem::take(&mut self.bytes) > 0 {
            let mut state = self.budget.state.lock();
            state.messages.remove(&self.number);
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes room for `more` bytes: at most an eighth more than is needed.
pub(crate) fn grow(bytes: &mut Vec<u8>, more: usize) {
    if bytes.capacity() - bytes.len() < more {
        bytes.reserve_exact(more.max(bytes.len() / 8));
    }
}

/// Counts what is worth a line in the log once a minute.
#[derive(Debug, Default)]
pub(crate) struct LogCount {
    count: u64,
    next: Option<Instant>,
}

impl LogCount {
    /// Returns the number since the last line, if the next is due.
    pub(crate) fn count(&mut self) -> Option<u64> {
        self.count += 1;
        let now = time::now();
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + LOG_INTERVAL);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use proptest::prelude::*;

    use super::*;

    const KIB: usize = 1024;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn receive(budget: &Arc<ReceiveBudget>, last: u8) -> Receive {
        let limit = Arc::new(AtomicUsize::new(usize::MAX));
        Receive::new(budget, address(last), &limit)
    }

    fn grow(receive: &mut Receive, kib: usize) -> Poll<Result<(), NoRoom>> {
        let mut cx = Context::from_waker(Waker::noop());
        receive.poll_grow(&mut cx, kib * KIB)
    }

    fn waits(receive: &mut Receive) -> Poll<Result<(), NoRoom>> {
        receive.poll_wait(&mut Context::from_waker(Waker::noop()))
    }

    const FITS: Poll<Result<(), NoRoom>> = Poll::Ready(Ok(()));
    const NOT_NOW: Poll<Result<(), NoRoom>> = Poll::Ready(Err(NoRoom::Now));

    #[tokio::test(start_paused = true)]
    async fn the_oldest_message_of_an_address_makes_room_for_its_next() {
        let budget = Arc::new(ReceiveBudget::new(400 * KIB));
        let [mut first, mut second, mut third] = [1; 3].map(|last| receive(&budget, last));
        let mut other = receive(&budget, 2);
        assert_eq!(grow(&mut first, 60), FITS);
        assert_eq!(grow(&mut other, 100), FITS);
        assert_eq!(grow(&mut second, 40), FITS);
        assert_eq!(grow(&mut third, 50), Poll::Pending);
        assert_eq!(waits(&mut first), NOT_NOW);
        assert!(waits(&mut second).is_pending() && waits(&mut other).is_pending());
        drop(first);
        assert_eq!(grow(&mut third, 50), FITS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_address_that_holds_the_most_makes_room_for_others() {
        let budget = Arc::new(ReceiveBudget::new(400 * KIB));
        let mut held: Vec<_> = (0..8).map(|at| receive(&budget, at / 2)).collect();
        for (at, receive) in held.iter_mut().enumerate() {
            assert_eq!(grow(receive, if at == 4 { 51 } else { 49 }), FITS);
        }
        let mut stranger = receive(&budget, 9);
        assert_eq!(grow(&mut stranger, 20), Poll::Pending);
        assert_eq!(waits(&mut held[4]), NOT_NOW);
        drop(held.remove(4));
        assert_eq!(grow(&mut stranger, 20), FITS);
    }

    #[tokio::test(start_paused = true)]
    async fn small_messages_are_received_without_any_room() {
        let budget = Arc::new(ReceiveBudget::new(0));
        let mut receive = receive(&budget, 1);
        assert_eq!(grow(&mut receive, 16), FITS);
        let never = Poll::Ready(Err(NoRoom::Ever { max: 0 }));
        assert_eq!(grow(&mut receive, 17), never);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_whole_in_time_or_cut_off() {
        let budget = Arc::new(ReceiveBudget::new(4_000 * KIB));
        let mut receive = receive(&budget, 1);
        assert_eq!(grow(&mut receive, 640), FITS);
        tokio::time::advance(Duration::from_millis(19_900)).await;
        assert!(waits(&mut receive).is_pending());
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(waits(&mut receive), Poll::Ready(Err(NoRoom::Late)));
        receive.end();
        assert!(waits(&mut receive).is_pending());
    }

    proptest! {
        #[test]
        fn what_is_held_is_never_more_than_the_budget(
            steps in prop::collection::vec((0_usize..12, 0_usize..120), 0..200),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let _runtime = runtime.enter();
            let budget = Arc::new(ReceiveBudget::new(400 * KIB));
            let new = |at: usize| receive(&budget, u8::try_from(at % 5).unwrap());
            let mut all: Vec<_> = (0..12).map(new).collect();
            for (at, kib) in steps {
                match grow(&mut all[at], kib) {
                    FITS if kib > 0 => {}
                    // It ends, and others wait for that.
                    _ => all[at].end(),
                }
                let of = |last: u8| all.iter().filter(move |it| it.address == address(last));
                let held = |last: u8| of(last).map(|it| it.bytes).sum::<usize>();
                prop_assert!((0..5).map(held).sum::<usize>() <= 400 * KIB);
                prop_assert!((0..5).all(|last| held(last) <= 100 * KIB));
            }
            all.clear();
            let state = budget.state.lock();
            prop_assert!(state.messages.is_empty());
        }
    }
}
