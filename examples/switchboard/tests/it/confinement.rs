//! Escapes from the confinement of commands, each of them tried: they succeed for a command that goes
//! anywhere, and fail for a confined one.
#![cfg(target_os = "linux")]
mod everyday;
mod git;
mod machine;
mod outside;
mod start;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};

use rustix::fs::{Mode, OFlags, Timestamps, XattrFlags};
use switchboard::daemon::command::{CommandConfig, Confinement, Network, Output};
use switchboard::daemon::{Code, ToolError};

use crate::commands::{Fixture, commands};
use crate::programs::{Ended as _, Running, SWITCHBOARD, exchange, outcome, program, switchboard};
use crate::pty::Screen;

/// A folder with a workspace, and what is outside of it.
struct Room {
    place: Fixture,
    /// Can be read by commands, not written.
    outside: PathBuf,
}

/// What came of an escape that was tried.
#[derive(Debug, PartialEq)]
enum Tried {
    Code(i32),
    /// Nothing is run on this machine.
    Refused,
}

impl Room {
    fn new(name: &str) -> Self {
        let place = Fixture::new(name);
        let outside = place.0.join("outside.txt");
        fs::write(&outside, "outside").unwrap();
        Self { place, outside }
    }

    fn config(&self) -> CommandConfig {
        let itself = std::env::current_exe().unwrap();
        CommandConfig::default().with_readable(vec![
            itself,
            SWITCHBOARD.into(),
            self.outside.clone(),
        ])
    }

    async fn run(&self, config: CommandConfig, line: &str) -> Result<Output, ToolError> {
        let commands = commands(config);
        commands.run(&self.place.1, line, None, &mut drop).await
    }

    async fn tries(&self, confinement: Confinement, line: &str) -> Tried {
        let config = self.config().with_confinement(confinement);
        match self.run(config, line).await {
            Ok(output) => Tried::Code(output.code.unwrap_or(-1)),
            Err(ToolError { code, .. }) => {
                assert_eq!((confinement, code), (Confinement::Workspace, Code::Sandbox));
                Tried::Refused
            }
        }
    }

    /// Tries a line that ends with 0 when it escapes.
    async fn stays_in(&self, line: &str) {
        let before = self.metadata();
        let tried = self.tries(Confinement::Workspace, line).await;
        assert_ne!(tried, Tried::Code(0), "{line}");
        assert_eq!(self.metadata(), before, "{line}");
        if tried == Tried::Refused {
            return;
        }
        // An attempt that no one succeeds with shows nothing.
        let tried = self.tries(Confinement::Open, line).await;
        assert_eq!(tried, Tried::Code(0), "{line}");
    }

    fn metadata(&self) -> (u32, u32, i64, i64, u64) {
        let it = fs::metadata(&self.outside).unwrap();
        (it.mode(), it.uid(), it.mtime(), it.atime(), it.nlink())
    }

    fn path(&self) -> String {
        self.outside.display().to_string()
    }
}

/// A line that does something that shells cannot: [`attempt`] does.
fn attempt_line(what: &str, target: &str) -> String {
    let itself = std::env::current_exe().unwrap();
    format!(
        "ESCAPE='{what}' TARGET='{target}' '{}' --exact confinement::attempt --ignored --nocapture",
        itself.display()
    )
}

#[test]
#[ignore = "done in commands by the other tests"]
fn attempt() {
    let (what, target) = (std::env::var("ESCAPE"), std::env::var("TARGET"));
    let target = target.unwrap();
    match what.unwrap().as_str() {
        "connect" => drop(UnixStream::connect(target).unwrap()),
        "connect by name" => {
            let address = SocketAddr::from_abstract_name(target).unwrap();
            drop(UnixStream::connect_addr(&address).unwrap());
        }
        "send from a pair" => {
            let (one, _other) = UnixDatagram::pair().unwrap();
            one.send_to(b"escaped", target).unwrap();
        }
        "talk over a pair" => drop(UnixStream::pair().unwrap()),
        "mode of an open file" => {
            let file = File::open(target).unwrap();
            rustix::fs::fchmod(file, Mode::from_raw_mode(0o777)).unwrap();
        }
        "times of an open file" => {
            let times = Timestamps {
                last_access: rustix::fs::Timespec::default(),
                last_modification: rustix::fs::Timespec::default(),
            };
            rustix::fs::futimens(File::open(target).unwrap(), &times).unwrap();
        }
        "call" => drop(TcpStream::connect(target).unwrap()),
        "listen" => {
            let listener = TcpListener::bind(target).unwrap();
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            listener.accept().unwrap();
        }
        "create" | "create without a name" => {
            let (path, flags) = match target.as_str() {
                "." => (".", OFlags::TMPFILE),
                path => (path, OFlags::CREATE),
            };
            let mode = Mode::from_raw_mode(0o4711);
            let file = rustix::fs::open(path, OFlags::RDWR | flags, mode).unwrap();
            let made = rustix::fs::fstat(file).unwrap().st_mode;
            assert_eq!(made & 0o6000, 0o4000);
        }
        "attribute" => {
            rustix::fs::setxattr(target, "user.escaped", b"x", XattrFlags::empty()).unwrap();
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn no_command_connects_to_a_unix_socket() {
    let room = Room::new("sockets");
    let (stream, datagram) = (room.place.0.join("stream"), room.place.0.join("datagram"));
    let _stream = UnixListener::bind(&stream).unwrap();
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    let inside = room.place.1.path().join("inside");
    let _inside = UnixListener::bind(&inside).unwrap();
    let name = format!("daemon-escape-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _named = UnixListener::bind_addr(&address).unwrap();
    for (what, target) in [
        ("connect", stream.display().to_string()),
        ("connect", inside.display().to_string()),
        ("connect by name", name),
        ("send from a pair", datagram.display().to_string()),
    ] {
        room.stays_in(&attempt_line(what, &target)).await;
    }
    let tried = room
        .tries(
            Confinement::Workspace,
            &attempt_line("talk over a pair", ""),
        )
        .await;
    assert!(
        matches!(tried, Tried::Code(0) | Tried::Refused),
        "{tried:?}"
    );
}

#[tokio::test]
async fn no_command_changes_the_metadata_of_what_is_outside() {
    let room = Room::new("metadata");
    let path = room.path();
    for line in [
        format!("chmod 777 {path}"),
        "ln -sf ../outside.txt link; chmod 777 link".to_owned(),
        "chmod 777 ..".to_owned(),
        format!("chown $(id -u) {path}"),
        format!("touch -c -d 2001-01-01 {path}"),
        format!("touch -c -d 2001-01-01 {}", room.place.0.display()),
        attempt_line("mode of an open file", &path),
        attempt_line("times of an open file", &path),
    ] {
        room.stays_in(&line).await;
        fs::set_permissions(&room.outside, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let line = attempt_line("attribute", &path);
    // Not every file system has them.
    if room.tries(Confinement::Open, &line).await == Tried::Code(0) {
        room.stays_in(&line).await;
    }
}

#[tokio::test]
async fn metadata_inside_is_the_commands_own() {
    let room = Room::new("inside");
    let line = "printf '#!/bin/sh\\necho ran' > script && chmod +x script && ./script && \
                touch -d 2001-01-01 script && chown $(id -u):$(id -g) script && mkdir a && \
                chmod 1700 a && chmod 755 a && ln script a/hard && ln -s script soft && mv script a && \
                touch $TMPDIR/x && chmod 600 $TMPDIR/x && echo >/dev/null && \
                tar -cf a.tar a && tar -xpf a.tar";
    let tried = room.tries(Confinement::Workspace, line).await;
    assert!(
        matches!(tried, Tried::Code(0) | Tried::Refused),
        "{tried:?}"
    );
}

#[tokio::test]
async fn no_command_leaves_a_program_with_the_rights_of_its_owner() {
    let room = Room::new("owner");
    for line in [
        "touch a; chmod 4755 a; test -u a",
        "touch b; chmod u+s b; test -u b",
        "touch c; chmod g+s c; test -g c",
        "mkdir d; chmod 2777 d; test -g d",
        "cp /bin/true e; chmod 6755 e; test -u e",
        "install -m 4755 /bin/true f && test -u f",
        "cd $TMPDIR; touch h; chmod 4755 h; test -u h",
        &attempt_line("create", "g"),
        &attempt_line("create without a name", "."),
    ] {
        room.stays_in(&format!("rm -rf ./?; {line}")).await;
        // What was tried without confinement, which has to work.
        for left in "abcdefg".chars() {
            let left = room.place.1.path().join(left.to_string());
            let _ = fs::remove_file(&left).or_else(|_| fs::remove_dir_all(&left));
        }
    }
}

#[tokio::test]
async fn no_command_reaches_a_server_outside_of_it() {
    let room = Room::new("outside");
    for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
        // Not every machine has IPv6.
        let Ok(server) = TcpListener::bind(address) else {
            continue;
        };
        let target = server.local_addr().unwrap().to_string();
        let line = attempt_line("call", &target);
        room.stays_in(&line).await;
        let config = room.config().with_network(Network::On);
        if let Ok(output) = room.run(config, &line).await {
            assert_eq!((output.code, output.network), (Some(0), Network::On));
        }
        let config = room.config().with_network(Network::Nothing);
        if let Ok(output) = room.run(config, &line).await {
            assert_ne!(output.code, Some(0));
        }
    }
}

#[tokio::test]
async fn a_command_has_a_loopback_of_its_own() {
    let room = Room::new("loopback");
    let Ok(Network::Own) = commands(room.config()).check(&room.place.1).await else {
        return;
    };
    for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
        if TcpListener::bind(address).is_ok() {
            let line = attempt_line("listen", address);
            let output = room.run(room.config(), &line).await.unwrap();
            assert_eq!(output.code, Some(0), "{}", output.text());
            assert_eq!(output.remark(), None);
        }
    }
}

#[tokio::test]
async fn a_command_that_fails_without_network_names_the_option() {
    let room = Room::new("told");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = server.local_addr().unwrap().to_string();
    let lines = ["192.0.2.1:80", "[2001:db8::1]:80", &here].map(|to| attempt_line("call", to));
    for line in lines.iter().map(String::as_str) {
        for network in [Network::Own, Network::Nothing] {
            let config = room.config().with_network(network);
            let Ok(output) = room.run(config, line).await else {
                return;
            };
            assert_ne!(output.code, Some(0));
            let text = output.text();
            assert!(text.contains("--network on"), "{network:?}: {text}");
        }
    }
    // Where it says no word itself, and where something else fails.
    let quiet = format!("({}) >/dev/null 2>&1; true", lines[0]);
    for (line, is_told) in [(quiet.as_str(), true), ("false", false), ("true", false)] {
        let output = room.run(room.config(), line).await.unwrap();
        if output.network == Network::Own {
            assert_eq!(output.remark().is_some(), is_told, "{line}");
        }
    }
}

#[tokio::test]
async fn a_commit_of_a_command_has_an_author() {
    let room = Room::new("author");
    let line = "git init -q . && echo x > x && git add x && git commit -qm first && \
                test -n \"$(git log -1 --format=%an)\" && git config user.name Mine && \
                echo y > x && git commit -qam second && test \"$(git log -1 --format=%an)\" = Mine";
    let tried = room.tries(Confinement::Open, line).await;
    assert_eq!(tried, Tried::Code(0), "is Git there?");
    fs::remove_dir_all(room.place.1.path().join(".git")).unwrap();
    let tried = room.tries(Confinement::Workspace, line).await;
    assert!(
        matches!(tried, Tried::Code(0) | Tried::Refused),
        "{tried:?}"
    );
}

#[tokio::test]
async fn no_link_in_the_place_of_a_folder_leads_a_command_outside() {
    let place = Fixture::new("swapped");
    let (outside, inside) = (&place.0, place.1.path());
    fs::create_dir(outside.join("b")).unwrap();
    fs::create_dir_all(inside.join("a/b")).unwrap();
    fs::create_dir(inside.join("tools")).unwrap();
    let within = place.1.within("a/b").unwrap();
    let config = CommandConfig::default().with_readable(vec![inside.join("tools")]);
    let commands = commands(config);
    // As a command of another chat can.
    for (folder, away) in [("a", "a2"), ("tools", "tools2")] {
        fs::rename(inside.join(folder), inside.join(away)).unwrap();
        std::os::unix::fs::symlink(outside, inside.join(folder)).unwrap();
    }
    let _ = commands
        .run(&within, "echo x > escaped", None, &mut drop)
        .await;
    assert!(!outside.join("b/escaped").exists());
    let line = format!("cat {}", outside.join("secret.txt").display());
    if let Ok(output) = commands.run(&place.1, &line, None, &mut drop).await {
        assert_ne!(output.code, Some(0));
    }
}

#[tokio::test]
async fn no_command_makes_a_device_or_mounts_anything() {
    let room = Room::new("devices");
    let outside = room
        .tries(Confinement::Open, "mknod dev c 1 3 && rm dev")
        .await;
    if outside != Tried::Code(0) {
        // Only an administrator can, so it would show nothing.
        return;
    }
    room.stays_in("mknod dev c 1 3 && test -c dev && rm dev")
        .await;
    room.stays_in("mknod dev b 7 200 && rm dev").await;
    let path = room.path();
    room.stays_in(&format!("mount --bind {path} {path} && umount {path}"))
        .await;
    let tried = room
        .tries(Confinement::Workspace, "mount -o remount,rw,bind /")
        .await;
    assert_ne!(tried, Tried::Code(0));
}

/// A program that is ended with the value.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn no_command_sees_or_signals_another_process() {
    let room = Room::new("processes");
    let sleeper = Sleeper(Command::new("sleep").arg("1000").spawn().unwrap());
    let id = sleeper.0.id();
    for line in [
        format!("kill -0 {id}"),
        format!("test -e /proc/{id}/environ && cat /proc/{id}/environ > /dev/null"),
        format!("ls /proc/{id}/fd > /dev/null"),
    ] {
        room.stays_in(&line).await;
    }
    // The first process of its namespace has the plan, and a line to the supervisor.
    for line in [
        "cat /proc/1/environ",
        "readlink /proc/1/fd/0",
        "echo > /proc/1/fd/0",
        "ls /proc/1/root/ /proc/1/cwd/",
        "nsenter -t 1 -m true",
    ] {
        let tried = room.tries(Confinement::Workspace, line).await;
        assert_ne!(tried, Tried::Code(0), "{line}");
    }
    #[cfg(target_arch = "x86_64")]
    room.raw("attach", machine::call(101, [16, id, 0, 0]), 3)
        .await;
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn no_system_call_leads_around_the_filter() {
    let room = Room::new("calls");
    let (unix, stream, datagram) = (1, 1, 2);
    let (refused, missing, killed) = (1, 38, 128 + 31);
    for (name, program, expected) in [
        ("socket", machine::call(41, [unix, stream, 0, 0]), refused),
        ("socket-vm", machine::call(41, [40, stream, 0, 0]), refused),
        (
            "socket-32-bit",
            machine::call_32(359, [unix, stream, 0]),
            killed,
        ),
        (
            "socket-x32",
            machine::call(0x4000_0029, [unix, stream, 0, 0]),
            missing,
        ),
        ("pair", machine::call(53, [unix, datagram, 0, 0]), refused),
        ("io-uring", machine::call(425, [1, 0, 0, 0]), missing),
        ("clone3", machine::call(435, [0, 0, 0, 0]), missing),
        ("clone", machine::call(56, [0x1000_0000, 0, 0, 0]), refused),
        (
            "unshare",
            machine::call(272, [0x1000_0000, 0, 0, 0]),
            refused,
        ),
        ("type", machine::call(16, [1, 0x5412, 0, 0]), refused),
        ("keys", machine::call(250, [0, u32::MAX - 4, 0, 0]), refused),
        ("newer", machine::call(470, [0, 0, 0, 0]), missing),
        ("openat2", machine::call(437, [0, 0, 0, 0]), missing),
        ("chmod", machine::call(90, [0, 0o4755, 0, 0]), refused),
        ("fchmod", machine::call(91, [99, 0o2755, 0, 0]), refused),
        ("fchmodat", machine::call(268, [99, 0, 0o4000, 0]), refused),
        ("fchmodat2", machine::call(452, [99, 0, 0o6777, 0]), refused),
        ("open", machine::call(2, [0, 0o101, 0o4755, 0]), refused),
        (
            "openat",
            machine::call(257, [99, 0, 0o102, 0o2755]),
            refused,
        ),
        ("creat", machine::call(85, [0, 0o4755, 0, 0]), refused),
        ("mkdir", machine::call(83, [0, 0o2777, 0, 0]), refused),
        ("mkdirat", machine::call(258, [99, 0, 0o4777, 0]), refused),
        ("mknod", machine::call(133, [0, 0o104_755, 0, 0]), refused),
        (
            "mknodat",
            machine::call(259, [99, 0, 0o102_755, 0]),
            refused,
        ),
    ] {
        room.raw(name, program, expected).await;
    }
}

#[cfg(target_arch = "x86_64")]
impl Room {
    /// Runs a program that makes one call, which fails with this error, or at least not as it does outside.
    async fn raw(&self, name: &str, program: Vec<u8>, expected: i32) {
        let path = self.place.1.path().join(name);
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let line = format!("./{name} 2>/dev/null");
        let tried = self.tries(Confinement::Workspace, &line).await;
        assert!(
            tried == Tried::Code(expected) || tried == Tried::Refused,
            "{name}: {tried:?}"
        );
        let outside = self.tries(Confinement::Open, &line).await;
        // Not every kernel has every call.
        let is_missing = [38, 139, 22].map(Tried::Code).contains(&outside);
        assert!(
            outside != Tried::Code(expected) || is_missing,
            "{name}: {outside:?}"
        );
    }
}

#[tokio::test]
async fn a_command_has_no_terminal_and_a_session_of_its_own() {
    let room = Room::new("session");
    // The session, the controlling terminal, and the shell's group.
    let line = "read -r _ _ _ _ group session terminal _ < /proc/self/stat; \
                test $terminal = 0 && test $session != $OUTER && test $group = $$";
    // Read like the command's own: 0 in a container, where the leader of the session cannot be seen.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let outer = fields.split_whitespace().nth(3).unwrap();
    let line = format!("OUTER={outer}; {line}");
    assert_eq!(room.tries(Confinement::Open, &line).await, Tried::Code(0));
    let tried = room.tries(Confinement::Workspace, ": < /dev/tty").await;
    assert_ne!(tried, Tried::Code(0));
}

impl Room {
    /// What starts a server on this workspace.
    fn serve(&self, start: &[&str], options: &[&str]) -> Command {
        let mut command = program(start.first().unwrap_or(&SWITCHBOARD));
        if let [_, more @ ..] = start {
            command.args(more).arg(SWITCHBOARD);
        }
        command.args(["daemon", "serve", "--listen", "127.0.0.1:0", "--workspace"]);
        command.arg(self.place.1.path()).args(options);
        command
    }
}

/// Lets the agent at this address do something, and returns what it says of that.
fn does(url: &str, prompt: &str) -> String {
    let command = switchboard("daemon", &["run", "--yes", "--url", url, prompt]);
    let (out, _) = outcome(command).ends(0);
    out
}

#[test]
fn no_command_writes_to_the_terminal_of_the_daemon() {
    for options in [&[][..], &["--unconfined"]] {
        let room = Room::new("terminal");
        // A terminal that controls the daemon.
        let mut screen = Screen::start(room.serve(&["setsid", "--ctty"], options));
        screen.shows("listening on ");
        let url = screen.shows(" ").trim().to_owned();
        let said = does(
            &url,
            "/call shell-run {\"command\":\"(echo escaped > /dev/tty) 2>&1; echo done\"}",
        );
        assert!(said.contains("done") || said.contains("not run"), "{said}");
        screen.terminate();
        let shown = screen.shows("ended: ");
        assert!(!shown.contains("escaped"), "{shown}");
    }
}

#[test]
fn no_command_inherits_an_open_file_of_the_daemon() {
    for options in [&[][..], &["--unconfined"]] {
        let room = Room::new("inherited");
        let leak = ["sh", "-c", "exec 7>>\"$0\"; exec \"$@\"", &room.path()];
        let (_server, url) = Running::serve(room.serve(&leak, options));
        let said = does(
            &url,
            "/call shell-run {\"command\":\"echo escaped >&7; echo done\"}",
        );
        assert!(said.contains("done") || said.contains("not run"), "{said}");
        assert_eq!(fs::read_to_string(&room.outside).unwrap(), "outside");
    }
}

#[test]
fn a_request_ends_a_server_without_a_key_only_if_its_commands_cannot_send_it() {
    for (options, status) in [(&["--network", "on"][..], "404"), (&[], "20")] {
        let room = Room::new("shutdown");
        let server = Running::start(room.serve(&[], options));
        let line = server.line_with("listening on ");
        let url = line.split(' ').find(|word| word.starts_with("http"));
        let host = url.unwrap().trim_start_matches("http://");
        let answer = exchange(host, "POST /v1/admin/shutdown", "", "");
        // Nothing is run on some machines, and nothing can be sent then.
        if line.contains("commands stay there") {
            let expected = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&expected), "{options:?}: {answer}");
        }
    }
}
