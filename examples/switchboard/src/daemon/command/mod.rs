//! [`Commands`]: programs that run in the workspace, with limits on their time and output.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod filter;
pub(crate) mod group;
#[cfg(target_os = "linux")]
mod isolate;
#[cfg(target_os = "linux")]
mod lack;
mod output;
#[cfg(target_os = "linux")]
mod reach;
mod scratch;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod view;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::{OnceLock, Weak};
use std::time::Duration;

use rpc_core::sync::Mutex;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use self::group::{Group, Note};
#[cfg(target_os = "linux")]
use self::reach::Reach;
use self::scratch::Scratch;
#[cfg(target_os = "linux")]
use super::git;
use super::{Code, ToolError, Workspace};

pub use output::{News, Output};

/// The variables of the daemon's environment that programs get. They get no others, and no keys.
const KEPT: &str = "PATH LANG LANGUAGE LC_ALL LC_CTYPE TZ USER LOGNAME GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL \
    GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL SYSTEMROOT PATHEXT";
/// How many sessions keep their folders.
const SESSIONS: usize = 32;
/// How long to read the output of processes that a program leaves behind.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The access of programs to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Confinement {
    /// Programs can write only in the workspace, and read only there and what the system's programs
    /// need. The kernel enforces this with namespaces, Landlock and a filter for system calls
    /// (Linux 6.2 or newer). Where it cannot, no program runs. See [`Network`] for what they reach.
    #[default]
    #[value(help = "The workspace only")]
    Workspace,
    /// Programs have the access of this process.
    #[value(help = "Everything that you can reach")]
    Open,
    /// No program runs.
    #[value(help = "No commands")]
    Off,
}

/// What confined programs do with the settings and hooks of Git, which it runs when the user calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum GitAccess {
    /// They read them.
    #[default]
    #[value(help = "Commands read them; 'git commit', 'git branch' and 'git stash' work")]
    Read,
    /// They write them.
    #[value(help = "Commands write them, for 'git remote add' and the like")]
    Open,
}

/// The network of confined programs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum, Serialize, Deserialize,
)]
pub enum Network {
    /// One of their own, which is a loopback: the programs of one command reach each other there, and
    /// nothing else. Where the system has no namespace for it, they have [none](Self::Nothing).
    #[default]
    #[value(
        help = "A loopback of their own, and no other network; no network at all where the system has no namespace for it"
    )]
    Own,
    /// None at all: no socket can be opened.
    #[value(skip)]
    Nothing,
    /// That of this process.
    #[value(help = "The network, and with it the servers of this machine, this daemon among them")]
    On,
}

impl Network {
    /// Returns what a program that fails for want of a network should know.
    pub(super) const fn remark(self) -> &'static str {
        match self {
            Self::Own => {
                "(a command has a loopback of its own, and no other network: it reaches no server that it has not \
                 started itself, not even on this machine; 'daemon serve --network on' allows more)"
            }
            _ => {
                "(a command has no network, and no loopback either; 'daemon serve --network on' allows it)"
            }
        }
    }
}

rpc_core::config! {
    /// The configuration of [`Commands`].
    #[derive(Clone, Debug)]
    pub struct CommandConfig {
        /// The access of programs. Default: the workspace.
        pub confinement: Confinement = Confinement::default() => with_confinement,
        /// What confined programs do with Git's settings and hooks. Default: they read them.
        pub git: GitAccess = GitAccess::default() => with_git,
        /// The network of confined programs. Default their own.
        pub network: Network = Network::default() => with_network,
        /// Further folders and files that programs may read. Default none.
        pub readable: Vec<PathBuf> = Vec::new() => with_readable(Vec<PathBuf>),
        /// Further folders that programs may write, by their real paths. What Git executes there is read-only. Default
        /// none.
        pub writable: Vec<PathBuf> = Vec::new() => with_writable(Vec<PathBuf>),
        /// What to know of Git's folder where programs do not reach it. Default nothing.
        pub git_remark: Option<String> = None,
        /// Further variables of the environment that programs get. Default none.
        pub variables: Vec<String> = Vec::new() => with_variables(Vec<String>),
        /// The timeout of a program, unless the call sets one. Default two minutes.
        pub timeout: Duration = Duration::from_secs(120) => with_timeout,
        /// The longest timeout that a call can set. Default ten minutes.
        pub max_timeout: Duration = Duration::from_secs(600),
        /// On Linux, the program that supervises each program: one that calls [`supervise`] first.
        /// Default: this program.
        pub supervisor: Option<PathBuf> = None => with_supervisor(PathBuf),
    }
}

/// Supervises a command, if this process was started for that, and returns the code to exit with.
/// Every program that uses [`Commands`] must call it first in `main`, before it starts a thread.
pub fn supervise() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    return supervise::main();
    #[cfg(not(target_os = "linux"))]
    None
}

/// A runner of programs, for one session.
#[derive(Clone, Debug)]
pub struct Commands {
    config: Arc<CommandConfig>,
    /// For each workspace, created for its first command.
    scratches: Arc<Mutex<Scratches>>,
    sessions: Arc<Mutex<VecDeque<Session>>>,
    #[cfg(target_os = "linux")]
    reach: Arc<OnceLock<Reach>>,
    #[cfg(target_os = "linux")]
    kept: Arc<Mutex<Weak<[view::Mount]>>>,
}

type Scratches = HashMap<PathBuf, Arc<Scratch>>;
type Session = (String, Arc<Mutex<Scratches>>);

impl Commands {
    /// Creates a runner. Programs get a home and a folder for temporary files for each workspace, which are deleted with
    /// the last clone.
    pub fn new(config: CommandConfig) -> Self {
        #[cfg(unix)]
        scratch::remove_abandoned(&std::env::temp_dir());
        Self {
            config: config.into(),
            scratches: Arc::default(),
            sessions: Arc::default(),
            #[cfg(target_os = "linux")]
            reach: Arc::default(),
            #[cfg(target_os = "linux")]
            kept: Arc::new(Mutex::new(Weak::<[view::Mount; 0]>::new())),
        }
    }

    /// Returns the runner for a session, with folders of its own, which are kept for the newest sessions. Without a name,
    /// they are deleted with the runner.
    #[must_use]
    pub fn of_session(&self, name: Option<&str>) -> Self {
        let mut session = self.clone();
        session.scratches = Arc::default();
        if let Some(name) = name {
            let mut sessions = self.sessions.lock();
            if let Some(index) = sessions.iter().position(|(it, _)| it == name) {
                session.scratches = sessions.remove(index).unwrap_or_default().1;
            }
            sessions.truncate(SESSIONS - 1);
            sessions.push_front((name.to_owned(), Arc::clone(&session.scratches)));
        }
        session
    }

    /// Returns the access of programs to the system.
    pub fn confinement(&self) -> Confinement {
        self.config.confinement
    }

    /// Returns what commands can do, for the model.
    pub fn words(&self) -> String {
        let network = match self.config.network {
            Network::On => "with the network",
            _ => "without a network",
        };
        let git = match self.config.git {
            GitAccess::Read => "; they read Git's settings and hooks, and do not write them",
            GitAccess::Open => "",
        };
        match self.config.confinement {
            Confinement::Off => "Commands: none".to_owned(),
            Confinement::Open => "Commands: they reach what the user does".to_owned(),
            Confinement::Workspace => format!("Commands: in the workspace only, {network}{git}"),
        }
    }

    /// Runs a line of the shell in the workspace to its end. What it says goes to `show` while it
    /// runs; the rest of that is [`Output::news`]. A program that fails is not an error: the output has its
    /// exit code.
    ///
    /// # Errors
    /// [`ToolError`]: it could not be started, or took too long; its effects remain.
    ///
    /// # Cancel safety
    /// Dropping the future kills the program and everything that it has started: on Linux without
    /// exception, elsewhere unless it has left its process group.
    pub async fn run(
        &self,
        workspace: &Workspace,
        line: &str,
        timeout: Option<Duration>,
        show: &mut (dyn FnMut(News) + Send),
    ) -> Result<Output, ToolError> {
        let config = &self.config;
        if config.confinement == Confinement::Off {
            return Err(ToolError::call("commands are not run here"));
        }
        let timeout = timeout.unwrap_or(config.timeout).min(config.max_timeout);
        let started = self.spawn(workspace.path(), line);
        let mut group = started.map_err(|error| not_run(&error))?;
        let mut captured = output::Capture::default();
        let (out, err) = group.take_pipes();
        let ended = {
            let mut listening = std::pin::pin!(captured.listen(out, err, show));
            let mut is_silent = false;
            let ended = tokio::time::timeout(timeout, async {
                tokio::select! {
                    () = &mut listening => {
                        is_silent = true;
                        group.wait().await
                    }
                    status = group.wait() => status,
                }
            })
            .await;
            // Those that it has left behind.
            group.kill();
            if !is_silent {
                let _ = tokio::time::timeout(LAST_WORDS, listening).await;
            }
            ended
        };
        match ended {
            Ok(Ok(status)) => {
                let mut output = captured.finish(status);
                output.lacks_network = group.has_noted(Note::LacksNetwork);
                output.left_running = group.has_noted(Note::LeftRunning);
                output.network = match config.confinement {
                    Confinement::Workspace if group.has_noted(Note::NoNamespace) => {
                        Network::Nothing
                    }
                    Confinement::Workspace => config.network,
                    _ => Network::On,
                };
                #[cfg(target_os = "linux")]
                if output.code != Some(0) {
                    output.lacks = self.lack(workspace, line, &output);
                }
                Ok(output)
            }
            Ok(Err(error)) => Err(not_run(&error)),
            Err(_) => {
                let last_words = captured.finish_early();
                let message =
                    format!("it did not end within {timeout:?}, and was killed{last_words}");
                Err(ToolError::new(Code::TimedOut, message))
            }
        }
    }

    /// Checks whether commands can run with this configuration, and returns the network that they have.
    ///
    /// # Errors
    /// [`ToolError`], which says what is missing.
    pub async fn check(&self, workspace: &Workspace) -> Result<Network, ToolError> {
        if self.config.confinement == Confinement::Off {
            return Ok(Network::Nothing);
        }
        let output = self.run(workspace, "true", None, &mut drop).await?;
        Ok(output.network)
    }

    fn spawn(&self, folder: &Path, line: &str) -> io::Result<Group> {
        let scratch = self.scratch(folder)?;
        let (shell, option) = match cfg!(windows) {
            true => ("cmd", "/C"),
            false => (shell(), "-c"),
        };
        match self.config.confinement {
            // These tests have no program that could supervise.
            Confinement::Open if cfg!(any(test, not(target_os = "linux"))) => {
                let mut command = self.command(shell, folder, &scratch);
                command.args([option, line]);
                Group::spawn(command)
            }
            confinement => self.supervised(confinement, folder, &scratch, line),
        }
    }

    /// Returns what stays as it is in the folders that are writable. All programs that run at once have the same, so that
    /// none keeps what another one has made.
    #[cfg(target_os = "linux")]
    fn kept(&self) -> Arc<[view::Mount]> {
        let mut kept = self.kept.lock();
        kept.upgrade().unwrap_or_else(|| {
            let paths = self.config.writable.iter().flat_map(|it| git::kept(it));
            let mounts = paths.map(|path| view::Mount::kept(&path));
            let mounts = mounts.collect();
            *kept = Arc::downgrade(&mounts);
            mounts
        })
    }

    /// Returns what a failed program should know of its confinement.
    #[cfg(target_os = "linux")]
    fn lack(&self, workspace: &Workspace, line: &str, output: &Output) -> Option<String> {
        let scratch = self.scratch(workspace.path()).ok()?;
        let bounds = lack::Bounds {
            folder: workspace.path(),
            scratch: &scratch,
            readable: &self.reach.get()?.readable,
            config: &self.config,
        };
        bounds.remark(line, output)
    }

    #[cfg(target_os = "linux")]
    fn supervised(
        &self,
        confinement: Confinement,
        folder: &Path,
        scratch: &Scratch,
        line: &str,
    ) -> io::Result<Group> {
        let supervisor = self.config.supervisor.as_deref();
        // That name is right even if the file was replaced meanwhile.
        let supervisor = supervisor.unwrap_or(Path::new("/proc/self/exe"));
        let mut command = self.command(supervisor, folder, scratch);
        let role = match confinement {
            Confinement::Open => supervise::OPEN,
            _ => supervise::CONFINED,
        };
        let kept = self.kept();
        let plan = supervise::Plan {
            network: self.config.network,
            is_git_open: self.config.git == GitAccess::Open,
            folder: folder.to_owned(),
            mounts: [&*scratch.mounts, &*kept].concat(),
            line: line.into(),
        };
        command.arg0("daemon").arg(role).envs(plan.variables());
        Group::supervised(command, kept)
    }

    #[cfg(not(target_os = "linux"))]
    fn supervised(&self, _: Confinement, _: &Path, _: &Scratch, _: &str) -> io::Result<Group> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "commands are confined on Linux only",
        ))
    }

    /// Returns the home and the folder for temporary files.
    fn scratch(&self, folder: &Path) -> io::Result<Arc<Scratch>> {
        let mut scratches = self.scratches.lock();
        if let Some(scratch) = scratches.get(folder) {
            return Ok(Arc::clone(scratch));
        }
        let scratch = Scratch::new()?;
        #[cfg(target_os = "linux")]
        let scratch = match self.config.confinement {
            Confinement::Workspace => {
                let further = &self.config.readable;
                let reach = self.reach.get_or_init(|| Reach::new(further, folder));
                let mut writable = vec![folder.to_owned()];
                writable.extend_from_slice(&self.config.writable);
                scratch.confine(&writable, reach)?
            }
            _ => scratch,
        };
        let scratch = Arc::new(scratch);
        scratches.insert(folder.to_owned(), Arc::clone(&scratch));
        Ok(scratch)
    }

    /// Prepares a program with its environment.
    fn command(&self, program: impl AsRef<OsStr>, folder: &Path, scratch: &Scratch) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env("TERM", "dumb")
            .env("HOME", &scratch.home)
            .env("TMPDIR", &scratch.temporary)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(target_os = "linux")]
        command.envs(reach::kept().map(|(variable, _)| variable));
        let more = self.config.variables.iter().map(String::as_str);
        for name in KEPT.split_whitespace().chain(more) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }
}

/// Returns the shell of commands: models write for bash.
fn shell() -> &'static str {
    let bash = "/bin/bash";
    if Path::new(bash).exists() {
        bash
    } else {
        "/bin/sh"
    }
}

fn not_run(error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            ToolError::call("the command is too long: long texts are written with file-create")
        }
        io::ErrorKind::Unsupported => ToolError::new(
            Code::Sandbox,
            format!("commands are not run, because they cannot be kept in the workspace: {error}"),
        ),
        _ => ToolError::new(Code::Other, format!("sh: {error}")),
    }
}
