//! [`Commands`]: programs that run in the workspace, with limits on their time and output.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod filter;
pub(crate) mod group;
#[cfg(target_os = "linux")]
mod guard_git;
#[cfg(target_os = "linux")]
mod isolate;
mod output;
#[cfg(target_os = "linux")]
mod supervise;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use rpc_core::sync::Mutex;
use tokio::process::Command;

use self::group::{Group, Note};
use super::{Code, ToolError, Workspace};

pub use output::{News, Output};

/// The variables of the daemon's environment that programs get. They get no others, and no keys.
const KEPT: [&str; 15] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "USER",
    "LOGNAME",
    "CARGO_HOME",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "SYSTEMROOT",
    "PATHEXT",
];
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
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
    #[cfg(target_os = "linux")]
    const ALL: [Self; 3] = [Self::Own, Self::Nothing, Self::On];

    /// Returns the word for it in a plan.
    #[cfg(target_os = "linux")]
    const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Nothing => "nothing",
            Self::On => "on",
        }
    }

    #[cfg(target_os = "linux")]
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

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

/// A runner of programs.
#[derive(Clone, Debug)]
pub struct Commands {
    config: CommandConfig,
    /// Created for the first command.
    scratch: Arc<Mutex<Option<Scratch>>>,
    /// What confined commands can read besides the system: the real paths at the start.
    #[cfg(target_os = "linux")]
    readable: Arc<[PathBuf]>,
}

impl Commands {
    /// Creates a runner. Programs get a folder for temporary files, which is deleted with the last
    /// clone.
    pub fn new(config: CommandConfig) -> Self {
        #[cfg(target_os = "linux")]
        let readable = {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path = std::env::split_paths(&path).filter(|it| it.is_absolute());
            let all = config.readable.iter().cloned().chain(path);
            let all = all.chain(toolchains());
            all.filter_map(|it| it.canonicalize().ok()).collect()
        };
        #[cfg(unix)]
        remove_abandoned(&std::env::temp_dir());
        Self {
            config,
            scratch: Arc::default(),
            #[cfg(target_os = "linux")]
            readable,
        }
    }

    /// Returns the access of programs to the system.
    pub const fn confinement(&self) -> Confinement {
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
        let mut group = self.start(workspace, line)?;
        let mut heard = output::Capture::default();
        let (out, err) = group.take_pipes();
        let ended = {
            let mut listening = std::pin::pin!(heard.listen(out, err, show));
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
                let mut output = heard.finish(status);
                output.lacks_network = group.has_noted(Note::LacksNetwork);
                output.is_git_open =
                    config.confinement == Confinement::Open || config.git == GitAccess::Open;
                output.network = match config.confinement {
                    Confinement::Workspace if group.has_noted(Note::NoNamespace) => {
                        Network::Nothing
                    }
                    Confinement::Workspace => config.network,
                    _ => Network::On,
                };
                Ok(output)
            }
            Ok(Err(error)) => Err(not_run(&error)),
            Err(_) => {
                let said = heard.finish_early();
                let message = format!("it did not end within {timeout:?}, and was killed{said}");
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

    fn start(&self, workspace: &Workspace, line: &str) -> Result<Group, ToolError> {
        let scratch = self.scratch().map_err(|error| not_run(&error))?;
        let (shell, option) = match cfg!(windows) {
            true => ("cmd", "/C"),
            false => ("/bin/sh", "-c"),
        };
        let started = match self.config.confinement {
            // These tests have no program that could supervise.
            Confinement::Open if cfg!(any(test, not(target_os = "linux"))) => {
                let mut command = self.command(shell, workspace.path(), &scratch);
                command.args([option, line]);
                Group::spawn(command)
            }
            confinement => self.supervised(confinement, workspace.path(), scratch, line),
        };
        started.map_err(|error| not_run(&error))
    }

    #[cfg(target_os = "linux")]
    fn supervised(
        &self,
        confinement: Confinement,
        folder: &Path,
        scratch: PathBuf,
        line: &str,
    ) -> io::Result<Group> {
        let supervisor = self.config.supervisor.as_deref();
        // That name is right even if the file was replaced meanwhile.
        let supervisor = supervisor.unwrap_or(Path::new("/proc/self/exe"));
        let mut command = self.command(supervisor, folder, &scratch);
        let role = match confinement {
            Confinement::Open => supervise::OPEN,
            _ => supervise::CONFINED,
        };
        let plan = supervise::Plan {
            network: self.config.network,
            is_git_open: self.config.git == GitAccess::Open,
            writable: vec![folder.to_owned(), scratch],
            readable: self.readable.to_vec(),
            program: ["/bin/sh", "-c", line].map(Into::into).into(),
        };
        command.arg0("daemon").arg(role).args(plan.to_args());
        Group::supervised(command)
    }

    #[cfg(not(target_os = "linux"))]
    fn supervised(&self, _: Confinement, _: &Path, _: PathBuf, _: &str) -> io::Result<Group> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "commands are confined on Linux only",
        ))
    }

    /// Returns the folder for temporary files.
    fn scratch(&self) -> io::Result<PathBuf> {
        let mut scratch = self.scratch.lock();
        if let Some(scratch) = &*scratch {
            return Ok(scratch.path.clone());
        }
        let made = Scratch::new()?;
        let path = made.path.clone();
        *scratch = Some(made);
        Ok(path)
    }

    /// Prepares a program with its environment.
    fn command(&self, program: impl AsRef<OsStr>, folder: &Path, scratch: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env("TERM", "dumb")
            .env("HOME", scratch)
            .env("TMPDIR", scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(toolchains) = toolchains() {
            command.env("RUSTUP_HOME", toolchains);
        }
        let more = self.config.variables.iter().map(String::as_str);
        for name in KEPT.into_iter().chain(more) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }
}

fn not_run(error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::Unsupported => ToolError::new(
            Code::Sandbox,
            format!("commands are not run, because they cannot be kept in the workspace: {error}"),
        ),
        _ => ToolError::new(Code::Other, format!("sh: {error}")),
    }
}

/// Returns the folder of the compilers that rustup has installed, because programs have another
/// home. Unlike Cargo's folder, it has no secrets.
fn toolchains() -> Option<PathBuf> {
    let given = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let at_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup"));
    given.or_else(at_home).filter(|path| path.is_dir())
}

/// A folder for the temporary files of programs.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    /// Locked as long as this process lives.
    #[cfg(unix)]
    _lock: fs::File,
}

impl Scratch {
    fn new() -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        let why = |error| io::Error::other(format!("temporary folder {temporary:?}: {error}"));
        let temporary = temporary.canonicalize().map_err(why)?;
        let random = rpc_core::net::entropy();
        let path = temporary.join(format!("daemon-{}-{random:016x}", std::process::id()));
        make_private(&path)?;
        let scratch = Self {
            #[cfg(unix)]
            _lock: lock(&path)?,
            path,
        };
        // Below the settings of a repository, and of the variables that a commit is made with.
        let name = git_setting("user.name").unwrap_or_else(|| "Switchboard daemon".to_owned());
        let mail = git_setting("user.email").unwrap_or_else(|| "daemon@localhost".to_owned());
        let settings = format!("[user]\n\tname = {name:?}\n\temail = {mail:?}\n");
        fs::write(scratch.path.join(".gitconfig"), settings)?;
        Ok(scratch)
    }
}

/// Returns a setting of this user for Git, whose file commands do not see.
fn git_setting(name: &str) -> Option<String> {
    let mut git = std::process::Command::new("git");
    let asked = git.args(["config", "--global", "--includes", name]);
    let told = asked.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = String::from_utf8(told.ok()?.stdout).ok()?;
    let text = text.trim();
    let is_plain = !text.is_empty() && !text.contains(char::is_control);
    is_plain.then(|| text.to_owned())
}

/// Locks a folder; fails if another process has locked it.
#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<fs::File> {
    use rustix::fs::{FlockOperation, flock};
    let file = fs::File::open(folder)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes the folders of processes that were killed, as far as they are this user's.
#[cfg(unix)]
fn remove_abandoned(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        // One in another container may have locked it.
        if process.is_some_and(is_gone) && lock(&entry.path()).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the process whose folder has this name.
#[cfg(unix)]
fn process_of(folder: &str) -> Option<rustix::process::Pid> {
    let (process, random) = folder.strip_prefix("daemon-")?.split_once('-')?;
    u64::from_str_radix(random, 16)
        .ok()
        .filter(|_| random.len() == 16)?;
    rustix::process::Pid::from_raw(process.parse().ok()?)
}

#[cfg(unix)]
fn is_gone(process: rustix::process::Pid) -> bool {
    rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
}

/// Creates a folder that only this user can read, where the system has such.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It lies where the system clears up.
        let _ = fs::remove_dir_all(&self.path);
    }
}
