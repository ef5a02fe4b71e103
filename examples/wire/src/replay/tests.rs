//! Tests of replays: what is bound, what differs, and when.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};

use super::*;
use crate::play::{BoxStream, Client, Dial, Peer, Settings, Started, Variables};
use crate::transcript::{Entry, Kind};
use async_trait::async_trait;
use rpc_core::net::ws::{WsConfig, WsDialer, WsStream};
use rpc_core::net::{DialError, Message};
use rpc_core::testing::Side;
use rpc_core::{CloseFrame, Outgoing};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

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

fn options() -> Options {
    Options {
        timeout: Duration::from_secs(5),
        ..Options::default()
    }
}

/// Bytes between the sides.
const SIZE: usize = 512;

/// The server that is dialled.
struct Dialled(mpsc::Sender<DuplexStream>);

#[async_trait]
impl Dial for Dialled {
    async fn dial(&self) -> Result<BoxStream, DialError> {
        let (here, there) = duplex(SIZE);
        let sent = self.0.send(there).await;
        sent.map_err(|_| DialError::Exhausted)?;
        Ok(Box::new(here))
    }
}

/// The clients that dial.
struct Accepted(Mutex<Option<mpsc::Receiver<BoxStream>>>);

#[async_trait]
impl Client for Accepted {
    async fn start(&self, _: &str, _: &Variables) -> std::io::Result<Started> {
        Ok(Started {
            connections: self.0.lock().unwrap().take().unwrap(),
            ended: Box::pin(std::future::pending()),
            guards: None,
        })
    }
}

/// Replays a recording to this peer.
async fn replay(
    lines: String,
    peer: Peer,
    (options, bound, edit): (Options, &[(String, String)], Option<Edit>),
    report: impl FnMut(Difference),
) -> usize {
    let plays = match peer {
        Peer::Server(..) => Side::Client,
        Peer::Client(_) => Side::Server,
    };
    let settings = Settings {
        timeout: options.timeout,
        quiet: Duration::from_secs(1),
        start: Duration::from_secs(60),
        jobs: 1,
        variables: Variables::of_recording(bound),
        pace: Arc::default(),
    };
    let suite = read(&lines, plays, &options).unwrap();
    let played = run(&suite, &peer, &settings, (&options, edit), report);
    played.await.unwrap()
}

fn server(sender: mpsc::Sender<DuplexStream>) -> Peer {
    Peer::Server(Arc::new(Dialled(sender)), "ws://localhost/".to_owned())
}

async fn accept(receiver: &mut mpsc::Receiver<DuplexStream>) -> WsStream<DuplexStream> {
    let line = receiver.recv().await.unwrap();
    let accepted = WsStream::accept(line, &WsConfig::default()).await;
    accepted.unwrap()
}

/// The other side of the replay of one connection.
struct Played {
    line: Option<WsStream<DuplexStream>>,
    found: Arc<Mutex<Vec<String>>>,
}

impl Played {
    async fn new(lines: &[String], plays: Side, options: Options) -> Self {
        Self::of(lines, plays, (options, &[], None)).await
    }

    async fn of(
        lines: &[String],
        plays: Side,
        (options, bound, edit): (Options, &[(&str, &str)], Option<Edit>),
    ) -> Self {
        let found = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&found);
        let report = move |it: Difference| list.lock().unwrap().push(it.to_string());
        let own = |(was, is): &(&str, &str)| ((*was).to_owned(), (*is).to_owned());
        let (lines, bound): (_, Vec<_>) = (lines.concat(), bound.iter().map(own).collect());
        let play = async move |peer| replay(lines, peer, (options, &bound, edit), report).await;
        let line = if plays == Side::Client {
            let (sender, mut receiver) = mpsc::channel(16);
            tokio::spawn(async move { play(server(sender)).await });
            accept(&mut receiver).await
        } else {
            let (sender, receiver) = mpsc::channel(16);
            let clients = Peer::Client(Arc::new(Accepted(Mutex::new(Some(receiver)))));
            tokio::spawn(async move { play(clients).await });
            let (here, there) = duplex(SIZE);
            sender.send(Box::new(there) as BoxStream).await.unwrap();
            let dialer = WsDialer::new("ws://localhost/").unwrap();
            dialer.upgrade(here).await.unwrap()
        };
        Self {
            line: Some(line),
            found,
        }
    }

    fn line(&mut self) -> &mut WsStream<DuplexStream> {
        self.line.as_mut().unwrap()
    }

    async fn client(lines: &[String]) -> Self {
        Self::new(lines, Side::Client, options()).await
    }

    async fn server(lines: &[String]) -> Self {
        Self::new(lines, Side::Server, options()).await
    }

    async fn get(&mut self, text: &str) {
        let _ = self.line().send(Outgoing::Text(text.into())).await;
    }

    /// What is played until now.
    async fn sent(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Ok(Some(Ok(message))) =
            timeout(Duration::from_millis(1), self.line().next()).await
        {
            sent.push(match message {
                Message::Text(text) => text.as_str().to_owned(),
                Message::Close(frame) => frame.unwrap().code.to_string(),
                other => format!("{other:?}"),
            });
        }
        sent
    }

    async fn found(&mut self) -> Vec<String> {
        // The next frame may say why one differs.
        sleep(Duration::from_millis(150)).await;
        std::mem::take(&mut self.found.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn no_difference_shows_a_secret_wherever_it_stands() {
    for (recorded, got) in [
        (
            r#"{"method":"login","args":["ann","hunter2"],"callId":"1"}"#,
            r#"{"method":"login","args":["ann","hunter3"],"callId":"1"}"#,
        ),
        (
            r#"{"auth":{"value":"hunter2"},"text":"a"}"#,
            r#"{"auth":{"value":"hunter3"},"text":"password=hunter4"}"#,
        ),
    ] {
        let mut played = Played::server(&[c(recorded)]).await;
        played.get(got).await;
        let found = played.found().await.concat();
        assert!(
            found.contains("***") && !found.contains("hunter"),
            "{found}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_not_taken_in_time_is_reported() {
    let lines: Vec<_> = (0..20)
        .map(|id| c(&format!(r#"{{"id":"{id:04000}"}}"#)))
        .collect();
    let mut played = Played::client(&lines).await;
    sleep(Duration::from_secs(6)).await;
    let found = played.found().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("does not take this frame"), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_frame_waits_for_what_is_recorded_before_it() {
    let lines = [c(r#"{"id":"1"}"#), s(r#"{"id":"1","ok":1}"#), c("[]")];
    let mut played = Played::client(&lines).await;
    assert_eq!(played.sent().await, [r#"{"id":"1"}"#]);
    played.get(r#"{ "ok":1.0, "id":"1" }"#).await;
    assert_eq!(played.sent().await, ["[]"]);
    sleep(Duration::from_secs(9)).await;
    assert_eq!(played.sent().await, ["1000"]);
    assert_eq!(played.found().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn values_of_the_other_side_replace_the_recorded_ones() {
    let lines = [
        s(r#"{"session":"sess_a1b2c3","callId":"1","at":"2026-01-01T00:00:00Z"}"#),
        c(
            r#"{"session":"sess_a1b2c3", "path":"/of/sess_a1b2c3/x","other":"sess_a1b2c33","n":"1","callId":"1"}"#,
        ),
        s(r#"{"note":"gone: sess_a1b2c3"}"#),
    ];
    let mut played = Played::client(&lines).await;
    played
        .get(r#"{"session":"sess_z9","callId":"7","at":"2027-05-05T00:00:00Z"}"#)
        .await;
    assert_eq!(
        played.sent().await,
        [
            r#"{"session":"sess_z9", "path":"/of/sess_z9/x","other":"sess_a1b2c33","n":"1","callId":"7"}"#
        ]
    );
    played.get(r#"{"note":"gone: sess_z9"}"#).await;
    assert_eq!(played.found().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_bound_value_stays_bound() {
    let lines = [
        c(r#"{"id":"call_12345"}"#),
        c(r#"{"id":"call_67890"}"#),
        s(r#"{"id":"call_12345","token":"a"}"#),
        s(r#"{"id":"call_67890","token":"b","last":true}"#),
    ];
    let mut played = Played::client(&lines).await;
    played.get(r#"{"id":"call_67890","token":"a"}"#).await;
    let expected = "line 3, connection 1: a frame differs\n  \
                    id: recorded \"call_12345\", got \"call_67890\"";
    assert_eq!(played.found().await, [expected]);
    let mut played = Played::client(&lines).await;
    played.get(r#"{"id":"call_12345","token":"hunter2"}"#).await;
    let second = r#"{"id":"call_67890","token":"hunter2","last":true}"#;
    played.get(second).await;
    let found = played.found().await;
    assert!(
        found[0].contains("token: recorded ***, got ***"),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_difference_names_line_and_members() {
    let lines = [
        c(r#"{"id":1}"#),
        s(r#"{"id":1,"event":"text","data":{"items":["a","b"],"gone":{}}}"#),
        c("[]"),
    ];
    let mut played = Played::client(&lines).await;
    played.sent().await;
    let other = r#"{"id":1,"event":"text","data":{"items":["a","c"],"new":null}}"#;
    played.get(other).await;
    let expected = "line 2, connection 1: a frame differs\n  \
                    data.items[1]: recorded \"b\", got \"c\"\n  \
                    data.gone: recorded {}, got nothing\n  \
                    data.new: recorded nothing, got null";
    assert_eq!(played.found().await, [expected]);
}

#[tokio::test(start_paused = true)]
async fn all_differences_are_found() {
    let lines = [
        s(r#"{"type":"a","n":1}"#),
        s(r#"{"type":"b"}"#),
        s(r#"{"type":"c"}"#),
        s(r#"{"type":"d"}"#),
        c("[]"),
        s("4001"),
    ];
    let mut played = Played::client(&lines).await;
    for text in [
        r#"{"type":"a","n":2}"#,
        r#"{"type":"x"}"#,
        r#"{"type":"c"}"#,
    ] {
        played.get(text).await;
    }
    assert_eq!(played.sent().await, [""; 0]);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(played.sent().await, ["[]"]);
    let bye = CloseFrame::new(1000, "bye");
    played.line().send(Outgoing::Close(bye)).await.unwrap();
    let found = played.found().await;
    let firsts: Vec<_> = found.iter().map(|it| it.lines().next().unwrap()).collect();
    assert_eq!(
        firsts,
        [
            "line 1, connection 1: a frame differs",
            "line 2, connection 1: another frame comes",
            "line 2, connection 1: line 2 was deleted: one recorded later comes",
            "line 4, connection 1: a frame does not come",
            "line 6, connection 1: the connection ends in another way",
        ]
    );
    assert!(
        found[4].contains("recorded Close 4001\n  got      Close 1000 \"bye\""),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_frame_too_many_or_elsewhere_is_one_difference() {
    let recorded = ["[1]", "[2]", "[3]", "[4]", "[5]"];
    for (comes, expected) in [
        (
            &["[1]", "[2]", "[9]", "[3]", "[4]", "[5]"][..],
            "line 3, connection 1: a frame that is not recorded comes",
        ),
        (
            &["[4]", "[1]", "[2]", "[3]", "[5]"],
            "line 4, connection 1: a frame comes too early: before line 1",
        ),
        (
            &["[1]", "[3]", "[4]", "[5]"],
            "line 2, connection 1: line 2 was deleted",
        ),
        (
            &["[1]", "[2]", "[9]", "[4]", "[5]"],
            "line 3, connection 1: a frame differs",
        ),
    ] {
        let mut played = Played::client(&recorded.map(s)).await;
        for text in comes {
            played.get(text).await;
        }
        let found = played.found().await;
        assert_eq!(found.len(), 1, "{comes:?}: {found:?}");
        assert!(found[0].starts_with(expected), "{comes:?}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_frame_that_does_not_come_the_next_ones_are_not_waited_for() {
    let lines = [
        c("[]"),
        s(r#"{"n":1}"#),
        s(r#"{"n":2}"#),
        s(r#"{"n":3}"#),
        c("[2]"),
        s(r#"{"n":4}"#),
    ];
    let mut played = Played::client(&lines).await;
    assert_eq!(played.sent().await, ["[]"]);
    sleep(Duration::from_secs(6)).await;
    let found = played.found().await;
    let firsts: Vec<_> = found.iter().map(|it| it.lines().next().unwrap()).collect();
    assert_eq!(
        firsts,
        [
            "line 2, connection 1: a frame does not come",
            "line 3, connection 1: a frame is missing, too: it was not waited for",
            "line 4, connection 1: a frame is missing, too: it was not waited for",
        ]
    );
    // What is sent may be answered again.
    assert_eq!(played.sent().await, ["[2]"]);
    played.get(r#"{"n":4}"#).await;
    assert_eq!(played.found().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_frame_may_take_the_recorded_time_and_the_timeout() {
    let lines = [c("[]"), line(20, 1, Side::Server, "[]")];
    let mut played = Played::client(&lines).await;
    sleep(Duration::from_secs(24)).await;
    assert_eq!(played.found().await, [""; 0]);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        played.found().await,
        ["line 2, connection 1: a frame does not come\n  recorded []\n  got      nothing"]
    );
}

#[tokio::test(start_paused = true)]
async fn ends_are_compared() {
    for (recorded, code, expected) in [
        (s("1000"), Some(1000), None),
        (s(""), None, None),
        (s("1000"), Some(1001), Some("ends in another way")),
        (s("1000"), None, Some("ends in another way")),
        (s(""), Some(1000), Some("ends in another way")),
        (s("[]"), None, Some("ends before it")),
        (c("1000"), Some(1000), Some("the other side ends")),
    ] {
        let mut played = Played::client(&[c("[]"), recorded.clone()]).await;
        played.sent().await;
        match code {
            Some(code) => {
                let close = Outgoing::Close(CloseFrame::new(code, ""));
                played.line().send(close).await.unwrap();
            }
            None => played.line = None,
        }
        let found = played.found().await;
        match expected {
            None => assert_eq!(found, [""; 0], "{recorded}"),
            Some(text) => assert!(found[0].contains(text), "{recorded}: {found:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_behind_all_that_is_recorded_is_found_before_the_close() {
    let lines = [c("[]"), s("[]"), c("1000"), s("1000")];
    let mut played = Played::client(&lines).await;
    played.get("[]").await;
    assert_eq!(played.sent().await, ["[]"]);
    sleep(Duration::from_millis(50)).await;
    played.get("[2]").await;
    let expected = "line 4, connection 1: another frame comes";
    assert!(played.found().await[0].starts_with(expected));
    let mut played = Played::client(&lines).await;
    played.get("[]").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(played.sent().await, ["[]", "1000"]);
}

#[tokio::test(start_paused = true)]
async fn tolerated_members_and_ignored_kinds_are_skipped() {
    let lines = [
        s(r#"{"type":"PING"}"#),
        s(r#"{"usage":{"n":1},"data":{"text":"a"},"text":"b"}"#),
    ];
    let options = Options {
        ignored: vec!["PING".to_owned()],
        tolerated: vec!["usage".to_owned(), "data.text".to_owned()],
        ..options()
    };
    let mut played = Played::new(&lines, Side::Client, options).await;
    played.get(r#"{"data":{"text":"other"},"text":"b"}"#).await;
    played.get(r#"{"type":"PING"}"#).await;
    played.get(r#"{"text":"c"}"#).await;
    let found = played.found().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("after all that is recorded"), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn frames_can_be_changed_before_they_are_played() {
    let lines = [
        c(r#"{"from":"0xaaaaaaa1","to":"0xbbbbbbb1","signature":"abc"}"#),
        s(r#"{"who":"0xaaaaaaa1","me":"0xbbbbbbb1"}"#),
    ];
    let edit: Edit = Box::new(|text| {
        let text = text.replace("0xaaaaaaa1", "0xccccccc1");
        Some(text.replace("abc", "xyz"))
    });
    let bound = [("0xbbbbbbb1", "0xddddddd1")];
    let mut played = Played::of(&lines, Side::Client, (options(), &bound, Some(edit))).await;
    assert_eq!(
        played.sent().await,
        [r#"{"from":"0xccccccc1","to":"0xddddddd1","signature":"xyz"}"#]
    );
    played
        .get(r#"{"who":"0xccccccc1","me":"0xddddddd1"}"#)
        .await;
    assert_eq!(played.found().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn text_that_is_not_json_is_compared_verbatim() {
    let mut played = Played::server(&[c("nonsense {"), s("too {")]).await;
    played.get("nonsense {").await;
    assert_eq!(played.sent().await, ["too {"]);
    let mut played = Played::server(&[c("nonsense {"), s("too {")]).await;
    played.get("{\u{7}").await;
    assert_eq!(
        played.found().await,
        [
            "line 1, connection 1: a frame differs\n  recorded \"nonsense {\"\n  got      \"{\\u{7}\""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn connections_wait_for_each_other() {
    let line = |conn, from, text| line(0, conn, from, text);
    let lines = [
        line(1, Side::Server, "[1]"),
        line(2, Side::Server, "[2]"),
        line(1, Side::Client, "[3]"),
    ];
    let (sender, mut receiver) = mpsc::channel(16);
    let lines = lines.concat();
    let played = tokio::spawn(async move {
        let report = |it| panic!("{it}");
        replay(lines, server(sender), (options(), &[], None), report).await;
    });
    let mut first = accept(&mut receiver).await;
    let no_second = timeout(Duration::from_secs(1), receiver.recv()).await;
    assert!(no_second.is_err());
    first.send(Outgoing::Text("[1]".into())).await.unwrap();
    let mut second = accept(&mut receiver).await;
    let no_third = timeout(Duration::from_secs(1), first.next()).await;
    assert!(no_third.is_err());
    second.send(Outgoing::Text("[2]".into())).await.unwrap();
    let third = first.next().await.unwrap().unwrap();
    assert_eq!(third, Message::Text("[3]".into()));
    drop((first, second));
    played.await.unwrap();
}
