//! Each program, started as a person starts it, and a client of its protocol.

use std::error::Error;
use std::io::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

type Outcome = Result<(), Box<dyn Error>>;

/// A program that runs. It ends with the test.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(path: &str, arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        Self::start_in(&std::env::temp_dir(), path, arguments)
    }

    fn start_in(folder: &Path, path: &str, arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(path);
        command.current_dir(folder);
        for name in ["EXOCLAW_TOKEN", "ACOLYTE_API_KEY", "SNEK_URL"] {
            command.env_remove(name);
        }
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self {
            child,
            input,
            output,
        })
    }

    /// The next line that it prints.
    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("it has ended".into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The URL in its first line.
    fn url(&mut self) -> Result<String, Box<dyn Error>> {
        let line = self.line()?;
        let url = line.split_whitespace().next_back();
        Ok(url.ok_or("no URL")?.to_owned())
    }

    /// Ends it as Ctrl-C does.
    #[cfg(unix)]
    fn interrupt(mut self) -> Outcome {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &id]).status()?;
        assert!(told.success());
        assert!(self.child.wait()?.success(), "it ends well");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_bot_answers_a_mention_with_the_result_of_its_tool() -> Outcome {
    let mut bot = Program::start(env!("CARGO_BIN_EXE_bot"), &[])?;
    bot.line()?;
    // It may be on its way to its server: what comes before it has joined is not answered.
    while !bot.line()?.contains("is here") {}
    writeln!(bot.input, "@bot roll 1")?;
    assert_eq!(bot.line()?, "bot: The result of roll: 1");
    // Its nick is another spelling of its name.
    writeln!(bot.input, "@Bot: roll 1")?;
    assert_eq!(bot.line()?, "bot: The result of roll: 1");
    Ok(())
}

#[test]
fn a_mistake_on_the_command_line_is_a_sentence() -> Outcome {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let taken = taken.local_addr()?.to_string();
    for (path, servers) in [
        (env!("CARGO_BIN_EXE_tour"), false),
        (env!("CARGO_BIN_EXE_bot"), true),
        (env!("CARGO_BIN_EXE_gateway"), true),
        (env!("CARGO_BIN_EXE_agent"), true),
        (env!("CARGO_BIN_EXE_router"), true),
        (env!("CARGO_BIN_EXE_daemon"), true),
    ] {
        let run = |arguments: &[&str]| -> Result<_, Box<dyn Error>> {
            let mut command = Command::new(path);
            let output = command
                .args(arguments)
                .env("HOME", env!("CARGO_TARGET_TMPDIR"));
            let output = output.output()?;
            let said = String::from_utf8(output.stderr)?;
            Ok((
                output.status.code(),
                said,
                String::from_utf8(output.stdout)?,
            ))
        };
        let (code, said, _) = run(&["--bynd", "x"])?;
        let expected = "Error: --bynd is not an option; see --help\n";
        assert_eq!((code, &*said), (Some(2), expected), "{path}");
        let (code, _, said) = run(&["--help"])?;
        assert!(
            code == Some(0) && said.contains("cargo run -p examples"),
            "{said}"
        );
        if servers {
            let (code, said, _) = run(&["--bind"])?;
            assert!(
                code == Some(2) && said.contains("--bind needs a value"),
                "{said}"
            );
            let (code, said, _) = run(&["--bind", &taken])?;
            let expected = format!("Error: cannot listen on {taken}: ");
            assert!(
                code == Some(1) && said.starts_with(&expected),
                "{path}: {said}"
            );
            assert!(!said.contains(['{', '"']), "{path}: {said}");
        }
    }
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_daemon"));
    let said = String::from_utf8(daemon.args(["--folder", "nowhere"]).output()?.stderr)?;
    assert!(said.starts_with("Error: cannot open nowhere: "), "{said}");
    Ok(())
}

#[tokio::test]
async fn the_gateway_streams_keeps_sessions_and_counts_tokens() -> Outcome {
    use exoclaw_proto::client::ClientConfig;
    use exoclaw_proto::frame::SessionRef;

    let mut gateway = Program::start(env!("CARGO_BIN_EXE_gateway"), &["--bind", "127.0.0.1:0"])?;
    let config = ClientConfig::default();
    let (client, _events, connection) =
        exoclaw_proto::net::connect(&gateway.url()?, config).await?;
    tokio::spawn(connection.run());
    let answer = client.chat("roll 1").await.finish().await?;
    assert_eq!(answer, "The result of roll: 1");
    let answer = client.chat("roll 0").await.finish().await?;
    assert!(answer.contains("at least one side"), "{answer}");

    let sessions = client.session_list().await?;
    let [session] = &sessions[..] else {
        panic!("one session: {sessions:?}")
    };
    assert_eq!(session.turns, 2);
    assert!(client.budget_status(None).await?.daily.used > 0);
    let key = exoclaw_proto::session::SessionKey::parse(&session.key)?;
    let session = SessionRef::new(&*key.channel(), &*key.account());
    assert_eq!(client.session_clear(session).await?.turns, 2);
    #[cfg(unix)]
    gateway.interrupt()?;
    Ok(())
}

#[tokio::test]
async fn the_router_finds_plugins_by_words_and_names_and_tries_the_next() -> Outcome {
    use smarthole_proto::frame::Registration;
    use smarthole_proto::plugin::{AppError, Plugin, PluginConfig, handler_fn};

    let mut router = Program::start(env!("CARGO_BIN_EXE_router"), &["--bind", "127.0.0.1:0"])?;
    let url = router.url()?;
    for (name, description) in [
        ("notes", "Keeps the shopping list."),
        ("lamp", "Light for the list."),
    ] {
        let handler = handler_fn(move |_, message| async move {
            if name == "notes" && message.text.contains("light") {
                return Err(AppError::rejected("only notes"));
            }
            Ok(())
        });
        let config = PluginConfig::new(Registration::new(name, description))?;
        tokio::spawn(Plugin::new(&url, config, handler)?.run());
        // Its own connection needs this thread, so the line is awaited beside it.
        router = tokio::task::spawn_blocking(move || {
            let line = router.line().unwrap_or_default();
            assert_eq!(line, format!("{name} is here"));
            router
        })
        .await?;
    }
    for (text, expected) in [
        ("milk on the shopping list", &["notes: accepted"][..]),
        (
            "shopping list light",
            &["notes: rejected: only notes", "lamp: accepted"],
        ),
        (
            "notes and lamp: good night",
            &["notes: accepted", "lamp: accepted"],
        ),
    ] {
        writeln!(router.input, "{text}")?;
        let count = expected.len();
        let (back, mut lines) = tokio::task::spawn_blocking(move || {
            let lines: Vec<_> = (0..count)
                .map(|_| router.line().unwrap_or_default())
                .collect();
            (router, lines)
        })
        .await?;
        router = back;
        let mut expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected, "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn the_agent_asks_and_its_question_survives_a_cut() -> Outcome {
    use connectonion_proto::auth::Signer;
    use connectonion_proto::client::ClientConfig;
    use connectonion_proto::frame::Scope;
    use connectonion_proto::net::{self, RunEvent};

    let folder = std::env::temp_dir().join(format!("agent-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    // What it keeps is the user's; nothing is left where it was started.
    let home = folder.join("home");
    let arguments = ["--bind", "127.0.0.1:0", "--folder", "home"];
    let mut program = Program::start_in(&folder, env!("CARGO_BIN_EXE_agent"), &arguments)?;
    let url = program.url()?;
    let options = ClientConfig::default();
    let (agent, _events, connection) = net::connect(&url, Signer::generate()?, options).await?;
    tokio::spawn(connection.run());
    let mut run = agent.chat("roll 1").await;
    let mut asked = 0;
    while let Some(event) = run.next().await {
        if let RunEvent::Approval(question) = event? {
            asked += 1;
            agent.cut();
            question.approve(Scope::Once).await?;
        }
    }
    let Some(Ok(output)) = run.outcome() else {
        panic!("no outcome")
    };
    assert_eq!((asked, &*output.result), (1, "The result of roll: 1"));
    drop(program);
    assert!(home.join("agent.key").exists() && home.join("sessions.redb").exists());
    assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

#[tokio::test]
async fn the_daemon_edits_its_folder_and_nothing_beside_it() -> Outcome {
    use acolyte_proto::client::{ChatUpdate, ClientConfig};
    use acolyte_proto::event::Event;
    use acolyte_proto::frame::ChatRequest;

    let outer = std::env::temp_dir().join(format!("daemon-{}", std::process::id()));
    let folder = outer.join("inner");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(outer.join("secret"), "do not read")?;
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret", folder.join("link"))?;
    let name = folder.to_str().ok_or("no text")?;
    let arguments = ["--bind", "127.0.0.1:0", "--folder", name];
    let mut program = Program::start(env!("CARGO_BIN_EXE_daemon"), &arguments)?;
    let config = ClientConfig::default();
    let (client, _events, connection) =
        acolyte_proto::net::connect(&program.url()?, config).await?;
    tokio::spawn(connection.run());
    let ask = async |text: &str| {
        let mut chat = client.chat(ChatRequest::new(text, "scripted")).await;
        let outcome = chat.finish().await;
        outcome.reply().map(|it| it.output.to_string())
    };
    std::fs::write(folder.join("a.txt.draft"), "mine")?;
    let written = ask("write a.txt hello").await.unwrap_or_default();
    assert!(written.contains("5 bytes"), "{written}");
    assert_eq!(std::fs::read_to_string(folder.join("a.txt"))?, "hello");
    let draft = std::fs::read_to_string(folder.join("a.txt.draft"))?;
    assert_eq!(draft, "mine", "a file with the name of a draft stays");
    for text in [
        "read ../secret",
        "read link",
        "write ../secret x",
        "delete ../secret",
    ] {
        let answer = ask(text).await.unwrap_or_default();
        assert!(answer.contains("failed"), "{text}: {answer}");
    }
    assert_eq!(
        std::fs::read_to_string(outer.join("secret"))?,
        "do not read"
    );

    let mut chat = client
        .chat(ChatRequest::new("count 10000", "scripted"))
        .await;
    while let Some(update) = chat.next().await {
        if matches!(update, ChatUpdate::Event(Event::TextDelta(_))) {
            break;
        }
    }
    assert!(chat.abort().await?);
    chat.finish().await;
    std::fs::remove_dir_all(&outer)?;
    Ok(())
}

#[test]
fn the_tour_prints_what_the_picture_shows_and_ends() -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_tour")).output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{text}");
    assert!(text.contains("(aborted: true)"), "{text}");

    // The picture of the README shows another run: other numbers, and long lines cut.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let picture = std::fs::read_to_string(root.join(".github/tour.svg"))?;
    let printed: Vec<_> = text.lines().map(letters).collect();
    let lines = picture.lines().filter(|line| line.starts_with("<text"));
    for line in lines.filter(|line| !line.contains("$ cargo run -p examples")) {
        let shown = letters(&without_markup(line));
        let cut = line.contains('…');
        let found = printed
            .iter()
            .any(|it| *it == shown || cut && it.starts_with(&shown));
        assert!(
            found,
            "{shown:?} is not printed (.ci/pictures draws anew): {text}"
        );
    }
    Ok(())
}

/// The text of an element of a picture.
fn without_markup(element: &str) -> String {
    let parts = element.split('<').filter_map(|part| part.split_once('>'));
    let text: String = parts.map(|(_, text)| text).collect();
    ["&gt;", "&lt;", "&quot;", "&#x27;", "&amp;"]
        .iter()
        .fold(text, |text, escape| text.replace(escape, ""))
}

fn letters(line: &str) -> String {
    line.chars().filter(char::is_ascii_alphabetic).collect()
}
