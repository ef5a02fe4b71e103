//! Snek's nodes on a NATS server: what only a real one shows.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_core::net::LinkEvent;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::sync::Mutex;
use snek_proto::client::ClientEvent;
use snek_proto::frame::Final;
use switchboard_testing::nats::NatsServer;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cluster::{Member, client, login, message, messages, node_at, options, sees};

async fn node(server: &NatsServer) -> Member<()> {
    let mut config = NatsConfig::new(&server.url());
    config.timeout = Duration::from_secs(1);
    node_at(nats::connect(config).await.unwrap(), (), options()).await
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_restarted_nats_loses_and_doubles_nothing() {
    let mut server = NatsServer::start();
    let nodes = [node(&server).await, node(&server).await];
    let general = nodes[0].backend.put_channel("general", "");
    general.await.unwrap();
    let (ann, mut ann_events) = login(&nodes[0], "ann").await;
    let (bob, mut bob_events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    let sending = tokio::spawn(async move {
        for number in 0..60 {
            let text = number.to_string();
            ann.send_message("general", &text, Final::Yes)
                .await
                .unwrap();
        }
        ann
    });
    for round in 0..3 {
        message(&mut bob_events).await;
        if round == 1 {
            server.kill();
        }
        server.restart();
    }
    let _ann = sending.await.unwrap();
    let own = messages(&mut ann_events, 60).await;
    let other = messages(&mut bob_events, 57).await;
    let all: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    assert_eq!(own, all);
    assert_eq!(other, all[3..]);
}

/// What a client has heard over one connection.
struct Session {
    name: String,
    from: Instant,
    until: Option<Instant>,
    received: Vec<(Instant, String)>,
}

/// What was said and acknowledged, and when, and all sessions.
#[derive(Default)]
struct Diary {
    said: Vec<(String, Instant, Instant)>,
    sessions: Vec<Session>,
}

/// A user who talks at a node, and comes back whenever the connection is lost.
async fn talk(member: Member<()>, name: String, diary: Arc<Mutex<Diary>>) {
    let mut number = 0;
    loop {
        let (client, mut events) = client(&member.dialer, &name, "secret");
        if client.ready().await.is_err() {
            sleep(Duration::from_millis(100)).await;
            continue;
        }
        let at = diary.lock().begin(&name);
        let hearing = async {
            while let Some(event) = events.next_link().await {
                if let LinkEvent::Event(ClientEvent::Message(message)) = event {
                    let received = (Instant::now(), message.message.to_string());
                    diary.lock().sessions[at].received.push(received);
                }
            }
        };
        let talking = async {
            loop {
                number += 1;
                let (text, from) = (format!("{name} {number}"), Instant::now());
                let sent = client.send_message("general", text.as_str(), Final::Yes);
                if sent.await.is_ok() {
                    diary.lock().said.push((text, from, Instant::now()));
                }
                sleep(Duration::from_millis(30)).await;
            }
        };
        tokio::select! {
            () = hearing => {}
            () = talking => {}
        }
        diary.lock().sessions[at].until = Some(Instant::now());
    }
}

impl Diary {
    fn begin(&mut self, name: &str) -> usize {
        self.sessions.push(Session {
            name: name.to_owned(),
            from: Instant::now(),
            until: None,
            received: Vec::new(),
        });
        self.sessions.len() - 1
    }

    /// Checks that all hear the same, in one order and once, and nothing from before.
    fn check(&self) {
        /// How long a message may take: until the next comparison, and what that reads.
        const LATE: Duration = Duration::from_secs(7);
        let said: HashMap<&String, _> = self.said.iter().map(|it| (&it.0, it)).collect();
        for session in &self.sessions {
            let (name, from) = (&session.name, session.from);
            let mut places = HashMap::new();
            for (place, (at, text)) in session.received.iter().enumerate() {
                assert_eq!(
                    places.insert(text, place),
                    None,
                    "{name} hears {text} twice"
                );
                let acknowledged = said.get(text).map_or(*at, |it| it.2);
                assert!(
                    acknowledged + LATE > from,
                    "{name} hears {text}, which is old"
                );
            }
            for (text, sent, acknowledged) in &self.said {
                let is_there =
                    *sent > from && session.until.is_none_or(|at| at > *acknowledged + LATE);
                assert!(
                    !is_there || places.contains_key(text),
                    "{name} misses {text}"
                );
            }
            for other in &self.sessions {
                let common = other.received.iter().filter_map(|(_, it)| places.get(it));
                assert!(common.is_sorted(), "{name} and {} differ", other.name);
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn whatever_nats_loses_all_hear_the_same_and_nothing_from_before() {
    let losses = std::env::var("SIM_SCHEDULES").ok();
    let losses = losses.and_then(|it| it.parse().ok()).unwrap_or(4);
    let mut server = NatsServer::start();
    let (data, copy) = (
        server.folder().join("jetstream"),
        server.folder().join("copy"),
    );
    let (diary, mut talking) = (Arc::new(Mutex::new(Diary::default())), JoinSet::new());
    let mut backends = Vec::new();
    for name in ["ann", "bob", "cid"] {
        let member = node(&server).await;
        member.backend.put_channel("general", "").await.unwrap();
        backends.push(member.backend.clone());
        talking.spawn(talk(member, name.to_owned(), Arc::clone(&diary)));
    }
    sleep(Duration::from_secs(2)).await;
    for loss in 0..losses {
        match loss % 4 {
            // The later one is of a copy that is older than all logins.
            1 | 3 => {
                server.kill();
                if loss % 4 == 1 {
                    copy_folder(&data, &copy);
                } else {
                    std::fs::remove_dir_all(&data).unwrap();
                    copy_folder(&copy, &data);
                }
                server.restart();
            }
            0 => server.delete_stream("switchboard_snek"),
            _ => server.restart_empty(),
        }
        sleep(Duration::from_secs(8)).await;
        assert!(backends.iter().all(|it| it.ready().is_ok()), "{loss}");
    }
    sleep(Duration::from_secs(8)).await;
    talking.abort_all();
    let diary = diary.lock();
    let received: usize = diary.sessions.iter().map(|it| it.received.len()).sum();
    println!(
        "{} said, {received} heard, {} sessions",
        diary.said.len(),
        diary.sessions.len()
    );
    diary.check();
    for backend in backends {
        assert_eq!(backend.ready(), Ok(()));
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_full_nats_refuses_with_a_clear_error() {
    let config = "jetstream { max_file_store: 300KB }";
    let server = NatsServer::start_with(config, &[]);
    let node = node(&server).await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, _events) = login(&node, "ann").await;
    sees(&ann, "general").await;
    for size in [50_000, 500] {
        let text = "x".repeat(size);
        let mut refused = None;
        for _ in 0..300 {
            if let Err(error) = ann.send_message("general", text.as_str(), Final::Yes).await {
                refused = Some(error);
                break;
            }
        }
        let error = refused.expect("an answer that refuses").to_string();
        assert!(error.contains("no room"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn the_documented_permissions_are_enough() {
    let publish = ["switchboard.>", "$JS.API.>", "$JS.FC.>"];
    let user = format!(
        "user: ann, password: x, permissions: {{ publish: {publish:?}, subscribe: \"switchboard.>\" }}"
    );
    let server =
        NatsServer::start_with(&format!("authorization {{ users: [ {{ {user} }} ] }}"), &[]);
    let config = NatsConfig::new(&format!("nats://ann:x@{}", server.address()));
    let node = node_at(nats::connect(config).await.unwrap(), (), options()).await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, _events) = login(&node, "ann").await;
    let (bob, mut events) = login(&node, "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    ann.send_message("general", "hi", Final::Yes).await.unwrap();
    assert_eq!(message(&mut events).await, "hi");
    assert!(node.backend.is_online("ann").await.unwrap());
    let channel = node.backend.direct("ann", "bob").await.unwrap();
    sees(&ann, channel.as_str()).await;
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
