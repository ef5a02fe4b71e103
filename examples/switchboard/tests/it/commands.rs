//! Commands: programs with a limit, what is left of them, and where they cannot go.
#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use acolyte_proto::event::ShellOutput;
use switchboard::daemon::command::{CommandConfig, Commands, Confinement};
use switchboard::daemon::{Code, Workspace};
#[cfg(target_os = "linux")]
use tokio::io::AsyncReadExt as _;

use crate::programs::{PATIENCE, SWITCHBOARD};

/// A folder that is removed with the value, and a workspace in it.
pub(crate) struct Fixture(pub(crate) PathBuf, pub(crate) Workspace);

impl Fixture {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("daemon-run-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("inside")).unwrap();
        fs::write(path.join("secret.txt"), "secret").unwrap();
        let workspace = Workspace::open(&path.join("inside")).unwrap();
        Self(path, workspace)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Commands that the daemon's own program supervises.
pub(crate) fn commands(config: CommandConfig) -> Commands {
    Commands::new(config.with_supervisor(SWITCHBOARD.into()))
}

fn open() -> Commands {
    commands(CommandConfig::default().with_confinement(Confinement::Open))
}

fn told(lines: &[ShellOutput]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn a_program_runs_in_the_folder_and_its_lines_are_kept() {
    let place = Fixture::new("lines");
    let run = |line: &'static str| {
        let commands = open();
        let workspace = place.1.clone();
        async move {
            commands
                .run(&workspace, line, None, &mut drop)
                .await
                .unwrap()
        }
    };
    let output = run("pwd; echo oops >&2; printf end; exit 3").await;
    let mut lines = told(&output.first);
    lines.sort_unstable();
    let here = place.1.path().display().to_string();
    let mut expected = vec![here.as_str(), "end", "oops"];
    expected.sort_unstable();
    assert_eq!((lines, output.code), (expected, Some(3)));
    assert!(output.text().ends_with("(exit code 3)\n"));
    let output = run("true").await;
    assert_eq!((output.text().as_str(), output.code), ("", Some(0)));
    let output = run("seq 1 1000").await;
    assert_eq!(told(&output.last).last(), Some(&"1000"));
    assert_eq!(output.left_out, 500);
    assert!(output.text().contains("(500 lines left out)"));
    let output = run("head -c 1000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(output.first.len(), 1);
    assert!(output.first[0].text.len() < 10_000);
}

#[tokio::test]
async fn no_program_sees_the_keys_of_the_daemon() {
    let place = Fixture::new("environment");
    // Whatever tests are run with, cargo has set these.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let output = open()
        .run(&place.1, "env; echo $HOME", None, &mut drop)
        .await
        .unwrap();
    let text = output.text();
    assert!(text.contains("PATH="), "{text}");
    assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
    let config = CommandConfig::default()
        .with_confinement(Confinement::Open)
        .with_variables(vec!["CARGO_MANIFEST_DIR".to_owned()]);
    let commands = commands(config);
    let output = commands
        .run(&place.1, "env", None, &mut drop)
        .await
        .unwrap();
    assert!(output.text().contains("CARGO_MANIFEST_DIR"));
}

#[tokio::test]
async fn a_slow_program_is_killed_with_all_its_children() {
    let place = Fixture::new("slow");
    let line = "echo started; (sleep 0.4; touch late) & sleep 60";
    let start = Instant::now();
    let timeout = Some(Duration::from_millis(150));
    let why = open()
        .run(&place.1, line, timeout, &mut drop)
        .await
        .unwrap_err();
    assert_eq!(why.code, Code::TimedOut);
    assert!(why.message.contains("it last said: started"), "{why}");
    assert!(start.elapsed() < Duration::from_secs(30));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!place.1.path().join("late").exists());
}

#[tokio::test]
async fn kills_a_program_whose_caller_is_gone() {
    let place = Fixture::new("dropped");
    let line = "touch early; sleep 0.4; touch late";
    let (commands, early) = (open(), place.1.path().join("early"));
    {
        let mut shown = drop;
        let running = commands.run(&place.1, line, None, &mut shown);
        tokio::pin!(running);
        while !early.exists() {
            let soon = Duration::from_millis(5);
            assert!(tokio::time::timeout(soon, &mut running).await.is_err());
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!place.1.path().join("late").exists());
}

#[tokio::test]
async fn does_not_wait_for_a_program_in_the_background() {
    let place = Fixture::new("behind");
    let start = Instant::now();
    let run = open()
        .run(&place.1, "echo done; sleep 60 &", None, &mut drop)
        .await;
    assert_eq!(told(&run.unwrap().first), ["done"]);
    assert!(start.elapsed() < Duration::from_secs(30));
}

/// Starts a line, which says a word to `alive` when it has got away, and aborts it then if it is to be.
/// `alive` is open until all that it has started is gone.
#[cfg(target_os = "linux")]
async fn leaves_nobody(commands: &Commands, place: &Fixture, line: &str, is_aborted: bool) {
    let alive = place.1.path().join("alive");
    let _ = fs::remove_file(&alive);
    rustix::fs::mkfifoat(rustix::fs::CWD, &alive, 0o600.into()).unwrap();
    let mut reader = tokio::net::unix::pipe::OpenOptions::new()
        .open_receiver(&alive)
        .unwrap();
    // Until someone else has it open, too.
    let writer = tokio::net::unix::pipe::OpenOptions::new()
        .open_sender(&alive)
        .unwrap();
    let line = format!("exec 9<>alive; exec 8>alive 9>&-; {line}");
    let mut word = [0];
    {
        let mut shown = drop;
        let running = commands.run(&place.1, &line, None, &mut shown);
        tokio::pin!(running);
        tokio::select! {
            ended = &mut running => panic!("{line}: {ended:?}"),
            read = reader.read_exact(&mut word) => assert_eq!(read.unwrap(), 1),
        }
        drop(writer);
        if !is_aborted {
            fs::write(place.1.path().join("end"), "").unwrap();
            let _ = running.await.unwrap();
        }
    }
    let end = async { while reader.read(&mut word).await.unwrap() > 0 {} };
    let end = tokio::time::timeout(PATIENCE, end).await;
    assert!(end.is_ok(), "{line}: somebody lives on");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_process_of_a_command_survives_it() {
    let place = Fixture::new("away");
    for (name, commands) in [
        ("open", open()),
        ("confined", commands(CommandConfig::default())),
    ] {
        if commands.check(&place.1).await.is_err() {
            assert_eq!(name, "confined");
            continue;
        }
        for line in [
            // Another session, and nothing left of the environment.
            "env -i setsid sh -c 'echo >&8; exec sleep 9999' & wait",
            "env -i setsid setsid sh -c 'echo >&8; sleep 9999' & sleep 9999",
            // Without a parent, twice.
            "(setsid sh -c '(env -i sh -c \"echo >&8; sleep 9999\" &) &' &); sleep 9999",
            // Closed outputs, and signals that are ignored.
            "(trap '' TERM HUP INT; setsid sh -c 'echo >&8; sleep 9999' >/dev/null 2>&1 &); sleep 9999",
            // Stopped.
            "sh -c 'echo >&8; kill -STOP $$' & sleep 9999",
            // A name of its own, which is written over the environment.
            "if perl -e 1; then env -i perl -e '$0 = \"x\" x 4096; system(\"echo >&8\"); sleep 9999' & \
             else echo >&8; fi; sleep 9999",
        ] {
            leaves_nobody(&commands, &place, line, true).await;
        }
        let line = "(env -i setsid sh -c 'echo >&8; sleep 9999' &); \
                    while ! test -e end; do sleep 0.01; done; rm end";
        leaves_nobody(&commands, &place, line, false).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_started_meanwhile_are_killed_too() {
    let place = Fixture::new("meanwhile");
    for (name, commands) in [
        ("open", open()),
        ("confined", commands(CommandConfig::default())),
    ] {
        if commands.check(&place.1).await.is_err() {
            assert_eq!(name, "confined");
            continue;
        }
        for line in [
            // Each one starts the next one, and ends.
            "next() { next & }; echo >&8; next; sleep 9999",
            "while :; do (setsid sleep 0.1 &); done & echo >&8; sleep 9999",
            "many() { while :; do sleep 0.2 & done; }; many & many & echo >&8; wait",
        ] {
            leaves_nobody(&commands, &place, line, true).await;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_to_its_own_group_does_not_reach_the_supervisor() {
    let place = Fixture::new("suicide");
    for commands in [open(), commands(CommandConfig::default())] {
        if commands.check(&place.1).await.is_ok() {
            let output = commands
                .run(&place.1, "echo x; kill -9 0", None, &mut drop)
                .await
                .unwrap();
            assert_eq!((told(&output.first), output.code), (vec!["x"], Some(137)));
        }
    }
}

#[tokio::test]
async fn nothing_is_run_where_that_is_switched_off() {
    let place = Fixture::new("off");
    let config = CommandConfig::default().with_confinement(Confinement::Off);
    let commands = commands(config);
    let why = commands
        .run(&place.1, "touch x", None, &mut drop)
        .await
        .unwrap_err();
    assert_eq!(why.code, Code::Call);
    assert!(!place.1.path().join("x").exists());
}

#[tokio::test]
async fn a_confined_program_stays_in_the_folder() {
    let place = Fixture::new("confined");
    let commands = commands(CommandConfig::default());
    let secret = place.0.join("secret.txt").display().to_string();
    let run = |line: String| {
        let (commands, workspace) = (commands.clone(), place.1.clone());
        async move { commands.run(&workspace, &line, None, &mut drop).await }
    };
    if let Err(why) = commands.check(&place.1).await {
        // Nothing at all is better than somewhere else.
        assert_eq!(why.code, Code::Sandbox);
        return;
    }
    let output = run(
        "echo in > a; cat a; echo $(ls); echo t > $TMPDIR/t && cat /tmp/t && touch ~/t".to_owned(),
    );
    let output = output.await.unwrap();
    assert_eq!(told(&output.first), ["in", "a", "t"]);
    for line in [
        format!("cat {secret}"),
        "cat ../secret.txt".to_owned(),
        format!("echo x > {secret}"),
        format!("ln {secret} mine && cat mine"),
        format!("ln -s {secret} link && cat link"),
        "truncate -s 0 ../secret.txt".to_owned(),
        "mv ../secret.txt .".to_owned(),
        "rm ../secret.txt".to_owned(),
        "ls .. | grep -v inside".to_owned(),
        "touch ../new".to_owned(),
        format!("cat /proc/{}/environ", std::process::id()),
        format!("kill -0 {}", std::process::id()),
    ] {
        let output = run(line.clone()).await.unwrap();
        assert_ne!(output.code, Some(0), "{line}");
        assert!(!output.text().contains("secret\n"), "{line}");
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 2);
}

/// More than any buffer on the way holds.
const FLOOD: &str = "yes 2>/dev/null";

#[tokio::test]
async fn a_command_that_never_stops_talking_can_be_aborted() {
    let place = Fixture::new("flood");
    let commands = open();
    for line in [FLOOD, "cat /dev/zero", "yes >&2"] {
        let mut shown = drop;
        let running = commands.run(&place.1, line, None, &mut shown);
        // Both in one task: whoever aborts has to get a turn.
        let aborted = async {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ended = running => panic!("{ended:?}"),
            () = aborted => {}
        }
    }
}

#[tokio::test]
async fn keeps_the_beginning_and_the_end_of_long_output() {
    let place = Fixture::new("much");
    let line = "seq 1 3000000; printf 'the end' >&2";
    let output = open().run(&place.1, line, None, &mut drop).await.unwrap();
    assert_eq!(told(&output.first)[..2], ["1", "2"]);
    assert!(told(&output.last).contains(&"3000000"));
    assert_eq!(
        output.left_out,
        3_000_001 - output.first.len() - output.last.len()
    );
}
