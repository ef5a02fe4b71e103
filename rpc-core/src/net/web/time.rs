//! The clock of level 3 in a page, and waiting by the page's timers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use futures_util::task::AtomicWaker;
use js_sys::Array;
use send_wrapper::SendWrapper;
use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;
use web_time::web::SystemTimeExt as _;

use super::ws::call;
use super::{GRACE, LATE};
use crate::Instant;

/// The longest delay of a page's timer.
const LONGEST: u32 = i32::MAX.cast_unsigned();

/// Returns the current time. Commands and machines get this time.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the wall clock's time.
#[must_use]
pub fn system_now() -> SystemTime {
    web_time::SystemTime::now().to_std()
}

/// Waits for this long.
#[must_use]
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(crate::timers::later(now(), duration))
}

/// Waits until this time.
#[must_use]
pub fn sleep_until(at: Instant) -> Sleep {
    Sleep {
        at,
        has_slept: false,
        timer: None,
    }
}

/// Waits for a future for at most this long.
///
/// # Errors
/// [`Elapsed`] if the time is over first; the future is dropped.
///
/// # Cancel safety
/// As the future.
pub async fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    let future = std::pin::pin!(future.into_future());
    match select(future, sleep(duration)).await {
        Either::Left((output, _)) => Ok(output),
        Either::Right(((), _)) => Err(Elapsed),
    }
}

/// The time of a [`timeout`] is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline has elapsed")]
pub struct Elapsed;

/// The future of [`sleep`] and [`sleep_until`]. The page's timer starts when it is polled. In a hidden tab
/// timers fire late, at worst once a minute. Where a computer has slept past this time, what came meanwhile gets
/// a second to be read first.
#[derive(Debug)]
pub struct Sleep {
    at: Instant,
    has_slept: bool,
    timer: Option<(Arc<Fired>, SendWrapper<Timer>)>,
}

#[derive(Debug, Default)]
struct Fired {
    is_set: AtomicBool,
    waker: AtomicWaker,
}

/// A timer of the page. Dropping it stops it.
#[derive(Debug)]
struct Timer {
    id: JsValue,
    _callback: Closure<dyn FnMut()>,
}

impl Timer {
    fn new(delay: u32, callback: impl FnMut() + 'static) -> Self {
        let callback = Closure::<dyn FnMut()>::new(callback);
        let arguments = Array::of2(callback.as_ref(), &delay.into());
        Self {
            id: call("setTimeout", &arguments).unwrap_or_default(),
            _callback: callback,
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let _ = call("clearTimeout", &Array::of1(&self.id));
    }
}

impl Sleep {
    /// Sets another time.
    pub fn reset(mut self: Pin<&mut Self>, at: Instant) {
        *self = sleep_until(at);
    }

    /// Returns whether nothing wakes the task: the timer has fired, or was never started.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        let timer = self.timer.as_ref();
        timer.is_none_or(|(fired, _)| fired.is_set.load(Ordering::Acquire))
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let now = now();
        let mut left = self.at.saturating_duration_since(now);
        if left.is_zero() {
            let late = now.saturating_duration_since(self.at);
            if late <= LATE || self.timer.is_none() || self.has_slept && self.is_elapsed() {
                return Poll::Ready(());
            }
            if !self.has_slept {
                self.has_slept = true;
                self.timer = None;
            }
            left = GRACE;
        }
        // The timer rounds, and has a longest delay.
        if self.is_elapsed() {
            let delay = u32::try_from(left.as_millis())
                .map_or(LONGEST, |it| it.saturating_add(1).min(LONGEST));
            let fired = Arc::new(Fired::default());
            let shared = Arc::clone(&fired);
            let timer = Timer::new(delay, move || {
                shared.is_set.store(true, Ordering::Release);
                shared.waker.wake();
            });
            self.timer = Some((fired, SendWrapper::new(timer)));
        }
        if let Some((fired, _)) = &self.timer {
            fired.waker.register(cx.waker());
        }
        Poll::Pending
    }
}
