//! The head of the table: when and where it was measured, and which versions.

use std::fs;
use std::process::Command;

const CRATES: [&str; 9] = [
    "serde_json",
    "sonic-rs",
    "jsonrpsee",
    "rmcp",
    "tokio",
    "tokio-tungstenite",
    "fastwebsockets",
    "hyper",
    "ed25519-dalek",
];

/// Date, processor, system and compiler.
pub(crate) fn describe() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{}, {} x {}, Linux {}, {}. Load when it began: {}.",
        said("date", &["-u", "+%Y-%m-%d"]),
        std::thread::available_parallelism().map_or(1, usize::from),
        model.map_or("unknown processor", |(_, model)| model.trim()),
        said("uname", &["-r"]),
        said("rustc", &["--version"]),
        load.split(' ').next().unwrap_or("?"),
    )
}

/// The peers' versions, from the lock file.
pub(crate) fn crates() -> String {
    let lock = include_str!("../Cargo.lock");
    let found = CRATES.map(|peer| {
        let start = format!("name = \"{peer}\"\nversion = \"");
        // Ours is the newest, where others use an older one too.
        let version = lock
            .rsplit_once(start.as_str())
            .and_then(|(_, rest)| rest.split_once('"'));
        format!("{peer} {}", version.map_or("?", |(version, _)| version))
    });
    found.join(", ")
}

/// What the program was built for.
pub(crate) fn built_for() -> &'static str {
    if cfg!(target_feature = "avx2") {
        "`cargo build --release`, for processors with AVX2"
    } else {
        "`cargo build --release`, for any processor of its architecture"
    }
}

/// The first line that a program prints.
pub(crate) fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or("?").trim().to_owned()
}
