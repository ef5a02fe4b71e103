//! [`Usage`]: processor time and memory of a process, on Linux from `/proc`.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What a process has used during a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The process.
    pub pid: u32,
    /// Processor time in seconds, of all its threads.
    pub cpu: f64,
    /// Processors in use on average: 1 is one that had no pause.
    pub processors: f64,
    /// Resident memory in bytes at the beginning.
    pub memory_before: u64,
    /// The most resident memory that was seen.
    pub memory_most: u64,
}

/// A process that is watched.
#[derive(Debug)]
pub struct Watch {
    pid: u32,
    began: Instant,
    before: Sample,
    most: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    cpu: Duration,
    memory: u64,
}

impl Watch {
    /// Begins to watch a process. `None` if there is none, or the system does not say.
    #[must_use]
    pub fn begin(pid: u32) -> Option<Self> {
        let before = sample(pid)?;
        Some(Self {
            pid,
            began: Instant::now(),
            before,
            most: before.memory,
        })
    }

    /// Looks how much memory the process has now.
    pub fn look(&mut self) {
        if let Some(now) = sample(self.pid) {
            self.most = self.most.max(now.memory);
        }
    }

    /// Returns what the process has used since the beginning. `None` if it has ended.
    #[must_use]
    pub fn end(&self) -> Option<Usage> {
        let now = sample(self.pid)?;
        let cpu = now.cpu.saturating_sub(self.before.cpu).as_secs_f64();
        let time = self.began.elapsed().as_secs_f64();
        Some(Usage {
            pid: self.pid,
            cpu,
            processors: cpu / time.max(f64::EPSILON),
            memory_before: self.before.memory,
            memory_most: self.most.max(now.memory),
        })
    }
}

#[cfg(target_os = "linux")]
fn sample(pid: u32) -> Option<Sample> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (ticks, pages) = read_stat(&stat)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Sample {
        cpu: Duration::from_millis(ticks.saturating_mul(1000) / per_second),
        memory: pages.saturating_mul(u64::try_from(rustix::param::page_size()).ok()?),
    })
}

#[cfg(not(target_os = "linux"))]
fn sample(_pid: u32) -> Option<Sample> {
    None
}

/// Reads the ticks of the processor, and the pages of memory, from `/proc/PID/stat`.
#[cfg(any(target_os = "linux", test))]
fn read_stat(stat: &str) -> Option<(u64, u64)> {
    // The second field is the name of the program, which may have anything in it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some((number(14)? + number(15)?, number(24)?))
}

/// Returns the process of this machine that listens on a port. `None` if there is none, it is somebody
/// else's, or the system does not say.
#[must_use]
#[cfg(target_os = "linux")]
pub fn listener(port: u16) -> Option<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|table| listening(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.filter_map(Result::ok).find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let files = std::fs::read_dir(process.path().join("fd")).ok()?;
        let mut links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        let has_it = links.any(|link| sockets.iter().any(|it| link.as_os_str() == it.as_str()));
        has_it.then_some(pid)
    })
}

/// Returns the process of this machine that listens on a port, where the system says it: here it does not.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn listener(_port: u16) -> Option<u32> {
    None
}

/// Returns the inodes of the sockets that listen on a port, from `/proc/net/tcp`.
#[cfg(any(target_os = "linux", test))]
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let end = format!(":{port:04X}");
    let rows = table.lines().filter_map(|row| {
        let mut fields = row.split_ascii_whitespace();
        let (local, state) = (fields.nth(1)?, fields.nth(1)?);
        let inode = fields.nth(5)?;
        (local.ends_with(&end) && state == LISTEN).then(|| inode.to_owned())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_may_have_brackets() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 999 8192 77 0";
        assert_eq!(read_stat(stat), Some((300, 77)));
        assert_eq!(read_stat("42 (a"), None);
    }

    #[test]
    fn only_sockets_that_listen_on_the_port_are_found() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0
   1: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0
";
        assert_eq!(listening(table, 8080), ["111"]);
        assert!(listening(table, 80).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_by_its_port_and_uses_memory() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port), Some(std::process::id()));
        let mut watch = Watch::begin(std::process::id()).unwrap();
        watch.look();
        let usage = watch.end().unwrap();
        assert!(usage.memory_most >= usage.memory_before && usage.memory_before > 0);
    }
}
