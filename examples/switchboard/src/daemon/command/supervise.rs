//! The process that supervises one command: no process that the command has started outlives it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open,
    set_child_subreaper, setsid, wait,
};
use rustix::stdio::stdin;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::confine::{self, Obstacle};
use super::group::Note;
use super::view::{Access, Mount, guarded};
use super::{Network, isolate};

/// The first argument of a supervisor of an unconfined command.
pub(super) const OPEN: &str = "__supervise";
/// The first argument of a supervisor of a confined command.
pub(super) const CONFINED: &str = "__supervise-confined";
/// The first argument of the first process of a confined command.
const FIRST: &str = "__confine";
/// The beginning of the variables that hold a plan: commands see the arguments of the first process.
const PLAN: &str = "__PLAN_";

/// How often to reap orphaned processes.
const REAP: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// How long to wait for a child that is neither listed nor dead.
const UNLISTED: Duration = Duration::from_millis(1);

/// The command to run, and its access. The paths are absolute.
#[derive(Debug)]
pub(super) struct Plan {
    /// The network: the wish, or what it has become.
    pub(super) network: Network,
    /// Whether what Git runs is writable, too.
    pub(super) is_git_open: bool,
    /// The workspace, where the program starts.
    pub(super) folder: PathBuf,
    /// What is seen.
    pub(super) mounts: Vec<Mount>,
    /// The line of the shell.
    pub(super) line: OsString,
}

impl Plan {
    /// Returns the plan as variables: paths may have any bytes.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, OsString)> {
        let head = to_json(&(self.network, self.is_git_open));
        let head = [head, self.folder.clone().into(), self.line.clone()];
        let mounts = self.mounts.iter().flat_map(|it| {
            let (source, target) = (it.source.clone(), it.target.clone());
            [to_json(&it.access), source.into(), target.into()]
        });
        let values = head.into_iter().chain(mounts).enumerate();
        values.map(|(index, value)| (format!("{PLAN}{index}"), value))
    }

    fn from_variables() -> Option<Self> {
        let values = (0..).map_while(|index| std::env::var_os(format!("{PLAN}{index}")));
        let values: Vec<_> = values.collect();
        let [head, folder, line, mounts @ ..] = &*values else {
            return None;
        };
        let (network, is_git_open) = from_json(head)?;
        let mounts = mounts.chunks(3).map(|mount| match mount {
            [access, source, target] => Some(Mount::new(from_json(access)?, source, target)),
            _ => None,
        });
        Some(Self {
            network,
            is_git_open,
            folder: folder.into(),
            mounts: mounts.collect::<Option<_>>()?,
            line: line.clone(),
        })
    }

    /// Returns the paths that are seen in this way.
    pub(super) fn seen(&self, access: Access) -> impl Iterator<Item = &PathBuf> {
        let mounts = self.mounts.iter().filter(move |it| it.access == access);
        mounts.map(|it| &it.target)
    }

    /// Returns the shell, not yet started.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(super::shell());
        command.arg("-c").arg(&self.line);
        command.stdin(Stdio::null()).process_group(0);
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|it| it.as_encoded_bytes().starts_with(PLAN.as_bytes())) {
            command.env_remove(name);
        }
        command
    }
}

fn to_json(value: &impl Serialize) -> OsString {
    serde_json::to_string(value).unwrap_or_default().into()
}

fn from_json<T: DeserializeOwned>(text: &OsStr) -> Option<T> {
    serde_json::from_str(text.to_str()?).ok()
}

/// Supervises a command, if this process was started for that.
pub(super) fn main() -> Option<ExitCode> {
    let role = std::env::args_os().nth(1)?;
    let work = match role.to_str()? {
        OPEN => supervise_open,
        CONFINED => supervise_confined,
        FIRST => confine::run,
        _ => return None,
    };
    let plan = Plan::from_variables().ok_or(Obstacle::Plan);
    let code = plan
        .and_then(|mut plan| work(&mut plan))
        .unwrap_or_else(|why| {
            write_notes(why.to_string().as_bytes());
            1
        });
    Some(ExitCode::from(code))
}

/// Tells the one that asked for the command, who may have lost interest.
fn write_notes(bytes: &[u8]) {
    let _ = rustix::io::write(stdin(), bytes);
}

fn supervise_open(plan: &mut Plan) -> Result<u8, Obstacle> {
    prepare()?;
    watch(plan.command())
}

/// Gives what a command has made where nothing is to be, or in the place of a link, another name, which nothing looks
/// for. All its processes have ended.
fn set_aside(plan: &Plan) {
    for mount in &plan.mounts {
        let is_as_before = match mount.access {
            Access::Absent => false,
            Access::Link => fs::read_link(&mount.target).is_ok_and(|link| link == mount.source),
            _ => true,
        };
        if is_as_before {
            continue;
        }
        let mut other = mount.target.clone().into_os_string();
        // One that a command cannot know.
        let number = rpc_core::net::entropy();
        other.push(format!(".made-by-a-command-{number:016x}"));
        // There is nothing, as a rule.
        let _ = fs::rename(&mount.target, other);
        if mount.access == Access::Link {
            // Where its folder is gone, nothing runs what it leads to.
            let _ = std::os::unix::fs::symlink(&mount.source, &mount.target);
        }
    }
}

fn supervise_confined(plan: &mut Plan) -> Result<u8, Obstacle> {
    prepare()?;
    if !plan.is_git_open {
        plan.mounts.extend(guarded(&plan.folder));
    }
    plan.mounts.sort_by_key(Mount::depth);
    plan.network = isolate::isolate(plan.network, &plan.folder)?;
    let mut first = Command::new("/proc/self/exe");
    first.arg0("switchboard").arg(FIRST).envs(plan.variables());
    let code = watch(first)?;
    set_aside(plan);
    let lacks_network = match plan.network {
        Network::On => false,
        // Not one call of those that are refused is counted.
        Network::Nothing => code != 0,
        Network::Own => {
            let tried = isolate::attempts();
            tried.outside > 0 || (code != 0 && tried.inside > 0)
        }
    };
    let without = plan.network == Network::Nothing;
    let notes = [
        (Note::NoNamespace, without),
        (Note::LacksNetwork, lacks_network),
    ];
    let notes = notes.into_iter().filter(|(_, is_so)| *is_so);
    write_notes(&notes.map(|(note, _)| note as u8).collect::<Vec<_>>());
    Ok(code)
}

/// Detaches from the terminal, closes all open files, and adopts orphaned descendants.
fn prepare() -> Result<(), Obstacle> {
    let files = fs::read_dir("/proc/self/fd").map_err(Obstacle::Proc)?;
    let files = files.flatten().map(|entry| entry.file_name());
    let inherited: Vec<i32> = files
        .filter_map(|name| name.to_str()?.parse().ok())
        .filter(|file| *file > 2)
        .collect();
    for file in inherited {
        // One of them was the folder's.
        let _ = nix::unistd::close(file);
    }
    setsid().map_err(Obstacle::Session)?;
    set_child_subreaper(Some(Pid::INIT)).map_err(Obstacle::Session)
}

/// Runs a program until it ends or is cancelled, and then kills the remaining processes.
fn watch(mut command: Command) -> Result<u8, Obstacle> {
    let child = command.spawn().map_err(Obstacle::Start)?;
    let ended = until_ended(Pid::from_child(&child));
    note_left();
    kill_all();
    Ok(code(ended.map_err(Obstacle::Session)?))
}

/// Notes that the program has ended before what it has started.
pub(super) fn note_left() {
    let left = loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            left => break left.is_ok(),
        }
    };
    if left {
        write_notes(&[Note::LeftRunning as u8]);
    }
}

fn until_ended(child: Pid) -> rustix::io::Result<Option<WaitStatus>> {
    let process = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let line = stdin();
        let mut both = [
            PollFd::new(&line, PollFlags::IN),
            PollFd::new(&process, PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut both, Some(&REAP)))?;
        let [line, _] = both;
        while let Ok(Some((id, status))) = wait(WaitOptions::NOHANG) {
            if id == child {
                return Ok(Some(status));
            }
        }
        // Nothing is ever said there.
        if !line.revents().is_empty() {
            return Ok(None);
        }
    }
}

/// Returns the exit code as in a shell.
pub(super) fn code(status: Option<WaitStatus>) -> u8 {
    let code = status.and_then(|status| match status.terminating_signal() {
        Some(signal) => Some(128 + signal),
        None => status.exit_status(),
    });
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Kills children until there are none, because the children of a dead child become children of
/// this process.
fn kill_all() {
    loop {
        let children = children();
        for child in &children {
            // It may not be ours to kill, as programs of other users are.
            let _ = kill_process(*child, Signal::KILL);
        }
        // One of them ends soon. Whom the list has missed is on the next one.
        let mut is_waiting = !children.is_empty();
        loop {
            let options = match is_waiting {
                true => WaitOptions::empty(),
                false => WaitOptions::NOHANG,
            };
            match wait(options) {
                Ok(Some(_)) => is_waiting = false,
                Ok(None) => break,
                Err(rustix::io::Errno::INTR) => {}
                // No one is left.
                Err(_) => return,
            }
        }
        if children.is_empty() {
            std::thread::sleep(UNLISTED);
        }
    }
}

/// Returns the children of this process, or most of them.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let listed = fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let numbers = listed.map(|list| list.split(' ').filter_map(|it| it.parse().ok()).collect());
    // Kernels can be built without that list.
    let numbers: Vec<i32> = numbers.unwrap_or_else(|_| children_of(own));
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

fn children_of(parent: u32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries.flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in parentheses, may hold anything; then come the state and the parent.
        let (_, rest) = stat.rsplit_once(") ")?;
        let is_child = rest.split(' ').nth(1)?.parse() == Ok(parent);
        is_child.then_some(number)
    });
    numbers.collect()
}
