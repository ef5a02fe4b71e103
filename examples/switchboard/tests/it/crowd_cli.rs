//! Crowds before the programs that serve: peers that connect and say nothing.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::programs::{Running, SWITCHBOARD, host, program};

/// More than the files that a server may open.
const CROWD: usize = 300;

/// A server that may open 128 files. It cannot have them all for connections.
fn serve(args: &[&str], home: &std::path::Path) -> Command {
    let mut command = program("/bin/sh");
    command
        .args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\"", SWITCHBOARD])
        .args(args)
        .current_dir(home)
        .env("HOME", home);
    command
}

#[test]
fn silent_connections_keep_no_client_out_of_any_program() {
    let home = std::env::temp_dir().join(format!("crowd-cli-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let programs: [&[&str]; 5] = [
        &["bot", "serve", "--open", "--listen", "127.0.0.1:0"],
        &[
            "daemon",
            "serve",
            "--commands",
            "open",
            "--listen",
            "127.0.0.1:0",
        ],
        &["gateway", "serve", "--port", "0"],
        &["agent", "host", "--listen", "127.0.0.1:0"],
        &["router", "serve", "--listen", "127.0.0.1:0"],
    ];
    for args in programs {
        let (_running, url) = Running::serve(serve(args, &home));
        let address = host(&url);
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        for _ in 0..3 {
            let mut honest = TcpStream::connect(address).unwrap();
            let request = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";
            honest.write_all(request).unwrap();
            let mut answer = String::new();
            honest.read_to_string(&mut answer).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 ") && !answer.contains(" 503 "),
                "{args:?}: {answer:?}"
            );
        }
        drop(crowd);
    }
    std::fs::remove_dir_all(home).unwrap();
}
