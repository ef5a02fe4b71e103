//! Counting instructions and allocations: one way of a work, in a child process under callgrind.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::work::Work;

/// Per round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
}

/// Entry points of the allocator. `__rust_alloc` is not counted: it ends in one of these.
const ALLOCATORS: [&str; 5] = [
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
];

/// A work by its name, the way to do it, and how often.
struct Job<'a>(&'a str, &'a str, u64);

/// Counts several works, each done one way, as many at a time as there are processors: counting is
/// not disturbed by other work. `None` in place of a cost: valgrind is not there.
pub(crate) fn count_all(jobs: &[(&Work, &str)]) -> Vec<Option<Cost>> {
    let jobs: Vec<Job<'_>> = jobs
        .iter()
        .map(|(work, way)| Job(work.name, way, work.rounds))
        .collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; jobs.len()]);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else {
                        return;
                    };
                    let cost = count(job, at);
                    found.lock().unwrap()[at] = cost;
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// Runs it once with `rounds` rounds and once with twice as many: what does not grow is left out.
fn count(job: &Job<'_>, number: usize) -> Option<Cost> {
    let Job(name, way, rounds) = *job;
    eprintln!("{name}, {way}");
    let once = totals(job, rounds, number)?;
    let twice = totals(job, 2 * rounds, number)?;
    let per_round = |more: u64, less: u64| more.saturating_sub(less) as f64 / rounds as f64;
    Some(Cost {
        instructions: per_round(twice.0, once.0),
        allocations: per_round(twice.1, once.1),
    })
}

fn totals(&Job(name, way, _): &Job<'_>, rounds: u64, number: usize) -> Option<(u64, u64)> {
    let file = format!("bench-{}-{number}.callgrind", std::process::id());
    let file = std::env::temp_dir().join(file);
    let status = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--cache-sim=no",
            "--branch-sim=no",
            "-q",
        ])
        .arg(format!("--callgrind-out-file={}", file.display()))
        // Else a copy of a few kilobytes is an instruction that counts once for each byte.
        .env(
            "GLIBC_TUNABLES",
            "glibc.cpu.x86_rep_movsb_threshold=1000000000",
        )
        .arg(std::env::current_exe().unwrap())
        .args(["one", name, way, &rounds.to_string()])
        .stderr(Stdio::inherit())
        .status()
        .ok()?;
    assert!(status.success(), "{name} / {way} failed under callgrind");
    let profile = std::fs::read_to_string(&file).unwrap();
    let _ = std::fs::remove_file(&file);
    Some((instructions(&profile), allocations(&profile)))
}

fn instructions(profile: &str) -> u64 {
    let line = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    line.and_then(|total| total.trim().parse().ok())
        .unwrap_or(0)
}

/// Adds up the calls to the allocator. A function's name stands at its first mention only; later
/// ones have its number: `cfn=(12) malloc`, then `cfn=(12)`.
fn allocations(profile: &str) -> u64 {
    let mut wanted = HashSet::new();
    let mut called = false;
    let mut sum = 0;
    for line in profile.lines() {
        if let Some(function) = line.strip_prefix("fn=").or(line.strip_prefix("cfn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            // A recursion level may follow the name: `malloc'2`.
            if ALLOCATORS.contains(&name.split('\'').next().unwrap_or(name)) {
                wanted.insert(number.to_owned());
            }
            called = line.starts_with('c') && wanted.contains(number);
        } else if let Some(calls) = line.strip_prefix("calls=") {
            if called {
                let count = calls
                    .split(' ')
                    .next()
                    .and_then(|count| count.parse::<u64>().ok());
                sum += count.unwrap_or(0);
            }
            called = false;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocator_calls_are_counted() {
        let profile = "fn=(1) main\n1 5\ncfn=(2) malloc\ncalls=3 0\n1 30\ncfn=(3) free\ncalls=9 0\n1 9\nfn=(4) other\ncfn=(2)\ncalls=2 0\n1 8\ntotals: 123\n";
        assert_eq!((instructions(profile), allocations(profile)), (123, 5));
    }
}
