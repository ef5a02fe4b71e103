//! The pages of the guide: the protocol that they are written with, and how long they are.

use std::fs;
use std::path::Path;

use rpc_core::net::server::{HttpConfig, Server as Listener};
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{LinkConfig, LinkState, link, mem};
use rpc_core::testing::conformance::{self, Calls};
use rpc_core::testing::{Pair, sim};

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
            server.outbox.json(&Frame { id, n: 2 * n }).unwrap();
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
fn the_machines_of_the_guide_keep_the_rules() {
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
fn every_call_of_the_guide_ends_once_over_random_schedules() {
    sim::run(200, |rng| {
        conformance::every_call_ends_once(&mut Doubled::default(), rng, 60, Instant::now())
    });
}

#[tokio::test]
async fn the_protocol_of_the_guide_works_over_a_websocket() {
    let listener = Listener::bind("127.0.0.1:0", HttpConfig::default());
    let listener = listener.await.unwrap();
    let url = format!("ws://{}", listener.local_addr());
    let handle = listener.shutdown_handle();
    let server = tokio::spawn(listener.run(|accepted| serve(accepted.socket)));

    let dialer = WsDialer::new(&url).unwrap();
    let (link, _events, connection) = link::open(Doubling, dialer, LinkConfig::default());
    tokio::spawn(connection.run());
    assert_eq!(link.ready().await, Ok(1));
    let answers = [1, 2, 3].map(|n| link.call(move |client, now| client.double(n, now)));
    let answers = futures_util::future::join_all(answers).await;
    assert_eq!(answers, [Ok(2), Ok(4), Ok(6)]);

    link.close();
    assert_eq!(link.closed().await, CloseReason::Local);
    assert!(matches!(link.state(), LinkState::Closed { .. }));
    handle.drain(Duration::from_secs(10)).await;
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_lost_is_not_sent_again() {
    let (dialer, mut listener) = mem::listen(16);
    let (link, _events, connection) = link::open(Doubling, dialer, LinkConfig::default());
    tokio::spawn(connection.run());
    let call = |n| {
        let link = link.clone();
        tokio::spawn(async move {
            link.ready().await.unwrap();
            link.call(move |client, now| client.double(n, now)).await
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
fn the_protocol_of_the_guide_has_at_most_a_hundred_lines() {
    let (_, code) = pages()
        .into_iter()
        .find(|(name, _)| name == "doubling.inc")
        .unwrap();
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(lines.count() <= 100);
    assert!(code.lines().all(|line| line.len() <= 100));
}

#[test]
fn every_page_is_short_starts_alike_and_says_what_keeps_it() {
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
        let lines = text.lines().count();
        assert!((50..=150).contains(&lines), "{name}: {lines} lines");
        assert!(text.starts_with("# "), "{name}: no title");
        assert!(text.contains("\n## Kept by\n"), "{name}: no tests");
        let fences = text.lines().filter(|line| line.starts_with("```"));
        assert!(
            fences.clone().all(|fence| fence == "```"),
            "{name}: an example that does not run"
        );
        assert!(fences.count() % 2 == 0, "{name}: an example without an end");
        assert!(index.contains(&format!("| [`{page}`] |")), "{name}: listed");
    }
    assert!(found >= 8, "only {found} pages");
}
