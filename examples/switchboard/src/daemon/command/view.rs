//! What a confined command sees: own folders in the place of the home and of `/tmp`, with its folders and what it may
//! read below them, its own processes and shared memory, and all else read-only.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fchown, fstat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change,
    mount_remount, move_mount, open_tree,
};
use rustix::process::{Gid, Uid, fchdir, geteuid};
use rustix::stdio::{stderr, stdout};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};

use super::supervise::Plan;
use crate::daemon::git;

const PROC: &str = "/proc";
const SHARED_MEMORY: &str = "/dev/shm";

/// How a file or folder can be used where it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Access {
    /// Read and written. It has to be there.
    Write,
    /// Read, if it is there.
    Read,
    /// Read, in a folder that is written. Nothing runs where that cannot be had.
    Keep,
    /// Not to come to be there.
    Absent,
    /// A link, whose text is the source, and which stays as it is.
    Link,
    /// Read where it is, with all below: nothing is mounted.
    Readable,
    /// A folder that appears to be empty.
    Closed,
}

/// A file or folder, and where it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) access: Access,
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
}

impl Mount {
    pub(super) fn new(
        access: Access,
        source: impl Into<PathBuf>,
        target: impl Into<PathBuf>,
    ) -> Self {
        Self {
            access,
            source: source.into(),
            target: target.into(),
        }
    }

    /// Returns a file or folder that is seen where it is.
    pub(super) fn here(access: Access, path: impl AsRef<Path>) -> Self {
        Self::new(access, path.as_ref(), path.as_ref())
    }

    /// Returns what keeps a file or folder as it is, also if there is none.
    pub(super) fn kept(path: &Path) -> Self {
        match (path.read_link(), path.symlink_metadata()) {
            (Ok(text), _) => Self::new(Access::Link, text, path),
            (_, Ok(_)) => Self::here(Access::Keep, path),
            _ => Self::here(Access::Absent, path),
        }
    }

    /// Returns how deep it is seen: after what it is below.
    pub(super) fn depth(&self) -> usize {
        self.target.components().count()
    }

    fn copy(&self) -> rustix::io::Result<Option<OwnedFd>> {
        let copy = || open_real(&self.source).and_then(|it| copy_of(&it));
        match self.access {
            Access::Read => Ok(copy().ok()),
            Access::Write | Access::Keep => copy().map(Some),
            _ => Ok(None),
        }
    }
}

/// Returns how commands see the repositories in a workspace, and the files that name others: none can be moved away, and
/// what Git executes stays as it is.
pub(super) fn guarded(workspace: &Path) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for found in git::folders(workspace) {
        if !found.is_dir() {
            mounts.push(Mount::kept(&found));
            continue;
        }
        if found != workspace {
            mounts.push(Mount::here(Access::Write, &found));
        }
        for path in git::EXECUTED.map(|name| found.join(name)) {
            let link = path.read_link().and_then(|_| path.canonicalize()).ok();
            let leads_to = link.filter(|to| to.starts_with(workspace));
            mounts.extend(leads_to.iter().chain([&path]).map(|path| Mount::kept(path)));
        }
    }
    mounts
}

/// Returns where the folders of a command are seen, each after those that it is below: `own` has folders for the home
/// and for temporary files, which are seen at their usual places where nothing of that may be reached.
pub(super) fn layout(
    writable: &[PathBuf],
    readable: &[PathBuf],
    own: [(PathBuf, Option<PathBuf>); 2],
) -> ([PathBuf; 2], Vec<Mount>) {
    let is_open = |place: &PathBuf| {
        let mut open = writable.iter().chain(readable);
        open.any(|it| place.starts_with(it))
    };
    let covers = own.map(|(source, place)| {
        let place = place.filter(|place| place.is_dir() && !is_open(place));
        let target = place.unwrap_or_else(|| source.clone());
        Mount::new(Access::Write, source, target)
    });
    let mut mounts = covers.to_vec();
    // The innermost of them that this is below.
    let cover_of = |path: &Path| {
        let covers = covers
            .iter()
            .filter(|it| path != it.target && path.starts_with(&it.target));
        covers.max_by_key(|it| it.depth())
    };
    for path in writable.iter().chain(covers.iter().map(|it| &it.target)) {
        let Some(cover) = cover_of(path) else {
            continue;
        };
        let below = path.strip_prefix(&cover.target).unwrap_or(path);
        // What is made beside it would be lost without a word.
        if let [first, _, ..] = below.components().collect::<Vec<_>>()[..] {
            let (source, target) = (cover.source.join(first), cover.target.join(first));
            mounts.push(Mount::new(Access::Read, source, target));
        }
    }
    for path in readable {
        if cover_of(path).is_some() && !writable.iter().any(|it| path.starts_with(it)) {
            mounts.push(Mount::here(Access::Read, path));
        }
    }
    let writable = writable.iter();
    mounts.extend(writable.map(|path| Mount::here(Access::Write, path)));
    mounts.sort_by_key(Mount::depth);
    mounts.dedup();
    let places = covers.clone().map(|it| it.target);
    (places, mounts)
}

/// Makes what the folders are mounted on in those of the command's own.
pub(super) fn prepare(mounts: &[Mount], own: &Path) -> std::io::Result<()> {
    for mount in mounts {
        let covers = mounts.iter().filter(|it| it.source.starts_with(own));
        for cover in covers.filter(|it| it.target != mount.target && it.access == Access::Write) {
            let Ok(below) = mount.target.strip_prefix(&cover.target) else {
                continue;
            };
            let place = cover.source.join(below);
            if mount.source.is_file() {
                place.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::File::create(place)?;
            } else {
                fs::create_dir_all(place)?;
            }
        }
    }
    Ok(())
}

/// Moves this process into a namespace for mounts where it sees this, and adds to the plan what it has now of its own.
pub(super) fn enter(plan: &mut Plan) -> rustix::io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| Errno::from_raw_os_error(error as i32))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let is_written = |mount: &&Mount| mount.access == Access::Write;
    let written = plan.mounts.iter().filter(is_written).map(Mount::copy);
    let mut written = written.collect::<rustix::io::Result<Vec<_>>>()?.into_iter();
    for (place, flags) in mounted()? {
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
        match mount_remount(&place, flags, c"") {
            // Hidden below another one, or where this user cannot go; but not the whole tree.
            Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) if place != Path::new("/") => {}
            done => done?,
        }
    }
    // Copies of what is read-only are, too.
    let copies = plan.mounts.iter().map(|mount| match mount.access {
        Access::Write => Ok(written.next().flatten()),
        _ => mount.copy(),
    });
    let copies = copies.collect::<rustix::io::Result<Vec<_>>>()?;
    for (mount, copy) in plan.mounts.iter().zip(&copies) {
        let Some(copy) = copy else { continue };
        match put(copy, &mount.target) {
            Err(_) if mount.access == Access::Read => {}
            done => done?,
        }
    }
    let read_only = MountAttrFlags::MOUNT_ATTR_RDONLY;
    for closed in plan.seen(Access::Closed) {
        let empty = filesystem("tmpfs", Some(("mode", "0")), read_only)?;
        put(&empty, closed)?;
    }
    let none = MountAttrFlags::empty();
    let memory = filesystem("tmpfs", Some(("mode", "1777")), none);
    let memory = memory.and_then(|it| put(&it, SHARED_MEMORY.as_ref()));
    if memory.is_ok() {
        plan.mounts.push(Mount::here(Access::Write, SHARED_MEMORY));
    }
    let processes = filesystem("proc", None, read_only);
    let has_own = processes.and_then(|it| put(&it, PROC.as_ref())).is_ok();
    let readable = of_the_kernel(has_own)?.into_iter();
    let readable = readable.map(|path| Mount::here(Access::Readable, path));
    plan.mounts.extend(readable);
    // The way there leads over what has been mounted only now.
    fchdir(open_real(&plan.folder)?)
}

/// Returns what can be read in `/proc`: all, if it shows the own processes only, without what is not for everyone.
fn of_the_kernel(has_own: bool) -> rustix::io::Result<Vec<PathBuf>> {
    let mut readable = vec![PathBuf::from(if has_own { PROC } else { "/proc/sys" })];
    for entry in fs::read_dir(PROC).into_iter().flatten().flatten() {
        let Ok(it) = entry.metadata() else { continue };
        // The kernel's keys of this user are among what everyone may look at.
        let is_public = it.permissions().mode() & 0o4 != 0 && entry.file_name() != "keys";
        match has_own {
            _ if !it.is_file() => {}
            true if !is_public => {
                let nothing = open_real("/dev/null".as_ref())?;
                put(&copy_of(&nothing)?, &entry.path())?;
            }
            false if is_public => readable.push(entry.path()),
            _ => {}
        }
    }
    Ok(readable)
}

/// Becomes the [owner] of this folder.
pub(super) fn become_owner(folder: &Path) -> rustix::io::Result<()> {
    let Some((user, group)) = owner(folder)? else {
        return Ok(());
    };
    // So that they are opened by their names as well.
    for pipe in [stdout(), stderr()] {
        fchown(pipe, Some(user), Some(group))?;
    }
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)
}

/// Returns whose rights commands have, if this process may become anyone and the folder is somebody else's.
pub(super) fn owner(folder: &Path) -> rustix::io::Result<Option<(Uid, Gid)>> {
    let it = fstat(open_real(folder)?)?;
    let owner = (Uid::from_raw(it.st_uid), Gid::from_raw(it.st_gid));
    Ok((geteuid().is_root() && !owner.0.is_root()).then_some(owner))
}

/// Opens a path without following links, because commands can create links in the workspace.
pub(super) fn open_real(path: &Path) -> rustix::io::Result<OwnedFd> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        how,
    )
}

/// Copies a mount, or a part of one, with what is mounted below.
fn copy_of(folder: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let copy = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(folder, "", copy)
}

fn put(copy: &OwnedFd, target: &Path) -> rustix::io::Result<()> {
    let by_handle =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(copy, "", open_real(target)?, "", by_handle)
}

/// Creates a file system without devices and programs with setuid.
fn filesystem(
    kind: &str,
    option: Option<(&str, &str)>,
    attributes: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    if let Some((name, value)) = option {
        fsconfig_set_string(&context, name, value)?;
    }
    fsconfig_create(&context)?;
    let safe = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes | safe)
}

/// Returns the mount points, and the flags that must stay.
fn mounted() -> rustix::io::Result<Vec<(PathBuf, MountFlags)>> {
    let lines = fs::read("/proc/self/mountinfo");
    let lines = lines.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let lines = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let mounts = lines.map(|line| {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (place, options) = (fields.next()?, fields.next()?);
        let mut flags = MountFlags::empty();
        for option in options.split(|byte| *byte == b',') {
            flags |= match option {
                b"nosuid" => MountFlags::NOSUID,
                b"nodev" => MountFlags::NODEV,
                b"noexec" => MountFlags::NOEXEC,
                b"nosymfollow" => NO_SYMLINKS,
                _ => MountFlags::empty(),
            };
        }
        Some((unescaped(place), flags))
    });
    mounts.collect::<Option<_>>().ok_or(Errno::IO)
}

/// `MS_NOSYMFOLLOW`.
const NO_SYMLINKS: MountFlags = MountFlags::from_bits_retain(256);

/// Decodes characters written as a backslash and three octal digits, such as spaces.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let code = more
            .get(..3)
            .and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = more.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}
