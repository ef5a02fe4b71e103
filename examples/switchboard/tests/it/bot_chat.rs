//! `bot chat`: one text, a pipe, a dialogue at a terminal, and a connection that is lost.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::programs::{Ended as _, Running, assert_holds, outcome, switchboard};

fn bot(args: &[&str]) -> Command {
    switchboard("bot", args)
}

/// A server, and a bot on it.
struct Fixture {
    server: Running,
    url: String,
    _bot: Option<Running>,
}

impl Fixture {
    fn server(listen: &str) -> Self {
        let channels = ["--channel", "general=General", "--channel", "random=Random"];
        let mut command = bot(&["serve", "--open", "--listen", listen]);
        command.args(channels);
        let (server, url) = Running::serve(command);
        Self {
            server,
            url,
            _bot: None,
        }
    }

    fn new() -> Self {
        let mut place = Self::server("127.0.0.1:0");
        let mut command = bot(&["--url", &place.url, "--username", "mybot"]);
        command.env("SNEK_PASSWORD", "secret");
        let running = Running::start(command);
        running.line_with("logged in");
        place._bot = Some(running);
        place
    }

    fn chat(&self, args: &[&str]) -> Command {
        let mut command = bot(&["chat", "--url", &self.url, "--username", "ann"]);
        command.args(args);
        command
    }

    /// What the chat makes of these lines.
    fn lines(&self, args: &[&str], lines: &str) -> (Option<i32>, Vec<String>) {
        let mut command = self.chat(args);
        command.stdin(Stdio::piped());
        let mut chat = Running::start(command);
        chat.input().write_all(lines.as_bytes()).unwrap();
        chat.end_with_lines()
    }
}

#[test]
fn a_text_is_posted_and_the_answer_printed() {
    let place = Fixture::new();
    let (out, err) = outcome(place.chat(&["@mybot count to 3"])).ends(0);
    assert_eq!(out, "ann, I count: 1 2 3 - done\n");
    assert_eq!(err, "");
    // A command for the terminal is a text here.
    outcome(place.chat(&["--channel", "#RANDOM", "@mybot echo /quit"])).prints("/quit\n");
}

#[test]
fn a_text_without_an_answer_fails() {
    let place = Fixture::server("127.0.0.1:0");
    outcome(place.chat(&["--within", "200ms", "hello"])).fails(1, &["no answer within 200ms"]);
}

#[test]
fn a_refusal_or_a_missing_server_changes_nothing() {
    let nowhere = ["chat", "--url", "ws://127.0.0.1:1", "hello"];
    outcome(bot(&nowhere)).fails(3, &["bot serve --open"]);
    // A pipe without a line does not hide it either.
    outcome(bot(&nowhere[..3])).ends(3);

    let mut server = bot(&["serve", "--user", "ann", "--listen", "127.0.0.1:0"]);
    server.env("SNEK_PASSWORD_ANN", "hunter2");
    let (_server, url) = Running::serve(server);
    let args = ["chat", "--url", &url, "--username", "ann", "--within", "1s"];
    let (_, err) = outcome(bot(&[&args[..], &["--json", "hello"]].concat())).ends(3);
    assert_holds(&err, &["password in SNEK_PASSWORD"]);
    let file = std::env::temp_dir().join(format!("bot-chat-{}", std::process::id()));
    std::fs::write(&file, "hunter2\n").unwrap();
    let mut right = bot(&args);
    right.arg("--password-file").arg(&file);
    outcome(right).ends(0);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn an_unknown_channel_is_an_error() {
    let place = Fixture::server("127.0.0.1:0");
    outcome(place.chat(&["--channel", "nowhere", "hello"])).fails(2, &["#General (general)"]);
}

#[test]
fn each_line_of_a_pipe_is_posted_and_every_message_is_one_line() {
    let place = Fixture::new();
    let text = "@mybot echo one\n/join random\n@mybot count to 2\n";
    let (code, lines) = place.lines(&["-q"], text);
    assert_eq!(code, Some(0), "{lines:?}");
    let mut own = lines.clone();
    own.retain(|line| line.starts_with("ann: "));
    assert_eq!(own, ["ann: @mybot echo one", "ann: @mybot count to 2"]);
    for answer in ["mybot: one", "mybot: ann, I count: 1 2 - done"] {
        let is_it = |line: &&String| line.ends_with(answer);
        assert_eq!(lines.iter().filter(is_it).count(), 1, "{lines:?}");
    }
    assert_eq!(lines.len(), 4, "{lines:?}");
    let (code, lines) = place.lines(&[], "/fly\n/channels\n/who mybot\n");
    assert_eq!(code, Some(1));
    for expected in ["no command /fly", "  #Random (random)", "mybot is mybot"] {
        let holds = |line: &String| line.contains(expected);
        assert!(lines.iter().any(holds), "{expected}: {lines:?}");
    }
}

#[test]
fn a_pipe_ends_in_time_also_without_its_server() {
    let place = Fixture::server("127.0.0.1:0");
    let mut command = place.chat(&["--within", "300ms"]);
    let mut chat = Running::start_with(command.stdin(Stdio::piped()));
    let mut input = chat.input();
    writeln!(input, "hello").unwrap();
    chat.line_with("ann: hello");
    let Fixture { server, .. } = place;
    drop(server);
    chat.line_with("connection lost");
    writeln!(input, "again").unwrap();
    let (code, lines) = chat.end_with_lines();
    assert_eq!(code, Some(1), "{lines:?}");
    assert!(
        lines.concat().contains("no connection to ws://"),
        "{lines:?}"
    );
}

#[test]
fn json_is_one_object_for_each_event_with_every_partial_message() {
    let place = Fixture::new();
    let (code, lines) = place.lines(&["--json"], "@mybot count to 3\n");
    assert_eq!(code, Some(0), "{lines:?}");
    let events = lines.iter().map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<Value> = events.collect();
    assert_eq!(events[0]["event"], "connected");
    assert_eq!(events[0]["channels"][1]["name"], "Random");
    let typing = |event: &Value| event["event"] == "typing" && event["nick"] == "mybot";
    assert!(events.iter().any(typing), "{lines:?}");
    let partial = events.iter().filter(|event| event["final"] == false);
    assert!(partial.count() > 2, "{lines:?}");
    let last = events.last().unwrap();
    assert_eq!(last["event"], "message");
    assert_eq!(last["text"], "ann, I count: 1 2 3 - done");
    assert_eq!(
        (&last["final"], &last["own"]),
        (&true.into(), &false.into())
    );
}

#[cfg(unix)]
mod terminal {
    use snek_proto::client::ClientConfig;
    use snek_proto::frame::Final;
    use snek_proto::net::connect_lazy;

    use super::*;
    use crate::pty::Screen;

    #[test]
    fn a_dialogue_shows_names_and_answers_as_they_grow() {
        let place = Fixture::new();
        let mut screen = Screen::start(place.chat(&[]));
        screen.shows("connected as ann");
        screen.shows("* #General (general)");
        screen.ends_in("#General>");
        screen.types("@mybot count to 20\r");
        screen.shows("mybot\x1b[0m: ann, I count: 1 2 3");
        screen.shows("19 20 - done");
        screen.types("/join random\r");
        screen.ends_in("#Random>");
        screen.types("@mybot echo there\r");
        screen.shows("mybot\x1b[0m: there");
        screen.ends_in("#Random>");
        let rows = screen.rows();
        for once in [
            "> @mybot count to 20",
            "mybot: ann, I count: 1 2",
            "mybot: there",
        ] {
            let found = rows.iter().filter(|row| row.contains(once));
            assert_eq!(found.count(), 1, "{once}: {rows:#?}");
        }
        assert!(!rows.iter().any(|row| row.starts_with("ann:")), "{rows:#?}");
        screen.types("\x04");
        screen.ends_with(0);
    }

    #[test]
    fn an_answer_grows_in_place_and_breaks_at_words_on_screens_of_several_widths() {
        for columns in [60, 80, 120] {
            let place = Fixture::new();
            let mut screen = Screen::with_size(place.chat(&[]), 60, columns);
            screen.shows("connected as ann");
            screen.ends_in("#General>");
            screen.types("@mybot count to 20\r");
            screen.shows("I count: 1 2 3");
            screen.ends_in("#General>");
            screen.shows("- done");
            // Until it is complete: the next message would be above it.
            screen.waits_for_no("is writing");
            screen.ends_in("#General>");
            let words =
                "the quick brown fox jumps over the lazy dog again and again until it is evening";
            screen.types(&format!("@mybot echo {words}\r"));
            screen.shows("the quick");
            screen.shows("the quick");
            screen.ends_in("#General>");
            let rows = screen.rows();
            let text = rows.iter().map(|row| row.trim());
            let text = text.collect::<Vec<_>>().join(" ");
            assert_eq!(text.matches("I count:").count(), 1, "{rows:#?}");
            assert!(text.contains("18 19 20 - done #General>"), "{rows:#?}");
            assert!(text.ends_with(&format!("{words} #General>")), "{rows:#?}");
            screen.types("\x04");
            screen.ends_with(0);
        }
    }

    #[test]
    fn typing_and_partial_messages_appear_above_the_prompt() {
        let place = Fixture::server("127.0.0.1:0");
        let mut screen = Screen::start(place.chat(&[]));
        screen.ends_in("#General>");
        screen.types("half a li");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let config = ClientConfig::new("bo", "1");
            let (client, _events, connection) = connect_lazy(&place.url, config).unwrap();
            let connection = tokio::spawn(connection.run());
            client.ready().await.unwrap();
            client.set_typing("general", "#FF6B35").await.unwrap();
            screen.shows("bo is typing ");
            let parts = [("one\ntwo", Final::No), ("one\ntwo three", Final::No)];
            for (text, is_final) in parts.into_iter().chain([("all of it", Final::Yes)]) {
                let sent = client.send_message("general", text, is_final);
                sent.await.unwrap();
                screen.shows(text.lines().last().unwrap());
                screen.ends_in("#General> half a li");
            }
            client.close();
            connection.await.unwrap();
        });
        let rows = screen.rows();
        let last = [&rows[rows.len() - 3..]].concat();
        let expected = [
            "channel #General · write a message, or /help",
            "bo: all of it",
            "#General> half a li",
        ];
        assert_eq!(last, expected, "{rows:#?}");
        screen.types("\x15\x04");
        screen.ends_with(0);
    }

    #[test]
    fn users_see_each_other_and_the_selected_channel() {
        let place = Fixture::server("127.0.0.1:0");
        let mut screen = Screen::start(place.chat(&["--channel", "random"]));
        screen.ends_in("#Random>");
        let mut bo = bot(&["chat", "--url", &place.url, "--username", "bo"]);
        bo.args(["--within", "300ms", "hi there"]);
        assert_eq!(outcome(bo).0, Some(1));
        screen.shows("#General bo\x1b[0m: hi there");
        screen.types("/help\r");
        screen.shows("A text that begins with a slash");
        let mut bo = bot(&["chat", "--url", &place.url, "--username", "bo", "--json"]);
        let mut bo = Running::start_with(bo.stdin(Stdio::piped()));
        let _input = bo.input();
        bo.line_with("connected");
        // What was just written is posted before the end.
        screen.types("first\rlast\r/quit\r");
        bo.line_with(r#""text":"last""#);
        screen.ends_with(0);
    }

    #[test]
    fn a_line_without_a_connection_is_reported_and_the_chat_reconnects() {
        let place = Fixture::server("127.0.0.1:0");
        let mut screen = Screen::start(place.chat(&[]));
        screen.ends_in("#General>");
        let listen = place.url.trim_start_matches("ws://");
        let listen = listen.split('/').next().unwrap().to_owned();
        let Fixture { server, .. } = place;
        drop(server);
        screen.shows("connection lost");
        screen.types("hello\r");
        screen.shows("not sent: hello: there is no connection");
        let _place = Fixture::server(&listen);
        screen.shows("connected again");
        // The line is in the history.
        screen.types("\x1b[A");
        screen.ends_in("#General> hello");
        screen.types("\r/who\r");
        screen.shows("ann is ann");
        screen.types("/quit\r");
        screen.ends_with(0);
    }
}
