//! The first process of a confined command: it gives up its rights permanently, for itself and for
//! everything that it starts.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::reach::SYSTEM;
use super::supervise::{Plan, code, note_left};
use super::view::{self, Access, become_owner, open_real};
use super::{Network, filter};

/// The reason why a command cannot be confined.
#[derive(Debug, thiserror::Error)]
pub(super) enum Obstacle {
    #[error("a supervisor was called without a plan")]
    Plan,
    #[error("/proc cannot be read: {0}")]
    Proc(io::Error),
    #[error("no process can be supervised: {0}")]
    Session(Errno),
    #[error(
        "no namespaces (user namespaces may be switched off, or forbidden by AppArmor or a container): {0}"
    )]
    Namespaces(io::Error),
    #[error(
        "what lies outside cannot be mounted read-only (a container or AppArmor may forbid it): {0}"
    )]
    Mounts(Errno),
    #[error("capabilities cannot be dropped: {0}")]
    Capabilities(Errno),
    #[error("no Landlock (Linux 6.2 or newer has it, unless it is switched off): {0}")]
    Landlock(#[from] RulesetError),
    #[error("no filter for system calls: {0}")]
    Filter(#[from] seccompiler::Error),
    #[error("it cannot be started: {0}")]
    Start(io::Error),
}

impl Obstacle {
    pub(super) fn namespaces(error: nix::errno::Errno) -> Self {
        Self::Namespaces(error.into())
    }
}

/// The first version that prevents truncating files outside.
const NEEDED: ABI = ABI::V3;
/// The newest known version; parts that the kernel does not support are left out.
const WISHED: ABI = ABI::V6;

const DEVICES: &str = "/dev/full /dev/null /dev/random /dev/urandom /dev/zero";

/// The capabilities that the commands of an administrator keep: for its own files, and to act as
/// other users. Other users have none of them, and no one reads or writes what modes forbid.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Runs a program that can read and write only there, and read the system's programs. Everything
/// that it starts ends with this process, the first of its namespace.
pub(super) fn run(plan: &mut Plan) -> Result<u8, Obstacle> {
    // The command must not see its open files.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    hidden.map_err(Obstacle::Session)?;
    view::enter(plan).map_err(Obstacle::Mounts)?;
    become_owner(&plan.folder).map_err(Obstacle::Capabilities)?;
    give_up_capabilities().map_err(Obstacle::Capabilities)?;
    // Whatever becomes of the supervisor.
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    bound.map_err(Obstacle::Session)?;
    restrict(plan)?;
    filter::apply(plan.network)?;
    let child = plan.command().spawn().map_err(Obstacle::Start)?;
    let child = Pid::from_child(&child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if id == child => {
                note_left();
                return Ok(code(Some(status)));
            }
            // Others that have lost their parents.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Obstacle::Session(error)),
        }
    }
}

fn give_up_capabilities() -> rustix::io::Result<()> {
    let kept = capabilities(None)?.permitted & KEPT;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)
}

fn restrict(plan: &Plan) -> Result<(), RulesetError> {
    let (read, all) = (AccessFs::from_read(WISHED), AccessFs::from_all(WISHED));
    let no_devices = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(WISHED))?;
    if plan.network == Network::Nothing {
        // Beside the filter, which lets no socket be opened.
        rules = rules.handle_access(AccessNet::from_all(WISHED))?;
    }
    rules
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::ReadDir))?
        .add_rules(real(plan.seen(Access::Readable), read))?
        .add_rules(path_beneath_rules(DEVICES.split(' '), all))?
        .add_rules(real(plan.seen(Access::Write), no_devices))?
        .restrict_self()?;
    Ok(())
}

/// Opens the paths, and fails if one contains a link by now.
fn real<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    let opened = paths.into_iter().filter_map(|path| open_real(path).ok());
    opened.map(move |fd| {
        let kind = fstat(&fd).map(|it| FileType::from_raw_mode(it.st_mode));
        let access = match kind {
            Ok(FileType::Directory) => access,
            _ => access & AccessFs::from_file(WISHED),
        };
        Ok(PathBeneath::new(fd, access))
    })
}
