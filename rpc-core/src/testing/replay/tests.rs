//! Tests of replays: what is bound, what differs, and when.

use std::time::Duration;

use super::*;
use crate::Instant;
use crate::error::Disconnect;
use crate::machine::Machine as _;
use crate::message::{CloseFrame, Incoming, Outgoing};
use crate::testing::Side;
use crate::testing::conformance;
use crate::testing::transcript::{Entry, Kind};

/// A line of a recording, at a whole second.
fn line(at: u64, conn: u32, from: Side, data: &str) -> String {
    let mut line = String::new();
    let kind = match data {
        "" => Kind::Eof,
        "1000" | "4001" => Kind::Close,
        _ => Kind::Text,
    };
    let entry = match kind {
        Kind::Close => Entry::new(Duration::from_secs(at), conn, Some(from), kind, "")
            .with_code(data.parse().ok()),
        _ => Entry::new(Duration::from_secs(at), conn, Some(from), kind, data),
    };
    entry.write(&mut line);
    line
}

fn c(data: &str) -> String {
    line(0, 1, Side::Client, data)
}

fn s(data: &str) -> String {
    line(0, 1, Side::Server, data)
}

/// The replay of one connection, and its time.
struct Played {
    replay: Replay,
    now: Instant,
}

impl Played {
    fn new(lines: &[String], plays: Side, settings: Settings) -> Self {
        let recording = Recording::parse(&lines.concat()).unwrap();
        let now = Instant::now();
        let replay = Playback::new(recording, plays, settings).connection(0, now);
        Self {
            replay: replay.unwrap(),
            now,
        }
    }

    fn client(lines: &[String]) -> Self {
        Self::new(lines, Side::Client, Settings::default())
    }

    fn server(lines: &[String]) -> Self {
        Self::new(lines, Side::Server, Settings::default())
    }

    fn get(&mut self, text: &str) -> &mut Self {
        self.replay.handle_message(Incoming::Text(text), self.now);
        self
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        let until = self.now + time;
        while let Some(wake) = self.replay.poll_timeout().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            self.replay.handle_timeout(self.now);
        }
        self.now = until;
        self
    }

    fn sent(&mut self) -> Vec<String> {
        let frames = std::iter::from_fn(|| self.replay.poll_transmit());
        let show = |frame| match frame {
            Outgoing::Text(text) => text.as_str().to_owned(),
            Outgoing::Close(frame) => frame.code.to_string(),
            other => format!("{other:?}"),
        };
        frames.map(show).collect()
    }

    fn found(&mut self) -> Vec<String> {
        let all = std::iter::from_fn(|| self.replay.poll_event());
        all.map(|it| it.to_string()).collect()
    }
}

#[test]
fn a_frame_waits_for_what_is_recorded_before_it() {
    let lines = [c(r#"{"id":"1"}"#), s(r#"{"id":"1","ok":1}"#), c("[]")];
    let mut played = Played::client(&lines);
    assert_eq!(played.sent(), [r#"{"id":"1"}"#]);
    played.get(r#"{ "ok":1.0, "id":"1" }"#);
    assert_eq!(played.sent(), ["[]"]);
    assert_eq!(played.wait(Duration::from_secs(9)).sent(), ["1000"]);
    assert_eq!(played.found(), [""; 0]);
}

#[test]
fn what_the_other_side_makes_is_used_in_its_place() {
    let lines = [
        s(r#"{"session":"sess_a1b2c3","callId":"1","at":"2026-01-01T00:00:00Z"}"#),
        c(
            r#"{"session":"sess_a1b2c3", "path":"/of/sess_a1b2c3/x","other":"sess_a1b2c33","n":"1","callId":"1"}"#,
        ),
        s(r#"{"note":"gone: sess_a1b2c3"}"#),
    ];
    let mut played = Played::client(&lines);
    played.get(r#"{"session":"sess_z9","callId":"7","at":"2027-05-05T00:00:00Z"}"#);
    assert_eq!(
        played.sent(),
        [
            r#"{"session":"sess_z9", "path":"/of/sess_z9/x","other":"sess_a1b2c33","n":"1","callId":"7"}"#
        ]
    );
    played.get(r#"{"note":"gone: sess_z9"}"#);
    assert_eq!(played.found(), [""; 0]);
}

#[test]
fn what_is_bound_stays_bound() {
    let lines = [
        c(r#"{"id":"call_12345"}"#),
        c(r#"{"id":"call_67890"}"#),
        s(r#"{"id":"call_12345","token":"a"}"#),
        s(r#"{"id":"call_67890","token":"b","last":true}"#),
    ];
    let mut played = Played::client(&lines);
    played.sent();
    played.get(r#"{"id":"call_67890","token":"a"}"#);
    let expected = "line 3, connection 1: a frame differs\n  \
                    id: recorded \"call_12345\", got \"call_67890\"";
    assert_eq!(played.found(), [expected]);
    let mut played = Played::client(&lines);
    played.sent();
    played.get(r#"{"id":"call_12345","token":"hunter2"}"#);
    played.get(r#"{"id":"call_67890","token":"hunter2","last":true}"#);
    let found = played.found();
    assert!(
        found[0].contains("token: recorded ***, got ***"),
        "{found:?}"
    );
}

#[test]
fn a_difference_names_line_and_members_and_ends_the_replay() {
    let lines = [
        c(r#"{"id":1}"#),
        s(r#"{"id":1,"event":"text","data":{"items":["a","b"],"gone":{}}}"#),
        c("[]"),
    ];
    let mut played = Played::client(&lines);
    played.sent();
    played.get(r#"{"id":1,"event":"text","data":{"items":["a","c"],"new":null}}"#);
    let expected = "line 2, connection 1: a frame differs\n  \
                    data.items[1]: recorded \"b\", got \"c\"\n  \
                    data.gone: recorded {}, got nothing\n  \
                    data.new: recorded nothing, got null";
    assert_eq!(played.found(), [expected]);
    assert_eq!(played.sent(), ["1011"]);
    played.get("{}").wait(Duration::from_secs(60));
    assert_eq!((played.sent().len(), played.found().len()), (0, 0));
}

#[test]
fn a_replay_that_keeps_going_finds_all() {
    let lines = [
        s(r#"{"type":"a","n":1}"#),
        s(r#"{"type":"b"}"#),
        s(r#"{"type":"c"}"#),
        s(r#"{"type":"d"}"#),
        c("[]"),
        s("4001"),
    ];
    let settings = Settings::default().with_keep_going(true);
    let mut played = Played::new(&lines, Side::Client, settings);
    for text in [
        r#"{"type":"a","n":2}"#,
        r#"{"type":"x"}"#,
        r#"{"type":"c"}"#,
    ] {
        played.get(text);
    }
    assert_eq!(played.sent(), [""; 0]);
    played.wait(Duration::from_secs(6));
    assert_eq!(played.sent(), ["[]"]);
    let why = Disconnect::PeerClosed(Some(CloseFrame::new(1000, "bye")));
    played.replay.handle_disconnect(why, played.now);
    let found = played.found();
    let firsts: Vec<_> = found.iter().map(|it| it.lines().next().unwrap()).collect();
    assert_eq!(
        firsts,
        [
            "line 1, connection 1: a frame differs",
            "line 2, connection 1: another frame comes",
            "line 2, connection 1: a frame is missing: one recorded later comes",
            "line 4, connection 1: a frame does not come",
            "line 6, connection 1: the connection ends in another way",
        ]
    );
    assert!(
        found[4].contains("code: recorded 4001, got 1000"),
        "{found:?}"
    );
}

#[test]
fn a_frame_may_take_the_recorded_time_and_the_timeout() {
    let lines = [c("[]"), line(20, 1, Side::Server, "[]")];
    let mut played = Played::client(&lines);
    assert_eq!(played.wait(Duration::from_secs(24)).found(), [""; 0]);
    let found = played.wait(Duration::from_secs(2)).found();
    assert_eq!(
        found,
        ["line 2, connection 1: a frame does not come\n  recorded []\n  got      nothing"]
    );
}

#[test]
fn frames_are_played_at_the_speed_that_is_asked_for() {
    let lines = [
        c("[1]"),
        line(10, 1, Side::Client, "[2]"),
        line(10, 1, Side::Server, "[3]"),
    ];
    let settings = Settings::default().with_speed(2.0);
    let mut played = Played::new(&lines, Side::Client, settings);
    assert_eq!(played.sent(), ["[1]"]);
    // What comes early is what is awaited, too.
    played.get("[3]");
    assert_eq!(played.wait(Duration::from_millis(4900)).sent(), [""; 0]);
    assert_eq!(played.wait(Duration::from_millis(200)).sent()[0], "[2]");
    assert_eq!(played.found(), [""; 0]);
}

#[test]
fn ends_are_compared() {
    let closed = |code| Disconnect::PeerClosed(Some(CloseFrame::new(code, "")));
    for (recorded, why, expected) in [
        (s("1000"), closed(1000), None),
        (s(""), Disconnect::Eof, None),
        (s("1000"), closed(1001), Some("ends in another way")),
        (s("1000"), Disconnect::Eof, Some("ends in another way")),
        (s(""), closed(1000), Some("ends in another way")),
        (s("[]"), Disconnect::Eof, Some("ends before it")),
        (c("1000"), closed(1000), Some("the other side ends")),
    ] {
        let mut played = Played::client(&[c("[]"), recorded.clone()]);
        played.sent();
        played.replay.handle_disconnect(why, played.now);
        let found = played.found();
        match expected {
            None => assert_eq!(found, [""; 0], "{recorded}"),
            Some(text) => assert!(found[0].contains(text), "{recorded}: {found:?}"),
        }
    }
}

#[test]
fn a_frame_behind_all_that_is_recorded_is_found_before_the_close() {
    let lines = [c("[]"), s("[]"), c("1000"), s("1000")];
    let mut played = Played::client(&lines);
    played.get("[]");
    assert_eq!(played.sent(), ["[]"]);
    played.wait(Duration::from_millis(50)).get("[2]");
    assert!(played.found()[0].contains("a Close") || played.sent() == ["1011"]);
    let mut played = Played::client(&lines);
    played.get("[]").wait(Duration::from_secs(1));
    assert_eq!(played.sent(), ["[]", "1000"]);
}

#[test]
fn tolerated_members_and_ignored_kinds_are_passed_over() {
    let lines = [
        s(r#"{"type":"PING"}"#),
        s(r#"{"usage":{"n":1},"data":{"text":"a"},"text":"b"}"#),
    ];
    let mut settings = Settings::default().with_ignored(vec!["PING".to_owned()]);
    settings.tolerated = vec!["usage".to_owned(), "data.text".to_owned()];
    let mut played = Played::new(&lines, Side::Client, settings);
    played.get(r#"{"data":{"text":"other"},"text":"b"}"#);
    played.get(r#"{"type":"PING"}"#);
    assert_eq!(played.found(), [""; 0]);
    played.get(r#"{"text":"c"}"#);
    assert_eq!(played.found().len(), 1);
}

#[test]
fn frames_can_be_changed_before_they_are_played() {
    let lines = [
        c(r#"{"from":"0xaaaaaaa1","to":"0xbbbbbbb1","signature":"abc"}"#),
        s(r#"{"who":"0xaaaaaaa1","me":"0xbbbbbbb1"}"#),
    ];
    let recording = Recording::parse(&lines.concat()).unwrap();
    let playback = Playback::new(recording, Side::Client, Settings::default())
        .with_bound("0xbbbbbbb1", "0xddddddd1")
        .with_edit(|text| {
            Some(
                text.replace("0xaaaaaaa1", "0xccccccc1")
                    .replace("abc", "xyz"),
            )
        });
    let now = Instant::now();
    let replay = playback.connection(0, now).unwrap();
    let mut played = Played { replay, now };
    assert_eq!(
        played.sent(),
        [r#"{"from":"0xccccccc1","to":"0xddddddd1","signature":"xyz"}"#]
    );
    played.get(r#"{"who":"0xccccccc1","me":"0xddddddd1"}"#);
    assert_eq!(played.found(), [""; 0]);
}

#[test]
fn what_is_no_json_is_compared_as_it_is() {
    let mut played = Played::server(&[c("nonsense {"), s("too {")]);
    played.get("nonsense {");
    assert_eq!(played.sent(), ["too {"]);
    let mut played = Played::server(&[c("nonsense {"), s("too {")]);
    played.get("{\u{7}");
    assert_eq!(
        played.found(),
        [
            "line 1, connection 1: a frame differs\n  recorded \"nonsense {\"\n  got      \"{\\u{7}\""
        ]
    );
}

#[test]
fn connections_wait_for_each_other() {
    let line = |conn, from, text| line(0, conn, from, text);
    let lines = [
        line(1, Side::Server, "[1]"),
        line(2, Side::Server, "[2]"),
        line(1, Side::Client, "[3]"),
    ];
    let recording = Recording::parse(&lines.concat()).unwrap();
    let playback = Playback::new(recording, Side::Client, Settings::default());
    let now = Instant::now();
    assert_eq!(playback.turn(0, now), Ok(()));
    assert!(playback.turn(1, now).is_err());
    let mut first = playback.connection(0, now).unwrap();
    first.handle_message(Incoming::Text("[1]"), now);
    assert_eq!(first.poll_transmit(), None);
    assert_eq!(playback.turn(1, now), Ok(()));
    let mut second = playback.connection(1, now).unwrap();
    second.handle_message(Incoming::Text("[2]"), now);
    let later = first.poll_timeout().unwrap();
    first.handle_timeout(later);
    assert_eq!(first.poll_transmit(), Some(Outgoing::Text("[3]".into())));
}

#[test]
fn a_replay_keeps_the_rules_of_machines() {
    let lines = [c("[]"), s("{}"), s("[]")];
    let nasty = conformance::nasty_texts();
    let texts: Vec<_> = nasty.iter().map(String::as_str).collect();
    let settings = Settings::default().with_keep_going(true);
    let mut played = Played::new(&lines, Side::Client, settings);
    conformance::early_timeout_is_a_no_op(&mut played.replay, played.now);
    conformance::any_text_is_survived(&mut played.replay, &texts, played.now);
    conformance::closed_is_inert(&mut played.replay, &texts, played.now);
}

#[test]
fn a_recording_is_read_with_its_heads() {
    let lines = [
        r#"{"at":0,"conn":1,"dir":"c2s","kind":"http","data":"POST /v1/x?a HTTP/1.1\r\nhost: h\r\n\r\n"}"#,
        r#"{"at":0,"conn":1,"dir":"c2s","kind":"body","data":"{}"}"#,
        r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 100 Continue\r\n\r\n"}"#,
        r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"}"#,
        r#"{"at":0,"conn":1,"dir":"s2c","kind":"body","data":"ab"}"#,
        r#"{"at":0,"conn":1,"dir":"s2c","kind":"body","data":"c"}"#,
        r#"{"at":0,"conn":2,"dir":"c2s","kind":"http","data":"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"}"#,
        r#"{"at":0,"conn":2,"dir":"s2c","kind":"http","data":"HTTP/1.1 401 No\r\n\r\nno"}"#,
    ];
    let recording = Recording::parse(&lines.join("\n")).unwrap();
    let [plain, refused] = &recording.connections[..] else {
        panic!("{recording:?}")
    };
    assert_eq!((plain.path.as_str(), plain.is_plain), ("/v1/x?a", true));
    assert_eq!((plain.status(), plain.body_of_request()), (Some(200), "{}"));
    assert_eq!(plain.answer_header("x"), Some("y"));
    assert_eq!((plain.steps.len(), plain.steps[0].line), (1, 5));
    assert!(refused.is_refused() && refused.steps.is_empty());
    assert_eq!(
        (refused.line, refused.header("upgrade")),
        (7, Some("websocket"))
    );
}

#[test]
fn the_end_of_an_answer_waits_for_no_other_connection() {
    let lines = [
        r#"{"at":0,"conn":1,"dir":"c2s","kind":"http","data":"GET /v1/x HTTP/1.1\r\n\r\n"}"#,
        r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"}"#,
        r#"{"at":0,"conn":2,"dir":"c2s","kind":"open","data":"/ws"}"#,
        r#"{"at":0,"conn":1,"dir":"s2c","kind":"eof"}"#,
        r#"{"at":0,"conn":2,"dir":"s2c","kind":"text","data":"{}"}"#,
    ];
    // Whether it was recorded or not.
    for lines in [&lines[..], &lines[..3]] {
        let recording = Recording::parse(&lines.join("\n")).unwrap();
        let playback = Playback::new(recording, Side::Server, Settings::default());
        let mut first = playback.connection(0, Instant::now()).unwrap();
        assert_eq!(first.poll_transmit(), Some(Outgoing::Text("ab".into())));
        first.handle_timeout(first.poll_timeout().unwrap());
        let end = Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, ""));
        assert_eq!(first.poll_transmit(), Some(end));
    }
}

#[cfg(feature = "tokio")]
mod over_a_transport {
    use futures_util::{SinkExt as _, StreamExt as _};

    use super::*;
    use crate::net::{Dialer as _, Message, mem};

    async fn echo(mut listener: mem::MemListener, changed: bool) {
        while let Some(mut line) = listener.accept().await {
            while let Some(Ok(message)) = line.next().await {
                if let Message::Text(text) = message {
                    let text = match changed {
                        true => text.as_str().replace('a', "b").into(),
                        false => text,
                    };
                    line.send(Outgoing::Text(text)).await.unwrap();
                }
            }
        }
    }

    fn recording() -> String {
        let one = [c(r#"["a"]"#), s(r#"["a"]"#), c("1000")];
        let two = [
            line(0, 2, Side::Client, "[2]"),
            line(0, 2, Side::Server, "[2]"),
        ];
        [one.concat(), two.concat()].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_as_recorded_passes() {
        let (dialer, listener) = mem::listen(16);
        tokio::spawn(echo(listener, false));
        replay(&recording()).client(dialer).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_fails() {
        let (dialer, listener) = mem::listen(16);
        tokio::spawn(echo(listener, true));
        let text = recording();
        let failed = tokio::spawn(replay(&text).client(dialer)).await;
        let panic = failed.unwrap_err().into_panic();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("[0]: recorded \"a\", got \"b\""), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_come_back_fails() {
        let (dialer, listener) = mem::listen(16);
        let text = recording();
        let played = tokio::spawn(replay(&text).server(listener));
        let mut line = dialer.dial().await.unwrap();
        line.send(Outgoing::Text(r#"["a"]"#.into())).await.unwrap();
        assert!(line.next().await.is_some());
        let close = CloseFrame::new(1000, "");
        line.send(Outgoing::Close(close)).await.unwrap();
        assert!(line.next().await.is_some());
        let panic = played.await.unwrap_err().into_panic();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(
            text.contains("connection 2: a connection does not come"),
            "{text}"
        );
    }
}
