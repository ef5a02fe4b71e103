//! Tests: programs with a limit, what is left of them, and where they cannot go.
#![cfg(unix)]

use std::time::Instant;

use super::*;

/// A folder that is removed with the value.
struct Place(PathBuf, Workspace);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("daemon-run-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("inside")).unwrap();
        fs::write(path.join("secret.txt"), "secret").unwrap();
        let workspace = Workspace::open(&path.join("inside")).unwrap();
        Self(path, workspace)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open() -> Commands {
    let config = CommandConfig::default().with_confinement(Confinement::Open);
    Commands::new(config)
}

fn told(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn a_program_runs_in_the_folder_and_its_lines_are_kept() {
    let place = Place::new("lines");
    let run = |line: &'static str| {
        let commands = open();
        let workspace = place.1.clone();
        async move { commands.run(&workspace, line, None).await.unwrap() }
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
    let place = Place::new("environment");
    // Whatever tests are run with, cargo has set these.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let output = open().run(&place.1, "env; echo $HOME", None).await.unwrap();
    let text = output.text();
    assert!(text.contains("PATH="), "{text}");
    assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
    let config = CommandConfig::default()
        .with_confinement(Confinement::Open)
        .with_variables(vec!["CARGO_MANIFEST_DIR".to_owned()]);
    let commands = Commands::new(config);
    let output = commands.run(&place.1, "env", None).await.unwrap();
    assert!(output.text().contains("CARGO_MANIFEST_DIR"));
}

#[tokio::test]
async fn a_slow_program_is_killed_with_all_that_it_has_started() {
    let place = Place::new("slow");
    let line = "echo started; (sleep 0.4; touch late) & sleep 60";
    let start = Instant::now();
    let timeout = Some(Duration::from_millis(150));
    let why = open().run(&place.1, line, timeout).await.unwrap_err();
    assert_eq!(why.code, Code::TimedOut);
    assert!(why.message.contains("it last said: started"), "{why}");
    assert!(start.elapsed() < Duration::from_secs(30));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!place.1.path().join("late").exists());
}

#[tokio::test]
async fn a_program_that_nobody_waits_for_is_killed() {
    let place = Place::new("dropped");
    let line = "touch early; sleep 0.4; touch late";
    let (commands, early) = (open(), place.1.path().join("early"));
    {
        let running = commands.run(&place.1, line, None);
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
async fn a_program_left_behind_is_not_waited_for() {
    let place = Place::new("behind");
    let start = Instant::now();
    let run = open().run(&place.1, "echo done; sleep 60 &", None).await;
    assert_eq!(told(&run.unwrap().first), ["done"]);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_has_left_the_group_is_killed_too() {
    let place = Place::new("left");
    let line = "setsid sh -c 'touch early; sleep 0.4; touch late' >/dev/null 2>&1 & \
                while ! test -e early; do :; done";
    let output = open().run(&place.1, line, None).await.unwrap();
    assert_eq!(output.code, Some(0), "{}", output.text());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!place.1.path().join("late").exists());
}

#[tokio::test]
async fn nothing_is_run_where_that_is_switched_off() {
    let place = Place::new("off");
    let config = CommandConfig::default().with_confinement(Confinement::Off);
    let commands = Commands::new(config);
    let why = commands.run(&place.1, "touch x", None).await.unwrap_err();
    assert_eq!(why.code, Code::Call);
    assert!(!place.1.path().join("x").exists());
}

#[tokio::test]
async fn a_confined_program_stays_in_the_folder() {
    let place = Place::new("confined");
    let commands = Commands::new(CommandConfig::default());
    let secret = place.0.join("secret.txt").display().to_string();
    let run = |line: String| {
        let (commands, workspace) = (commands.clone(), place.1.clone());
        async move { commands.run(&workspace, &line, None).await }
    };
    if !is_supported() {
        // Nothing at all is better than somewhere else.
        assert_eq!(
            run("true".to_owned()).await.unwrap_err().code,
            Code::Sandbox
        );
        return;
    }
    let output = run("echo in > a; cat a; echo $(ls); echo t > $TMPDIR/t && cat ~/t".to_owned());
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
        "ls ..".to_owned(),
        "cat /etc/passwd".to_owned(),
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
