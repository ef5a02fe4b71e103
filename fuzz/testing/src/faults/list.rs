//! [`check_all`]: a list of faults, each of which is checked by its name.

use std::future::Future;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::{env, thread};

use tokio::runtime::Builder;

use crate::fail;

/// A fault, by the name of what is promised.
pub(super) struct Fault {
    name: &'static str,
    check: Box<dyn Fn() + Send + Sync>,
}

impl Fault {
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

/// Checks every fault, as many at once as there are processors, and fails with the names of those whose
/// promise does not hold. A thread of that name has said what exactly does not.
///
/// With `FAULT` in the environment, only those with that in their names.
#[track_caller]
pub(super) fn check_all(faults: Vec<Fault>) {
    let part = env::var("FAULT").unwrap_or_default();
    let faults = faults.into_iter().filter(|it| it.name.contains(&part));
    let queue = Mutex::new(faults);
    let next = || queue.lock().ok()?.next();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut broken: Vec<_> = thread::scope(|scope| {
        let work = || {
            let mut broken = Vec::new();
            while let Some(fault) = next() {
                let named = thread::Builder::new().name(fault.name.to_owned());
                let checked = named
                    .spawn_scoped(scope, fault.check)
                    .map(ScopedJoinHandle::join);
                if !matches!(checked, Ok(Ok(()))) {
                    broken.push(fault.name);
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
    use super::{Fault, check_all};

    #[test]
    #[should_panic(expected = "broken promises: a_third, another")]
    fn every_broken_promise_is_named() {
        let broken = async || panic!("it does not hold");
        check_all(vec![
            Fault::new("one", async || ()),
            Fault::new("another", broken),
            Fault::new("a_third", broken),
        ]);
    }
}
