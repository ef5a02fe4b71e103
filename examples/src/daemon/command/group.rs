//! [`Group`]: a program with all that it starts, which are killed with the value.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::strays::Mark;

#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    /// What the group is called: the number of its first process.
    id: Option<u32>,
    mark: Mark,
}

impl Group {
    /// Starts a program, which is to have a group of its own.
    pub(super) fn spawn(mut command: Command) -> io::Result<Self> {
        let mark = Mark::put_on(&mut command);
        let child = command.spawn()?;
        let id = child.id();
        Ok(Self { child, id, mark })
    }

    pub(super) fn take_pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Kills whoever is left.
    pub(super) fn kill(&mut self) {
        // Once: nobody else is called like this before the first process was waited for, and right after
        // that hardly.
        let Some(id) = self.id.take() else { return };
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let id = i32::try_from(id).ok().and_then(Pid::from_raw);
            if let Some(id) = id {
                // There may be nobody any more.
                let _ = kill_process_group(id, Signal::KILL);
            }
        }
        #[cfg(not(unix))]
        {
            let _ = id;
            let _ = self.child.start_kill();
        }
        self.mark.kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
