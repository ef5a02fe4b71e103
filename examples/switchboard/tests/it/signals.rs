//! The servers: where they listen, and the signals that end them.
#![cfg(unix)]

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use crate::programs::{
    Ended as _, Folder, PATIENCE, Running, SWITCHBOARD, outcome, program, switchboard,
};

/// A server of each kind, in a folder.
fn servers(folder: &Folder, own: &str) -> Vec<Command> {
    let (host, port) = own.rsplit_once(':').unwrap();
    let line = |args: &[&str]| {
        let mut command = switchboard(args[0], &args[1..]);
        command.env("HOME", &folder.0);
        command
    };
    let work = folder.0.display().to_string();
    vec![
        line(&["agent", "host", "--listen", own, "--home", &work]),
        line(&["bot", "serve", "--open", "--listen", own]),
        line(&["daemon", "serve", "--listen", own, "--workspace", &work]),
        line(&["gateway", "serve", "--bind", host, "--port", port]),
        line(&["router", "serve", "--listen", own]),
        line(&["wire", "proxy", "--listen", own, "--to", "ws://127.0.0.1:9"]),
    ]
}

#[test]
fn every_server_ends_in_order_when_its_terminal_closes() {
    let folder = Folder::new("terminal-closes");
    for mut command in servers(&folder, "127.0.0.1:0") {
        let server = Running::start_with(&mut command);
        server.line_with("listening on");
        server.signal("-HUP");
        let (code, lines) = server.end_with_lines();
        assert_eq!(code, Some(0), "{command:?}: {lines:#?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn every_server_takes_the_socket_of_systemd_and_reports_that_it_is_ready() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr;
    let folder = Folder::new("systemd");
    let path = folder.0.join("notify");
    let at_path = UnixDatagram::bind(&path).unwrap();
    let name = format!("@switchboard-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name[1..]).unwrap();
    let in_no_folder = UnixDatagram::bind_addr(&address).unwrap();
    let sockets = [
        (at_path, path.into_os_string()),
        (in_no_folder, name.into()),
    ];
    // Not one of the proxy, which is a tool.
    for (command, (notified, path)) in servers(&folder, "127.0.0.1:9")
        .iter()
        .take(5)
        .zip(sockets.iter().cycle())
    {
        notified.set_read_timeout(Some(PATIENCE)).unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut activated = program("sh");
        activated.args([
            "-c",
            "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null",
        ]);
        activated
            .arg(command.get_program())
            .args(command.get_args());
        activated.env("HOME", &folder.0).env("NOTIFY_SOCKET", path);
        activated.env("WATCHDOG_USEC", "60000000");
        let server = Running::start_with(activated.stdin(OwnedFd::from(socket)));
        let mut message = [0; 64];
        for expected in [&b"READY=1\n"[..], b"WATCHDOG=1\n"] {
            // A signal about a child of another test may come in between.
            let length = loop {
                match notified.recv(&mut message) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    received => break received.unwrap(),
                }
            };
            assert_eq!(&message[..length], expected, "{command:?}");
        }
        let line = server.line_with("listening on");
        assert!(line.contains(&address.to_string()), "{line}");
        assert!(TcpStream::connect(address).is_ok(), "{command:?}");
    }
}

#[test]
fn a_server_under_nohup_survives_its_terminal() {
    let folder = Folder::new("terminal-ignored");
    let mut command = program("nohup");
    command.args([SWITCHBOARD, "daemon", "serve", "--listen", "127.0.0.1:0"]);
    command.current_dir(&folder.0);
    let (server, url) = Running::serve(command);
    server.signal("-HUP");
    let run = switchboard("daemon", &["run", "--url", &url, "hello"]);
    outcome(run).prints("hello\n");
    server.signal("-TERM");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn every_server_listens_at_a_name_and_at_an_address_in_brackets() {
    let folder = Folder::new("listens");
    for command in servers(&folder, "localhost:0")
        .into_iter()
        .chain(servers(&folder, "[::1]:0"))
    {
        let is_named = format!("{command:?}").contains("localhost");
        let (_server, url) = Running::serve(command);
        let address = if is_named { "127.0.0.1:" } else { "[::1]:" };
        assert!(url.contains(address), "{url}");
    }
}
