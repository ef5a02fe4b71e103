//! The filter of system calls for confined commands.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::Network;

/// Calls that reach beyond namespaces, or often had faults that do. Most need a right that commands
/// do not have anyway.
const FORBIDDEN: [c_long; 21] = [
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_kexec_load,
    libc::SYS_quotactl,
    OPEN_TREE_ATTR,
];
/// The same number on every architecture.
const OPEN_TREE_ATTR: c_long = 467;
/// Calls whose arguments a filter cannot see. They are reported as missing, and programs work
/// without them.
const MISSING: [c_long; 5] = [
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
/// The first number after the calls of Linux 6.18. Newer calls are unknown, and those of x32,
/// another ABI of x86-64, have far higher numbers.
const UNKNOWN: u32 = 470;

/// The same number on every architecture.
const FCHMODAT2: c_long = 452;

/// The calls that set the mode of a file, and the number of that argument.
const MODES: [(c_long, u8); 5] = [
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
];
#[cfg(target_arch = "x86_64")]
const OLD_MODES: [(c_long, u8); 4] = [
    (libc::SYS_chmod, 1),
    (libc::SYS_creat, 1),
    (libc::SYS_mkdir, 1),
    (libc::SYS_mknod, 1),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_MODES: [(c_long, u8); 0] = [];
/// The calls that set a mode if they create a file, and the number of the argument that says so; the mode follows.
#[cfg(target_arch = "x86_64")]
const OPENS: [(c_long, u8); 2] = [(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: [(c_long, u8); 1] = [(libc::SYS_openat, 2)];
/// The flags that create a file: `O_CREAT`, and the one of `O_TMPFILE`.
const CREATE: [u64; 2] = [0o100, 0o20_000_000];
/// Setuid and setgid: what a command leaves behind must not give anybody the rights of this user.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// The mask of socket types, without their flags.
const TYPES: u64 = 0xf;
/// The requests to terminals that type, control the console, or change settings.
const TERMINAL: [u64; 3] = [0x5412, 0x541c, 0x5423];

/// Filters the calls of this thread and of everything that it starts. Programs for another
/// architecture, such as 32-bit ones, are killed at their first call.
pub(super) fn apply(network: Network) -> Result<(), Error> {
    apply_filter(&unknown())?;
    apply_filter(&filter(
        MISSING.map(|call| (call, Vec::new())).into(),
        libc::ENOSYS,
    )?)?;
    apply_filter(&filter(refused(network)?, libc::EPERM)?)
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

fn filter(rules: Rules, error: i32) -> Result<BpfProgram, Error> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    #[allow(clippy::useless_conversion, reason = "not on every machine")]
    let rules = rules
        .into_iter()
        .map(|(call, rules)| (i64::from(call), rules));
    let rules = rules.collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    Ok(filter.try_into()?)
}

fn refused(network: Network) -> Result<Rules, Error> {
    let argument = |number, operator, value: u64| {
        SeccompCondition::new(number, SeccompCmpArgLen::Dword, operator, value)
    };
    let rule = |conditions| SeccompRule::new(conditions);
    let is = |number, value| rule(vec![argument(number, SeccompCmpOp::Eq, value)?]);
    let masked =
        |number, mask, value| rule(vec![argument(number, SeccompCmpOp::MaskedEq(mask), value)?]);
    // Sockets of the network, and those that tell of it. Above all none of files: behind those are
    // servers outside that do what they are asked.
    let families = match network {
        Network::Nothing => &[libc::AF_NETLINK][..],
        _ => &[libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6],
    };
    let families = families
        .iter()
        .map(|family| argument(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    // Pairs are for those who have them, unless they can still send anywhere: raw means datagrams here.
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    let datagrams = datagrams.map(|kind| masked(1, TYPES, u64::from(kind.unsigned_abs())));
    let no_pair = rule(vec![argument(
        0,
        SeccompCmpOp::Ne,
        u64::from(libc::AF_UNIX.unsigned_abs()),
    )?]);
    let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());

    let mut rules: Rules = FORBIDDEN.map(|call| (call, Vec::new())).into();
    rules.extend([
        (
            libc::SYS_socket,
            vec![rule(families.collect::<Result<_, _>>()?)?],
        ),
        (
            libc::SYS_socketpair,
            datagrams
                .into_iter()
                .chain([no_pair])
                .collect::<Result<_, _>>()?,
        ),
        (libc::SYS_clone, vec![masked(0, user, user)?]),
        (libc::SYS_unshare, vec![masked(0, user, user)?]),
        (
            libc::SYS_ioctl,
            TERMINAL
                .into_iter()
                .map(|request| is(1, request))
                .collect::<Result<_, _>>()?,
        ),
    ]);
    for (call, number) in MODES.into_iter().chain(OLD_MODES) {
        let modes = SET_ID.map(|bit| masked(number, bit, bit));
        rules.insert(call, modes.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, number) in OPENS {
        let mut modes = Vec::new();
        for (flag, bit) in CREATE
            .into_iter()
            .flat_map(|flag| SET_ID.map(|bit| (flag, bit)))
        {
            let is_set = |number, bit| argument(number, SeccompCmpOp::MaskedEq(bit), bit);
            modes.push(rule(vec![is_set(number, flag)?, is_set(number + 1, bit)?])?);
        }
        rules.insert(call, modes);
    }
    Ok(rules)
}

/// Returns the rules that report unknown calls as missing.
fn unknown() -> [sock_filter; 4] {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    [
        // The number of the call, which has to be less, or else the next step is left out.
        step(0x20, 0, 0, 0),
        step(0x35, 0, 1, UNKNOWN),
        step(0x06, 0, 0, missing),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
