//! [`check_all`]: a list of promises, each of which is checked by its name.

use std::future::Future;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::{env, thread};

use tokio::runtime::Builder;

use crate::fail;

/// What has to hold in spite of a fault, by its name.
pub(super) struct Promise {
    name: &'static str,
    check: Box<dyn Fn() + Send + Sync>,
}

impl Promise {
    pub(super) fn new<F: Future>(
        name: &'static str,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self::with_clock(name, check, false)
    }

    pub(super) fn on_a_paused_clock<F: Future>(
        name: &'static str,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self::with_clock(name, check, true)
    }

    fn with_clock<F: Future>(
        name: &'static str,
        check: impl Fn() -> F + Send + Sync + 'static,
        paused: bool,
    ) -> Self {
        let check = Box::new(move || {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .start_paused(paused)
                .build();
            match runtime {
                Ok(runtime) => drop(runtime.block_on(check())),
                Err(error) => fail(&format!("no runtime: {error}")),
            }
        });
        Self { name, check }
    }
}

/// Checks every promise, as many at once as there are processors, and fails with the names of those that do
/// not hold. A thread of that name has said what exactly does not.
///
/// With `FAULT` in the environment, only those with that in their names.
#[track_caller]
pub(super) fn check_all(promises: Vec<Promise>) {
    let part = env::var("FAULT").unwrap_or_default();
    let promises = promises.into_iter().filter(|it| it.name.contains(&part));
    let queue = Mutex::new(promises);
    let next = || queue.lock().ok()?.next();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut broken: Vec<_> = thread::scope(|scope| {
        let work = || {
            let mut broken = Vec::new();
            while let Some(promise) = next() {
                let named = thread::Builder::new().name(promise.name.to_owned());
                let checked = named
                    .spawn_scoped(scope, promise.check)
                    .map(ScopedJoinHandle::join);
                if !matches!(checked, Ok(Ok(()))) {
                    broken.push(promise.name);
                }
            }
            broken
        };
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().map(|it| it.join().unwrap_or_default());
        results.flatten().collect()
    });
    broken.sort_unstable();
    if !broken.is_empty() {
        fail(&format!("broken promises: {}", broken.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::{Promise, check_all};

    #[test]
    #[should_panic(expected = "broken promises: a_third, another")]
    fn every_broken_promise_is_named() {
        let broken = async || panic!("it does not hold");
        check_all(vec![
            Promise::new("one", async || ()),
            Promise::new("another", broken),
            Promise::new("a_third", broken),
        ]);
    }
}
