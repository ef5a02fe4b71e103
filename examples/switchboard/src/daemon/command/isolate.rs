//! The namespaces of a command: it cannot change anything outside its folders, not even the times
//! and modes of files, and cannot see or signal any other process.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, mount_remount,
    move_mount, open_tree,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{fchdir, getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};

use super::Network;
use super::confine::Obstacle;
use super::guard_git::{Guard, Guarded};

/// A copy of a mount with those below it.
pub(super) const COPY: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_RECURSIVE)
    .union(OpenTreeFlags::AT_EMPTY_PATH);
/// A move from one handle to another.
pub(super) const BY_HANDLE: MoveMountFlags =
    MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);

/// Moves this process, and what it starts later, into such namespaces; only these folders are
/// writable, and in the first one not what Git runs, unless that `is_open`. Returns the network that there is.
pub(super) fn isolate(
    network: Network,
    writable: &[PathBuf],
    is_open: bool,
) -> Result<(Network, Guarded), Obstacle> {
    let mut own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    let sets = capabilities(None).map_err(Obstacle::capabilities)?;
    // Who may do this anyway stays who he is, so that files of others can still be given away.
    let is_admin = sets.effective.contains(CapabilitySet::SYS_ADMIN);
    own.set(CloneFlags::CLONE_NEWUSER, !is_admin);
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let with_network = own | CloneFlags::CLONE_NEWNET;
    let has_own = network == Network::Own && unshare(with_network).is_ok();
    if !has_own {
        unshare(own).map_err(Obstacle::namespaces)?;
    }
    if !is_admin {
        for (name, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            fs::write(Path::new("/proc/self").join(name), text).map_err(Obstacle::Namespaces)?;
        }
    }
    let guarded = mounts(writable, is_open).map_err(Obstacle::mounts)?;
    let network = match network {
        Network::Own if !has_own || loopback().is_err() => Network::Nothing,
        network => network,
    };
    Ok((network, guarded))
}

/// Turns the loopback of a new network on, which has its addresses then: a request of `rtnetlink`.
fn loopback() -> rustix::io::Result<()> {
    // The first protocol, `NETLINK_ROUTE`, is that of none.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let line = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // RTM_NEWLINK with NLM_F_REQUEST and NLM_F_ACK.
    let ([a, b], [c, d]) = (16_u16.to_ne_bytes(), 5_u16.to_ne_bytes());
    let (none, one) = ([0; 4], 1_u32.to_ne_bytes());
    // The length, the kind, a number and no sender; then no family, the first interface, and of its flags
    // and those to change IFF_UP.
    let length = 32_u32.to_ne_bytes();
    let request = [length, [a, b, c, d], one, none, none, one, one, one].concat();
    send(&line, &request, SendFlags::empty())?;
    let mut answer = [0; 64];
    recv(&line, &mut answer[..], RecvFlags::empty())?;
    // The error behind the head, below zero.
    let [.., e, f, g, h] = *answer.first_chunk::<20>().unwrap_or(&[0; 20]);
    match i32::from_ne_bytes([e, f, g, h]) {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(-error)),
    }
}

/// How often something was tried that does not work in a network of one's own.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// To reach an address outside.
    pub(super) outside: u64,
    /// To reach a port at the loopback where nothing listens.
    pub(super) inside: u64,
}

/// Counts them in the network of this process.
pub(super) fn attempts() -> Attempts {
    let read = |name| fs::read_to_string(Path::new("/proc/self/net").join(name));
    let (old, new) = (
        read("snmp").unwrap_or_default(),
        read("snmp6").unwrap_or_default(),
    );
    // A line of names, and a line of numbers; or a line for each name.
    let (names, numbers) = (old.lines().step_by(2), old.lines().skip(1).step_by(2));
    let pairs = names.zip(numbers).flat_map(|(names, numbers)| {
        let protocol = names.split(':').next().unwrap_or_default();
        let names = names
            .split(' ')
            .map(move |name| format!("{protocol}{name}"));
        names.zip(numbers.split(' ').map(str::to_owned))
    });
    let more = new
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace));
    let more = more.map(|(name, number)| (name.to_owned(), number.to_owned()));
    let mut attempts = Attempts::default();
    for (name, number) in pairs.chain(more) {
        let number: u64 = number.trim().parse().unwrap_or_default();
        match name.as_str() {
            "IpOutNoRoutes" | "Ip6OutNoRoutes" => attempts.outside += number,
            "TcpAttemptFails" | "UdpNoPorts" | "Udp6NoPorts" => attempts.inside += number,
            _ => {}
        }
    }
    attempts
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

/// The first folder becomes the current one.
fn mounts(writable: &[PathBuf], is_open: bool) -> rustix::io::Result<Guarded> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let folders = writable.iter().map(|path| {
        let folder = open_real(path)?;
        Ok((open_tree(&folder, "", COPY)?, folder))
    });
    let folders: Vec<(OwnedFd, OwnedFd)> = folders.collect::<rustix::io::Result<_>>()?;
    let workspace = writable.first().filter(|_| !is_open);
    let guard = workspace.map(|path| Ok(Guard::new(open_real(path)?, path)));
    let mut guard = guard.transpose()?;
    for (place, flags) in mounted()? {
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
        match mount_remount(&place, flags, c"") {
            // Hidden below another one, or where this user cannot go; but not the whole tree.
            Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) if place != Path::new("/") => {}
            done => done?,
        }
    }
    guard.as_mut().map_or(Ok(()), Guard::copy)?;
    for (copy, folder) in &folders {
        move_mount(copy, "", folder, "", BY_HANDLE)?;
    }
    let Some((copy, _)) = folders.first() else {
        return Ok(Guarded::default());
    };
    let guarded = guard.map_or(Ok(Guarded::default()), |guard| guard.apply(copy))?;
    // The way there leads over what has been mounted only now.
    fchdir(copy)?;
    Ok(guarded)
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
