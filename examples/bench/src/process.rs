//! What the system says about a process: memory and CPU time. Linux only.

use std::fs;

/// Resident bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
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
