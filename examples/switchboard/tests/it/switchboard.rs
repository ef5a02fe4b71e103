//! The program as a whole: its commands, what they have in common, completions and manual pages.

use std::fs;
use std::process::Command;

use crate::programs::{SWITCHBOARD, outcome, program};

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = program(SWITCHBOARD);
    command.args(args);
    outcome(command)
}

/// What a command prints that ends well.
fn prints(args: &[&str]) -> String {
    let (code, out, err) = run(args);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}: {out}");
    out
}

#[test]
fn one_program_has_all_commands_and_prints_its_version() {
    let version = prints(&["--version"]);
    let features = format!("switchboard {} (features: ", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(&features), "{version}");
    assert_eq!(version.contains("nats"), cfg!(feature = "nats"));
    let help = prints(&["--help"]);
    for command in [
        "bot",
        "gateway",
        "router",
        "agent",
        "daemon",
        "completions",
        "man",
    ] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "no {command} in\n{help}"
        );
    }
}

#[test]
fn every_command_has_the_same_exit_codes_and_the_same_options_for_what_is_printed() {
    let codes = "Exit codes: 0 success, 1 failure, 2 wrong usage";
    for command in [
        &[][..],
        &["bot"],
        &["gateway"],
        &["router"],
        &["agent"],
        &["daemon"],
    ] {
        let help = prints(&[command, &["--help"]].concat());
        assert!(help.contains(codes), "{command:?}:\n{help}");
        for option in ["-q, --quiet", "-v, --verbose"] {
            assert_eq!(help.matches(option).count(), 1, "{command:?}:\n{help}");
        }
        for wrong in ["--nope", "-qv"] {
            let (code, out, _) = run(&[command, &[wrong]].concat());
            assert_eq!((code, out.as_str()), (Some(2), ""), "{command:?} {wrong}");
        }
    }
}

#[test]
fn a_quiet_command_prints_its_errors_and_nothing_beside_its_answers() {
    for args in [
        &["-q", "gateway", "chat", "--url", "ws://127.0.0.1:1", "hi"][..],
        &[
            "gateway",
            "chat",
            "--url",
            "ws://127.0.0.1:1",
            "hi",
            "--quiet",
        ],
    ] {
        let (code, out, err) = run(args);
        assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.starts_with("error: no connection to "), "{err}");
    }
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let text = prints(&["completions", shell]);
        for word in ["gateway", "tls-cert", "completions"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    assert_eq!(run(&["completions", "tcsh"]).0, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn bash_understands_its_completions() {
    let text = prints(&["completions", "bash"]);
    let script = format!(
        "{text}\nCOMP_WORDS=(switchboard gateway ch) COMP_CWORD=2\n\
         _switchboard switchboard ch gateway\necho \"${{COMPREPLY[@]}}\""
    );
    // It is longer than an argument may be.
    let name = format!("switchboard-completions-{}.bash", std::process::id());
    let file = std::env::temp_dir().join(name);
    fs::write(&file, script).unwrap();
    let mut bash = Command::new("bash");
    bash.arg("--norc").arg(&file);
    let (code, out, err) = outcome(bash);
    fs::remove_file(file).unwrap();
    assert_eq!((code, out.as_str()), (Some(0), "check chat\n"), "{err}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("switchboard-man-{}", std::process::id()));
    assert!(prints(&["man"]).contains(".TH switchboard 1"));
    assert_eq!(prints(&["man", folder.to_str().unwrap()]), "");
    for page in [
        "switchboard",
        "switchboard-bot",
        "switchboard-gateway-chat",
        "switchboard-daemon-serve",
    ] {
        let text = fs::read_to_string(folder.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH OPTIONS"), "{page}: {text}");
    }
    fs::remove_dir_all(folder).unwrap();
    let (code, _, err) = run(&["man", "/dev/null/pages"]);
    assert_eq!(code, Some(1), "{err}");
}
