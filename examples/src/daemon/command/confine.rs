//! Programs that the kernel keeps in some folders.

use std::io;
use std::path::PathBuf;

use tokio::process::Command;

use super::group::Group;

/// Whether this system can do it.
#[must_use]
pub fn is_supported() -> bool {
    #[cfg(target_os = "linux")]
    {
        let asked = std::thread::spawn(|| linux::restrict(&[], &[]).is_ok());
        asked.join().unwrap_or(false)
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// Starts a program that reads and writes nowhere else; the system's programs can be read, too.
pub(super) async fn spawn(
    command: Command,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
) -> io::Result<Group> {
    #[cfg(target_os = "linux")]
    {
        // What is forbidden is forbidden to a thread for ever, and to all that it starts. So it is one
        // that does nothing else.
        let runtime = tokio::runtime::Handle::current();
        let (sender, started) = tokio::sync::oneshot::channel();
        std::thread::Builder::new().spawn(move || {
            let group = linux::restrict(&readable, &writable).and_then(|()| {
                let _runtime = runtime.enter();
                Group::spawn(command)
            });
            // Without a receiver it is killed.
            let _ = sender.send(group);
        })?;
        started.await.map_err(io::Error::other)?
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (command, readable, writable);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::path::PathBuf;

    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
        RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
    };

    /// The first that keeps files outside from being cut short.
    const NEEDED: ABI = ABI::V3;
    /// The last that is known here; what the kernel does not know of it is left out.
    const WISHED: ABI = ABI::V6;

    /// Programs, and what they need to start, to know servers' names, and to trust them. Not the whole of
    /// `/etc` and `/proc`, where others have their secrets.
    const SYSTEM: [&str; 38] = [
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/usr",
        "/opt",
        "/nix/store",
        "/proc/cpuinfo",
        "/proc/filesystems",
        "/proc/loadavg",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/sys",
        "/proc/uptime",
        "/proc/version",
        "/sys/devices/system/cpu",
        "/sys/fs/cgroup",
        "/etc/alternatives",
        "/etc/ca-certificates",
        "/etc/gai.conf",
        "/etc/gitconfig",
        "/etc/host.conf",
        "/etc/hosts",
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/ld.so.preload",
        "/etc/localtime",
        "/etc/mime.types",
        "/etc/nsswitch.conf",
        "/etc/os-release",
        "/etc/pki",
        "/etc/protocols",
        "/etc/resolv.conf",
        "/etc/services",
        "/etc/ssl",
        "/etc/timezone",
    ];

    const DEVICES: [&str; 6] = [
        "/dev/full",
        "/dev/null",
        "/dev/random",
        "/dev/tty",
        "/dev/urandom",
        "/dev/zero",
    ];

    /// Restricts the thread that calls.
    pub(super) fn restrict(readable: &[PathBuf], writable: &[PathBuf]) -> io::Result<()> {
        let restricted = try_restrict(readable, writable);
        restricted.map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))
    }

    fn try_restrict(readable: &[PathBuf], writable: &[PathBuf]) -> Result<(), RulesetError> {
        let (read, all) = (AccessFs::from_read(WISHED), AccessFs::from_all(WISHED));
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            // No signals to the daemon, and no calls to it by a name without a file.
            .scope(Scope::from_all(WISHED))?
            .create()?
            .add_rules(path_beneath_rules(SYSTEM, read))?
            .add_rules(path_beneath_rules(readable, read))?
            .add_rules(path_beneath_rules(DEVICES, all))?
            .add_rules(path_beneath_rules(writable, all))?
            .restrict_self()?;
        Ok(())
    }
}
