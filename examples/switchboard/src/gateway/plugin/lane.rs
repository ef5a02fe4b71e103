//! [`Lanes`]: the threads of one plugin, each with its own engine.
//!
//! Extism stops a call by advancing the clock of its engine, which stops every other call on the
//! same engine too. So each thread compiles the module once for itself, and runs one call at a
//! time. Threads start on demand, at most as many as calls may run at once.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use extism::{CompiledPlugin, Manifest, Plugin, PluginBuilder, Wasm};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};
use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::http::{Current, Http, functions};
use super::stop::{Control, StopOnDrop, lock};
use super::{CALL, DESCRIBE, INCOMING, OUTGOING};
use crate::gateway::tool::{PluginLimits, short};

/// Instructions that a call may run for each millisecond of its deadline: more than any machine
/// runs. This ends code that cannot be stopped otherwise.
const FUEL_PER_MS: u64 = 4_000_000;
/// How long compiling may take at the start.
const COMPILE_DEADLINE: Duration = Duration::from_secs(120);
/// Most waiting calls. Further ones fail at once.
const MAX_WAITING: usize = 1024;
/// Size of a page of memory.
const PAGE: u64 = 64 * 1024;
/// The memory that 32 bits can address.
const MAX_MEMORY: usize = 1 << 32;
/// Most elements of a table, usually functions.
const MAX_TABLE: usize = 100_000;

/// The module to run, and its limits.
pub(super) struct Module {
    pub(super) code: Vec<u8>,
    pub(super) http: Arc<Http>,
    pub(super) limits: PluginLimits,
}

impl Module {
    /// Compiles the module for one thread.
    fn compile(&self, current: &Arc<Current>) -> Result<CompiledPlugin, CallError> {
        let pages = u32::try_from(self.limits.memory / PAGE).unwrap_or(1 << 16);
        let pages = pages.clamp(1, 1 << 16);
        let bytes = usize::try_from(u64::from(pages) * PAGE).unwrap_or(usize::MAX);
        let mut pool = PoolingAllocationConfig::new();
        // The module, twice while it is linked, and the one of Extism under it. The memory is
        // limited by Extism, which says so; this is only above it.
        pool.total_core_instances(4)
            .total_memories(4)
            .total_tables(8)
            .total_gc_heaps(2)
            .max_memories_per_module(1)
            .max_memory_size(bytes.saturating_mul(2).min(MAX_MEMORY))
            .max_tables_per_module(4)
            .table_elements(MAX_TABLE);
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        // One with the code alone: a manifest in the file could grant itself anything.
        let manifest = Manifest::new([Wasm::data(self.code.clone())]).with_memory_max(pages);
        let deadline = u64::try_from(self.limits.deadline.as_millis()).unwrap_or(u64::MAX);
        PluginBuilder::new(manifest)
            .with_wasmtime_config(config)
            .with_cache_disabled()
            .with_wasi(true)
            .with_fuel_limit(deadline.saturating_mul(FUEL_PER_MS))
            .with_functions(functions(&self.http, current))
            .compile()
            .map_err(|error| CallError::Failed(reason(&error)))
    }
}

/// The reason why a call has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// No thread was free before the deadline. Nothing ran.
    #[error("busy")]
    Busy,
    /// Stopped at the deadline.
    #[error("timeout")]
    TimedOut,
    /// The output is too large.
    #[error("the output is larger than {0} bytes")]
    TooLarge(usize),
    /// The plugin failed.
    #[error("{0}")]
    Failed(String),
}

enum Task {
    /// Ask for the functions.
    Inspect,
    Call(&'static str, Vec<u8>),
}

enum Done {
    Exports(Vec<&'static str>),
    Output(Vec<u8>),
}

struct Job {
    task: Task,
    control: Arc<Control>,
    answer: oneshot::Sender<Result<Done, CallError>>,
    place: OwnedSemaphorePermit,
}

/// The data that the threads share.
struct Shared {
    module: Module,
    queue: Mutex<Queue>,
    ready: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    closed: bool,
}

/// The threads of one plugin. They end when the value is dropped.
pub(super) struct Lanes {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Drop for Lanes {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.ready.notify_all();
    }
}

impl Lanes {
    pub(super) fn new(module: Module) -> Self {
        let places = module.limits.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            shared: Arc::new(Shared {
                module,
                queue: Mutex::default(),
                ready: Condvar::new(),
            }),
            places: Arc::new(Semaphore::new(places)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Compiles the module and returns its functions.
    ///
    /// # Errors
    /// A description of the mistake.
    pub(super) async fn inspect(&self) -> Result<Vec<&'static str>, String> {
        let deadline = Instant::now() + COMPILE_DEADLINE;
        match self.run(Task::Inspect, deadline).await {
            Ok(Done::Exports(exports)) => Ok(exports),
            Ok(Done::Output(_)) => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Calls a function.
    ///
    /// # Errors
    /// [`CallError`].
    pub(super) async fn call(
        &self,
        function: &'static str,
        input: &[u8],
    ) -> Result<Vec<u8>, CallError> {
        let deadline = Instant::now() + self.shared.module.limits.deadline;
        let task = Task::Call(function, input.to_vec());
        match self.run(task, deadline).await? {
            Done::Output(output) => Ok(output),
            Done::Exports(_) => Ok(Vec::new()),
        }
    }

    async fn run(&self, task: Task, deadline: Instant) -> Result<Done, CallError> {
        let place = self.place(deadline).await?;
        let (answer, answered) = oneshot::channel();
        let control = Arc::new(Control::new());
        // Dropped at every way out of here.
        let _stop = StopOnDrop(control.clone());
        self.push(Job {
            task,
            control,
            answer,
            place,
        });
        match timeout_at(deadline, answered).await {
            Ok(Ok(done)) => done,
            // No thread could be started.
            Ok(Err(_)) => Err(CallError::Busy),
            Err(_) => Err(CallError::TimedOut),
        }
    }

    /// Waits for a free thread.
    async fn place(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, CallError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let waiting = Waiting(&self.waiting);
        if waiting.0.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return Err(CallError::Busy);
        }
        match timeout_at(deadline, self.places.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(CallError::Busy),
        }
    }

    fn push(&self, job: Job) {
        let mut queue = lock(&self.shared.queue);
        queue.jobs.push_back(job);
        let most = self.shared.module.limits.concurrency.max(1);
        if queue.jobs.len() > queue.idle && queue.threads < most {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name("plugin".to_owned());
            match thread.spawn(move || shared.work()) {
                Ok(_) => queue.threads += 1,
                // Another may take it. Without any, the drop informs the caller.
                Err(_) if queue.threads == 0 => queue.jobs.clear(),
                Err(_) => {}
            }
        }
        drop(queue);
        self.shared.ready.notify_one();
    }
}

/// A guard that counts one waiting caller.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Runs one thread.
    fn work(&self) {
        let current = Arc::new(Current::default());
        let mut compiled = None;
        let mut was_idle = false;
        while let Some(job) = self.next(was_idle) {
            let run = AssertUnwindSafe(|| self.serve(&mut compiled, &current, &job));
            let done = catch_unwind(run);
            current.set(None);
            let is_stopped = job.control.finish();
            // The order to stop may still be on its way, and would hit the next call. After a
            // panic, the state of the engine is unknown.
            let is_clean = match &done {
                Ok(Err(CallError::TimedOut)) => true,
                Ok(_) => !is_stopped,
                Err(_) => false,
            };
            if !is_clean {
                compiled = None;
            }
            let done = done.unwrap_or_else(|panic| Err(CallError::Failed(message(&*panic))));
            // Ready first, so that the next call does not need another thread.
            lock(&self.queue).idle += 1;
            was_idle = true;
            drop(job.place);
            let _ = job.answer.send(done);
        }
    }

    /// Waits for a job. Returns `None` at the end.
    fn next(&self, was_idle: bool) -> Option<Job> {
        let mut queue = lock(&self.queue);
        if !was_idle {
            queue.idle += 1;
        }
        loop {
            if queue.closed {
                queue.idle -= 1;
                queue.threads -= 1;
                queue.jobs.clear();
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                queue.idle -= 1;
                return Some(job);
            }
            let woken = self.ready.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn serve(
        &self,
        compiled: &mut Option<CompiledPlugin>,
        current: &Arc<Current>,
        job: &Job,
    ) -> Result<Done, CallError> {
        if job.control.is_stopped() {
            return Err(CallError::TimedOut);
        }
        let compiled = match compiled {
            Some(compiled) => compiled,
            None => compiled.insert(self.module.compile(current)?),
        };
        let failed = |error: extism::Error| CallError::Failed(reason(&error));
        let mut plugin = Plugin::new_from_compiled(compiled).map_err(failed)?;
        let (function, input) = match &job.task {
            Task::Inspect => {
                let mut exports = vec![DESCRIBE, CALL, INCOMING, OUTGOING];
                exports.retain(|name| plugin.function_exists(name));
                return Ok(Done::Exports(exports));
            }
            Task::Call(function, input) => (function, input),
        };
        current.set(Some(job.control.clone()));
        if !job.control.start(plugin.cancel_handle()) {
            return Err(CallError::TimedOut);
        }
        let output = plugin.call::<&[u8], &[u8]>(function, input);
        // What Extism makes of the order to stop. A plugin that says the same harms only itself.
        let output = output.map_err(|error| match error.root_cause().to_string().as_str() {
            "timeout" => CallError::TimedOut,
            _ => failed(error),
        })?;
        let limit = self.module.limits.output;
        if output.len() > limit {
            return Err(CallError::TooLarge(limit));
        }
        Ok(Done::Output(output.to_vec()))
    }
}

/// Returns the root cause of an error, without the trace.
fn reason(error: &extism::Error) -> String {
    let cause = error.root_cause().to_string();
    match cause.as_str() {
        "oom" => "out of memory".to_owned(),
        "plugin ran out of fuel" | "wasm trap: all fuel consumed by WebAssembly" => {
            "timeout".to_owned()
        }
        _ => short(&cause),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", short(text.unwrap_or_default()))
}
