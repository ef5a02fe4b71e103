//! [`Group`]: a program and everything that it starts, killed when the value is dropped.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, ChildStderr, ChildStdout, Command};

#[cfg(target_os = "linux")]
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::view::Mount;
#[cfg(target_os = "linux")]
use tokio::{io::AsyncReadExt as _, net::UnixStream};

/// The longest reason of a supervisor, in bytes.
#[cfg(target_os = "linux")]
const MAX_REASON: u64 = 4096;

/// What a supervisor reports of a program that has ended, after a reason: a byte each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// There was no namespace for a network of its own.
    NoNamespace = 1,
    /// It needed more of a network than it had.
    LacksNetwork = 2,
    /// What it had started was still running, and was ended.
    LeftRunning = 3,
}

#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    /// The id of the group, which is that of its first process, if this process kills it.
    id: Option<u32>,
    /// What the supervisor has noted.
    notes: Vec<u8>,
    /// The connection to the supervisor, which kills everything that its program has started when
    /// it closes.
    #[cfg(target_os = "linux")]
    line: Option<UnixStream>,
    /// What lives as long as this.
    #[cfg(target_os = "linux")]
    _kept: Arc<[Mount]>,
}

impl Group {
    /// Starts a program in its own process group. Processes that leave the group are not tracked.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        let child = command.kill_on_drop(true).spawn()?;
        let id = child.id();
        Ok(Self {
            child,
            id,
            notes: Vec::new(),
            #[cfg(target_os = "linux")]
            line: None,
            #[cfg(target_os = "linux")]
            _kept: Arc::default(),
        })
    }

    /// Starts a supervisor, for a program that leaves this as it is.
    #[cfg(target_os = "linux")]
    pub(super) fn supervised(mut command: Command, kept: Arc<[Mount]>) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let line = Some(UnixStream::from_std(ours)?);
        command.stdin(std::os::fd::OwnedFd::from(theirs));
        let child = command.spawn()?;
        Ok(Self {
            child,
            id: None,
            notes: Vec::new(),
            line,
            _kept: kept,
        })
    }

    pub(crate) fn take_pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the end of the program. If the supervisor could not start it, the error is
    /// [`io::ErrorKind::Unsupported`].
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        #[cfg(target_os = "linux")]
        if let Some(line) = &mut self.line {
            let mut why = Vec::new();
            line.take(MAX_REASON).read_to_end(&mut why).await?;
            // No letter of a reason is less.
            let end = why.iter().position(|it| *it <= Note::LeftRunning as u8);
            self.notes = why.split_off(end.unwrap_or(why.len()));
            if !why.is_empty() {
                let why = String::from_utf8_lossy(&why).into_owned();
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        }
        Ok(status)
    }

    /// Returns whether the supervisor has noted this, once the program has ended.
    pub(crate) fn has_noted(&self, note: Note) -> bool {
        self.notes.contains(&(note as u8))
    }

    /// Kills the remaining processes.
    pub(crate) fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        drop(self.line.take());
        // Once: no other process has this id before the first process was waited for, and right after
        // that hardly.
        let Some(id) = self.id.take() else { return };
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let id = i32::try_from(id).ok().and_then(Pid::from_raw);
            if let Some(id) = id {
                // There may be no process any more.
                let _ = kill_process_group(id, Signal::KILL);
            }
        }
        #[cfg(not(unix))]
        {
            let _ = id;
            let _ = self.child.start_kill();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
