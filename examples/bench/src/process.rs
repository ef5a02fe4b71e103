//! What the system says about a process: memory, CPU time, open files. Linux only.

use std::fs;
use std::process::Command;

/// Resident bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    kib(pid, "VmRSS:") * 1024
}

/// The most resident bytes that it ever had.
pub(crate) fn peak(pid: u32) -> u64 {
    kib(pid, "VmHWM:") * 1024
}

fn kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Nanoseconds that all threads of it have run.
pub(crate) fn cpu(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .map(|task| {
            let text = fs::read_to_string(task.unwrap().path().join("schedstat"));
            let text = text.unwrap_or_default();
            let first = text.split_whitespace().next();
            first.map_or(0, |nanoseconds| nanoseconds.parse().unwrap_or(0))
        })
        .sum()
}

/// How many files a child of ours can open at most.
pub(crate) fn most_files() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(4));
    hard.map_or(0, |hard| hard.parse().unwrap_or(usize::MAX))
}

/// Does the work on one processor, with all that it starts; `None` if `taskset` is not there.
pub(crate) fn on_one_processor<T>(work: impl FnOnce() -> T) -> Option<T> {
    let taskset = |words: &[&str]| -> Option<String> {
        let own = std::process::id().to_string();
        let taskset = Command::new("taskset").args(words).arg(own).output().ok()?;
        let said = String::from_utf8(taskset.stdout).ok()?;
        taskset.status.success().then_some(said)
    };
    let before = taskset(&["-cp"])?;
    let (_, before) = before.trim().rsplit_once(": ")?;
    let (first, _) = before.split_once([',', '-']).unwrap_or((before, ""));
    taskset(&["-cp", first])?;
    let done = work();
    taskset(&["-cp", before])?;
    Some(done)
}
