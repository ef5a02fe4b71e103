//! Counting instructions and allocations: one way of a work, in a child process under callgrind.

use std::collections::{HashMap, HashSet};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Per round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
}

/// A work by its name, the way to do it, and how often.
pub(crate) type Job<'a> = (&'a str, &'a str, u64);

/// Entry points of the allocator. `__rust_alloc` is not counted: it ends in one of these.
const ALLOCATORS: &str = "malloc calloc realloc posix_memalign aligned_alloc";

/// Counts several works, each done one way, as many at a time as there are processors: counting is
/// not disturbed by other work. Returns what each takes, by work and way.
pub(crate) fn count_all<'a>(jobs: Vec<Job<'a>>) -> HashMap<(&'a str, &'a str), Cost> {
    let (next, found) = (Mutex::new(jobs.into_iter()), Mutex::new(HashMap::new()));
    let work = || {
        loop {
            let job = next.lock().unwrap().next();
            let Some(job) = job else { return };
            let cost = count(job);
            found.lock().unwrap().insert((job.0, job.1), cost);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap()
}

/// Runs it once with `rounds` rounds and once with twice as many: what does not grow is left out.
fn count((name, way, rounds): Job<'_>) -> Cost {
    eprintln!("{name}, {way}");
    let [once, twice] = [rounds, 2 * rounds].map(|rounds| {
        let profile = profile(name, way, rounds);
        (instructions(&profile), allocations(&profile))
    });
    let per_round = |more: u64, less: u64| more.saturating_sub(less) as f64 / rounds as f64;
    Cost {
        instructions: per_round(twice.0, once.0),
        allocations: per_round(twice.1, once.1),
    }
}

fn profile(name: &str, way: &str, rounds: u64) -> String {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "-q", "--callgrind-out-file=/dev/stdout"])
        // Else a copy of a few kilobytes is an instruction that counts once for each byte.
        .env(
            "GLIBC_TUNABLES",
            "glibc.cpu.x86_rep_movsb_threshold=1000000000",
        )
        .arg(std::env::current_exe().unwrap())
        .args(["one", name, way, &rounds.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("valgrind cannot be started: is it installed?");
    assert!(output.status.success(), "{name} / {way} failed");
    String::from_utf8(output.stdout).unwrap()
}

fn instructions(profile: &str) -> u64 {
    let mut lines = profile.lines();
    let total = lines.find_map(|line| line.strip_prefix("totals: "));
    total.map_or(0, |total| total.trim().parse().unwrap())
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
            let name = name.split('\'').next().unwrap_or(name);
            if ALLOCATORS.split(' ').any(|allocator| allocator == name) {
                wanted.insert(number.to_owned());
            }
            called = line.starts_with('c') && wanted.contains(number);
        } else if let Some(calls) = line.strip_prefix("calls=") {
            if called {
                let (count, _) = calls.split_once(' ').unwrap_or((calls, ""));
                sum += count.parse::<u64>().unwrap();
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
