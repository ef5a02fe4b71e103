//! The pages of the guide: the protocol that they are written with, and how long they are.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::Delivery;
use rpc_core::net::server::{Accepted, HttpConfig};
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer as _, LinkConfig, LinkEvent, LinkState, Message, mem};
use rpc_core::testing::Pair;
use rpc_core::testing::conformance::{self, Calls};
use switchboard_testing::sim;

use crate::server::Server as Listener;

include!("../../src/guide/doubling.inc");

/// The server works on the oldest question that is open, whichever is asked for.
#[derive(Default)]
struct Doubled {
    open: VecDeque<Frame>,
}

impl Calls for Doubled {
    type Client = Client;
    type Server = Server;
    type Id = CallId;

    fn connect(&mut self, now: Instant, entropy: u64) -> Pair<Client, Server> {
        self.open.clear();
        Pair::new(Client::new(entropy, now), Server::default(), now)
    }

    fn call(&mut self, client: &mut Client, now: Instant) -> Option<CallId> {
        client.double(21, now).ok()
    }

    fn answer(&mut self, server: &mut Server, index: u64, _: Instant) {
        let index = usize::try_from(index).unwrap_or(0) % self.open.len().max(1);
        if let Some(Frame { id, n }) = self.open.remove(index) {
            server.core.send_json(&Frame { id, n: 2 * n }).unwrap();
        }
    }

    fn cancel(&mut self, client: &mut Client, id: CallId, now: Instant) {
        Doubling::cancel(client, id, now);
    }

    fn server_event(&mut self, asked: Frame) {
        self.open.push_back(asked);
    }

    fn ended(&mut self, event: &Event) -> Option<CallId> {
        match event {
            Event::Answer(id, _) => Some(*id),
            _ => None,
        }
    }
}

#[test]
fn the_machines_of_the_guide_conform() {
    let nasty = conformance::nasty_texts();
    let texts: Vec<_> = nasty.iter().map(String::as_str).collect();
    let now = Instant::now();
    let mut client = Client::new(7, now);
    client.double(21, now).unwrap();
    conformance::early_timeout_is_a_no_op(&mut client, now);
    conformance::any_text_is_survived(&mut client, &texts, now);
    conformance::timeouts_make_progress(&mut client, 10);
    conformance::closed_is_inert(&mut client, &texts, now);
    assert_eq!(client.double(21, now), Err(Refused::Closed));
    let mut server = Server::default();
    conformance::any_text_is_survived(&mut server, &texts, now);
    conformance::closed_is_inert(&mut server, &texts, now);
}

#[test]
fn every_call_of_the_guide_ends_once_under_random_faults() {
    sim::run(200, |rng| {
        conformance::every_call_ends_once(&mut Doubled::default(), rng, 60, Instant::now())
    });
}

#[tokio::test]
async fn the_protocol_of_the_guide_works_over_a_websocket() {
    let (tell, news) = watch::channel(0);
    let handler =
        move |accepted: Accepted| serve(accepted.socket, news.clone(), accepted.cancellation);
    let listener = Listener::bind("127.0.0.1:0", handler, HttpConfig::default());
    let listener = listener.await.unwrap();
    let url = format!("ws://{}", listener.local_addr());
    let handle = listener.handle();
    let server = tokio::spawn(listener.run());

    let dialer = WsDialer::new(&url).unwrap();
    let (link, mut events, connection) =
        rpc_core::net::open(Doubling, dialer, LinkConfig::default());
    tokio::spawn(connection.run());
    assert_eq!(link.ready().await, Ok(1));
    let answers =
        [1, 2, 3].map(|n| link.call_with("double", move |client, now| client.double(n, now)));
    let answers = futures_util::future::join_all(answers).await;
    assert_eq!(answers, [Ok(2), Ok(4), Ok(6)]);
    tell.send(7).unwrap();
    while events.next_link().await != Some(LinkEvent::Event(7)) {
        assert!(link.state().is_ready(), "the news got lost");
    }

    link.close();
    assert_eq!(link.closed().await, CloseReason::Local);
    assert!(matches!(link.state(), LinkState::Closed { .. }));
    handle.drain(Duration::from_secs(10)).await;
    server.await.unwrap();
}

#[tokio::test]
async fn the_server_of_the_guide_drains() {
    let (_tell, news) = watch::channel(0);
    let handler =
        move |accepted: Accepted| serve(accepted.socket, news.clone(), accepted.cancellation);
    let listener = Listener::bind("127.0.0.1:0", handler, HttpConfig::default());
    let listener = listener.await.unwrap();
    let url = format!("ws://{}", listener.local_addr());
    let handle = listener.handle();
    tokio::spawn(listener.run());

    let mut line = WsDialer::new(&url).unwrap().dial().await.unwrap();
    line.send(Outgoing::Text(r#"{"id":7,"n":21}"#.into()))
        .await
        .unwrap();
    let drained = tokio::spawn(async move { handle.drain(Duration::from_millis(300)).await });
    let mut received = Vec::new();
    while let Some(Ok(message)) = line.next().await {
        received.push(message);
    }
    let goodbye = CloseFrame::new(CloseFrame::GOING_AWAY, "drain");
    assert_eq!(received.pop(), Some(Message::Close(Some(goodbye))));
    assert!(received.len() <= 1, "{received:?}");
    let report = drained.await.unwrap();
    assert_eq!((report.finished, report.aborted), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn received_requests_are_answered_before_the_close() {
    let (mut line, there) = mem::duplex(16);
    for n in 1..=3 {
        let text = format!(r#"{{"id":"{n}","n":{n}}}"#);
        line.send(Outgoing::Text(text.into())).await.unwrap();
    }
    let (_tell, news) = watch::channel(0);
    let (end, stop) = Cancellation::new();
    end.cancel();
    let server = tokio::spawn(serve(there, news, stop));
    for n in 1..=3 {
        let text = format!(r#"{{"id":"{n}","n":{}}}"#, 2 * n);
        let answer = line.next().await.unwrap().unwrap();
        assert_eq!(answer, Message::Text(text.into()));
    }
    let end = line.next().await.unwrap().unwrap();
    assert!(matches!(end, Message::Close(Some(frame)) if frame.code == 1001));
    drop(line);
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_is_not_resent() {
    let (dialer, mut listener) = mem::listen(16);
    let (link, _events, connection) = rpc_core::net::open(Doubling, dialer, LinkConfig::default());
    tokio::spawn(connection.run());
    let call = |n| {
        let link = link.clone();
        tokio::spawn(async move {
            link.ready().await.unwrap();
            link.call_with("double", move |client, now| client.double(n, now))
                .await
        })
    };

    let line = listener.accept().await.unwrap();
    let cutter = line.cutter();
    let mut server = Driver::new(Server::default(), line);
    let lost = call(1);
    assert_eq!(server.next().await.map(|asked| asked.n), Some(1));
    cutter.cut();
    let error = lost.await.unwrap().unwrap_err();
    assert_eq!(error.delivery(), Delivery::Unknown);

    // The first thing that is heard over the next line is the next call.
    let mut server = Driver::new(Server::default(), listener.accept().await.unwrap());
    let _next = call(2);
    assert_eq!(server.next().await.map(|asked| asked.n), Some(2));
}

/// The pages, by name.
fn pages() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide");
    let mut pages: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    pages.sort();
    pages
}

#[test]
fn the_page_shows_the_program_that_is_tested() {
    let code = include_str!("../../src/guide/doubling.inc");
    let page = include_str!("../../src/guide/adding_a_protocol.md");
    assert!(page.contains(&format!("\n```\n{code}\n#[tokio::main")));
}

#[test]
fn the_protocol_of_the_guide_is_short() {
    let (_, code) = pages()
        .into_iter()
        .find(|(name, _)| name == "doubling.inc")
        .unwrap();
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(lines.count() <= 120);
    assert!(code.lines().all(|line| line.len() <= 100));
}

#[test]
fn every_guide_page_is_short_and_lists_its_promises() {
    let mut found = 0;
    let (_, index) = pages()
        .into_iter()
        .find(|(name, _)| name == "mod.rs")
        .unwrap();
    for (name, text) in pages() {
        let Some(page) = name.strip_suffix(".md") else {
            continue;
        };
        found += 1;
        // The one whole program has a bound of its own.
        let whole = include_str!("../../src/guide/doubling.inc");
        let lines = text.replace(whole, "").lines().count();
        assert!((30..=150).contains(&lines), "{name}: {lines} lines");
        assert!(text.starts_with("# "), "{name}: no title");
        assert!(text.contains("\n## Promises\n"), "{name}: no promises");
        let fences = text.lines().filter(|line| line.starts_with("```"));
        assert!(
            fences
                .clone()
                .all(|fence| fence == "```" || fence == "```toml"),
            "{name}: an example that does not run"
        );
        assert!(fences.count() % 2 == 0, "{name}: an example without an end");
        assert!(index.contains(&format!("| [`{page}`] |")), "{name}: listed");
    }
    assert!(found >= 8, "only {found} pages");
}
