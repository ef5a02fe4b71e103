//! [`Mark`]: finds what a command has started by its environment, which it hands on.

use tokio::process::Command;

/// The variable that holds the mark.
const VARIABLE: &str = "DAEMON_COMMAND";

/// Told to a program and, by it, to all that it starts; so those are found that have left its process
/// group, as servers do that put themselves into the background. Who wipes its environment as well is
/// not. Linux only.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// Marks a program that is not started yet.
    pub(super) fn put_on(command: &mut Command) -> Self {
        let value = format!("{:016x}", rpc_core::net::link::entropy());
        command.env(VARIABLE, &value);
        Self(format!("{VARIABLE}={value}"))
    }

    /// Kills whoever has the mark.
    pub(super) fn kill(&self) {
        #[cfg(target_os = "linux")]
        linux::kill(self.0.as_bytes());
        #[cfg(not(target_os = "linux"))]
        let _ = &self.0;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::io::Read as _;
    use std::path::Path;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    /// Looks, at most: one that is found may have started another one a moment ago.
    const LOOKS: usize = 5;
    /// So much of an environment is read, in bytes.
    const MAX_ENVIRONMENT: u64 = 256 * 1024;

    pub(super) fn kill(mark: &[u8]) {
        let mut killed = Vec::new();
        for _ in 0..LOOKS {
            let before = killed.len();
            kill_new(mark, &mut killed);
            if killed.len() == before {
                return;
            }
        }
    }

    fn kill_new(mark: &[u8], killed: &mut Vec<Pid>) {
        let Ok(entries) = fs::read_dir("/proc") else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            let Some(id) = number.and_then(Pid::from_raw) else {
                continue;
            };
            if killed.contains(&id) || !has(&entry.path(), mark) {
                continue;
            }
            // Held and looked at again, so that nobody is met who has the number by now.
            if let Ok(process) = pidfd_open(id, PidfdFlags::empty())
                && has(&entry.path(), mark)
            {
                // It may have ended by itself.
                let _ = pidfd_send_signal(process, Signal::KILL);
                killed.push(id);
            }
        }
    }

    fn has(process: &Path, mark: &[u8]) -> bool {
        let mut environment = Vec::new();
        let Ok(file) = File::open(process.join("environ")) else {
            return false;
        };
        let read = file.take(MAX_ENVIRONMENT).read_to_end(&mut environment);
        read.is_ok() && environment.split(|byte| *byte == 0).any(|it| it == mark)
    }
}
