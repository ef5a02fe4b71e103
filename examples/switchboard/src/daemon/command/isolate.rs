//! The namespaces of a command but that for mounts: it cannot see or signal any other process, nor reach a server.

use std::fs;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

use super::Network;
use super::confine::Obstacle;
use super::view::become_owner;

/// Moves this process, and what it starts later, into such namespaces, and lets the first process of them mount.
/// Returns the network that there is.
pub(super) fn isolate(network: Network, folder: &Path) -> Result<Network, Obstacle> {
    let mut own = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    let sets = capabilities(None).map_err(Obstacle::Capabilities)?;
    // Who may do this anyway stays who he is, so that files of others can still be given away.
    let is_admin = sets.effective.contains(CapabilitySet::SYS_ADMIN);
    own.set(CloneFlags::CLONE_NEWUSER, !is_admin);
    if !is_admin {
        // A namespace of its own knows no other user.
        become_owner(folder).map_err(Obstacle::Capabilities)?;
    }
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
    let mounts = CapabilitySet::SYS_ADMIN;
    let mut sets = capabilities(None).map_err(Obstacle::Capabilities)?;
    sets.inheritable |= mounts;
    set_capabilities(None, sets).map_err(Obstacle::Capabilities)?;
    configure_capability_in_ambient_set(mounts, true).map_err(Obstacle::Capabilities)?;
    Ok(match network {
        Network::Own if !has_own || loopback().is_err() => Network::Nothing,
        network => network,
    })
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
    let [old, new] = ["snmp", "snmp6"].map(|name| read(name).unwrap_or_default());
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
