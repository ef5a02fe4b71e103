//! The peers in other languages: their programs are in `peers/`, what they need is installed below
//! the folder that cargo builds into, at the versions that are pinned there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::kind::Kind;
use crate::machine::said;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// What a peer's program is written in.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    Python,
    Node,
}

fn language(kind: &str) -> Option<Language> {
    match Kind::parse(kind).end {
        "aiohttp" | "websockets" => Some(Language::Python),
        "node ws" => Some(Language::Node),
        _ => None,
    }
}

pub(super) fn is_foreign(kind: &str) -> bool {
    language(kind).is_some()
}

/// The interpreter and the script of a peer, or `None` if it is written in Rust.
pub(super) fn program(kind: &str) -> Option<(PathBuf, PathBuf)> {
    let end = Kind::parse(kind).end;
    let script = |name: &str| Path::new(SOURCES).join(name);
    match language(kind)? {
        Language::Python => Some((python(), script(&format!("{end}_peer.py")))),
        // Node looks for packages beside the script.
        Language::Node => Some((PathBuf::from("node"), installed().join("node/ws_peer.mjs"))),
    }
}

fn installed() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    // target/release/bench
    let target = own.parent().and_then(Path::parent).unwrap();
    target.join("peers")
}

fn python() -> PathBuf {
    installed().join("python/bin/python")
}

/// Installs what a peer needs, once. The error says what is missing on this machine.
pub(super) fn install(kind: &str) -> Result<(), String> {
    match language(kind) {
        None => Ok(()),
        Some(Language::Python) => install_python(),
        Some(Language::Node) => install_node(),
    }
}

fn install_python() -> Result<(), String> {
    let folder = installed().join("python");
    if is_done(&folder, "requirements.txt") {
        return Ok(());
    }
    there("python3")?;
    let folder_text = folder.display().to_string();
    run("python3", &["-m", "venv", "--clear", &folder_text])?;
    let pinned = format!("{SOURCES}/requirements.txt");
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        &pinned,
    ];
    run(&python().display().to_string(), &pip)?;
    copy(&folder, "requirements.txt")
}

fn install_node() -> Result<(), String> {
    let folder = installed().join("node");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    copy(&folder, "ws_peer.mjs")?;
    if is_done(&folder, "package-lock.json") {
        return Ok(());
    }
    there("node")?;
    there("npm")?;
    copy(&folder, "package.json")?;
    copy(&folder, "package-lock.json")?;
    let installed = run(
        "npm",
        &["ci", "--silent", "--prefix", &folder.display().to_string()],
    );
    if installed.is_err() {
        // It is the mark that all is installed.
        let _ = fs::remove_file(folder.join("package-lock.json"));
    }
    installed
}

/// Whether the file that was copied last is the present one.
fn is_done(folder: &Path, name: &str) -> bool {
    let wanted = fs::read(Path::new(SOURCES).join(name));
    let found = fs::read(folder.join(name));
    matches!((wanted, found), (Ok(wanted), Ok(found)) if wanted == found)
}

fn copy(folder: &Path, name: &str) -> Result<(), String> {
    let copied = fs::copy(Path::new(SOURCES).join(name), folder.join(name));
    copied.map(|_| ()).map_err(|error| error.to_string())
}

fn there(program: &str) -> Result<(), String> {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    status
        .map(|_| ())
        .map_err(|_| format!("{program} is not installed"))
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    eprintln!("{program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("{program}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} {} failed", arguments[0]))
    }
}

/// The versions of the peers in other languages.
pub(crate) fn versions() -> String {
    let pinned = fs::read_to_string(format!("{SOURCES}/requirements.txt")).unwrap_or_default();
    let version = |name: &str| {
        let start = format!("{name}==");
        let line = pinned.lines().find_map(|line| line.strip_prefix(&start));
        format!("{name} {}", line.unwrap_or("?"))
    };
    let package = fs::read_to_string(format!("{SOURCES}/package.json")).unwrap_or_default();
    let package: serde_json::Value = serde_json::from_str(&package).unwrap_or_default();
    format!(
        "{}, {} with {}; ws {} with node {}",
        version("aiohttp"),
        version("websockets"),
        said("python3", &["--version"]),
        package["dependencies"]["ws"].as_str().unwrap_or("?"),
        said("node", &["--version"]),
    )
}
