//! Commands that serve, with a certificate: they speak TLS only, and say so.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rpc_core::net::tls::TlsConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::programs::{Ended as _, Running, SWITCHBOARD, host, outcome, program};

/// A folder with a certificate and its key, which is removed with the value.
struct Certificate {
    folder: PathBuf,
    pem: String,
}

impl Certificate {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let pem = key.cert.pem();
        fs::write(folder.join("cert.pem"), &pem).unwrap();
        fs::write(folder.join("key.pem"), key.signing_key.serialize_pem()).unwrap();
        Self { folder, pem }
    }

    /// A command at home in the folder.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(SWITCHBOARD);
        command.args(args).current_dir(&self.folder);
        command.env("HOME", &self.folder);
        command
    }

    /// A server, and its address with the name of the certificate.
    fn serve(&self, args: &[&str]) -> (Running, String) {
        let mut command = self.command(args);
        command.args(["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
        let (running, url) = Running::serve(command);
        (running, url.replace("127.0.0.1", "localhost"))
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[tokio::test]
async fn every_command_that_serves_speaks_tls_with_a_certificate() {
    let certificate = Certificate::new("all");
    let tls = TlsConfig::with_root_certificates(certificate.pem.as_bytes()).unwrap();
    for args in [
        &["bot", "serve", "--open", "--listen", "127.0.0.1:0"][..],
        &["gateway", "serve", "--port", "0"],
        &["router", "serve", LISTEN[0], LISTEN[1]],
        &["agent", "host", LISTEN[0], LISTEN[1]],
        &[
            "daemon",
            "serve",
            "--commands",
            "open",
            LISTEN[0],
            LISTEN[1],
        ],
    ] {
        let (_server, url) = certificate.serve(args);
        let (scheme, _) = url.split_once("://").unwrap();
        assert!(["https", "wss"].contains(&scheme), "{args:?}: {url}");
        let port: u16 = host(&url).rsplit(':').next().unwrap().parse().unwrap();
        let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut socket = tls.connect("localhost", tcp).await.unwrap();
        let request = "GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.flush().await.unwrap();
        let mut answer = [0; 9];
        socket.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 ", "{args:?}");
        // Without TLS nothing is answered in words.
        let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        plain.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{args:?}: {answer:?}");
    }
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart() {
    let before = Certificate::new("renewed");
    let (gateway, url) = before.serve(&["gateway", "serve", "--port", "0"]);
    let url = url.replace("https://", "wss://");
    let chat = [
        "gateway", "chat", "--url", &url, "--ca", "cert.pem", "hello",
    ];
    let after = Certificate::new("renewed");
    let (code, _, err) = outcome(after.command(&chat));
    assert_eq!(code, Some(0), "{err}");
    fs::write(after.folder.join("cert.pem"), &before.pem).unwrap();
    assert_ne!(outcome(before.command(&chat)).0, Some(0));
    gateway.line_with("the certificate of before stays");
}

// Elsewhere the system alone says which certificates are trusted.
#[cfg(target_os = "linux")]
#[test]
fn a_client_that_trusts_the_certificate_talks_over_tls() {
    let certificate = Certificate::new("client");
    let (_gateway, url) = certificate.serve(&["gateway", "serve", "--port", "0"]);
    let url = url.replace("https://", "wss://") + "ws";
    let chat = ["gateway", "chat", "--url", &url, "count to 2"];
    let mut trusting = certificate.command(&chat);
    trusting.env("SSL_CERT_FILE", "cert.pem");
    outcome(trusting).prints("I count: 1 2 - done\n");
    outcome(certificate.command(&chat)).fails(3, &[]);
}

#[test]
fn load_trusts_the_issuers_that_it_is_given() {
    let certificate = Certificate::new("load");
    let (_gateway, url) = certificate.serve(&["gateway", "serve", "--port", "0"]);
    let gateway = url.replace("https://", "wss://") + "ws";
    let daemon = ["daemon", "serve", "--commands", "open"];
    let (_daemon, daemon) = certificate.serve(&[&daemon[..], &LISTEN].concat());
    let pace = ["--rate", "50", "--duration", "200ms", "--warmup", "0"];
    for (to, what) in [
        (&gateway, &["--protocol", "exoclaw"][..]),
        (&daemon, &["--protocol", "acolyte"]),
    ] {
        let load = |more: &[&str]| {
            let args = [&["wire", "load", to], what, &pace, more].concat();
            outcome(certificate.command(&args))
        };
        let (out, _) = load(&["--ca", "cert.pem"]).ends(0);
        assert!(out.contains("10 of 10 sent"), "{what:?} {out}");
        load(&[]).ends(3);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_proxy_speaks_tls_on_both_sides() {
    let certificate = Certificate::new("proxy");
    let (_gateway, url) = certificate.serve(&["gateway", "serve", "--port", "0"]);
    let to = url.replace("https://", "wss://");
    let proxy = |record, more: &[&str]| {
        let args = ["wire", "proxy", "--to", &to, "--record", record];
        certificate.serve(&[&args, &LISTEN[..], more].concat())
    };
    let chat = |url: &str| {
        assert!(url.starts_with("wss://"), "{url}");
        let url = format!("{url}/ws");
        let mut chat = certificate.command(&["gateway", "chat", "--url", &url, "count to 2"]);
        chat.env("SSL_CERT_FILE", "cert.pem");
        outcome(chat)
    };
    let (trusting, url) = proxy("run.jsonl", &["--ca", "cert.pem"]);
    chat(&url).prints("I count: 1 2 - done\n");
    trusting.interrupt();
    assert_eq!(trusting.end(), Some(0));
    let (out, err) = outcome(certificate.command(&["wire", "decode", "run.jsonl"])).ends(0);
    assert!(out.contains("-> chat.send"), "{out}");
    assert!(err.contains(" 0 with errors, 0 not wholly known"), "{err}");

    // One that does not know the server's issuer says so to both.
    let (wary, url) = proxy("wary.jsonl", &[]);
    chat(&url).fails(3, &["502"]);
    let warning = wary.line_with("connection 1: ");
    assert!(warning.contains("certificate"), "{warning}");
}

#[test]
fn a_certificate_requires_its_key() {
    let certificate = Certificate::new("mistakes");
    let other = Certificate::new("other");
    let other = other.folder.join("key.pem");
    let other = other.to_str().unwrap();
    for (args, expected) in [
        (&["--tls-cert", "cert.pem"][..], "--tls-key"),
        (&["--tls-key", "key.pem"], "--tls-cert"),
        (
            &["--tls-cert", "none.pem", "--tls-key", "key.pem"],
            "none.pem",
        ),
        (
            &["--tls-cert", "key.pem", "--tls-key", "key.pem"],
            "no certificate",
        ),
        (&["--tls-cert", "cert.pem", "--tls-key", other], "--tls-key"),
    ] {
        for serve in [
            &["bot", "serve", "--open"][..],
            &["gateway"],
            &["router"],
            &["agent", "host"],
            &["daemon", "serve"],
        ] {
            let mut command = certificate.command(serve);
            command.args(args);
            outcome(command).fails(2, &[expected]);
        }
    }
}
