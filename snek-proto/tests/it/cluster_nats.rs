//! Snek's nodes on a NATS server: what only a real one shows.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_core::net::LinkEvent;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::sync::Mutex;
use snek_proto::client::ClientEvent;
use snek_proto::frame::Final;
use snek_proto::net::ClusterBackend;
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

/// What a client has received over one connection.
struct Session {
    name: String,
    from: Instant,
    is_open: bool,
    received: Vec<(Instant, String)>,
}

/// A message that was acknowledged.
struct Sent {
    text: String,
    from: Instant,
    acknowledged: Instant,
}

/// What was sent and received, and when the stream was lost.
#[derive(Default)]
struct Diary {
    is_ended: bool,
    sent: Vec<Sent>,
    sessions: Vec<Session>,
    losses: Vec<(Instant, Instant)>,
}

/// A user who talks at a node until the end, and comes back whenever the connection is lost.
async fn talk(member: Member<()>, name: String, diary: Arc<Mutex<Diary>>) {
    let mut number = 0;
    loop {
        let (client, mut events) = client(&member.dialer, &name, "secret");
        if client.ready().await.is_err() {
            sleep(Duration::from_millis(100)).await;
            continue;
        }
        let at = diary.lock().begin(&name);
        let receiving = async {
            while let Some(event) = events.next_link().await {
                if let LinkEvent::Event(ClientEvent::Message(message)) = event {
                    let received = (Instant::now(), message.message.to_string());
                    diary.lock().sessions[at].received.push(received);
                }
            }
        };
        let talking = async {
            loop {
                if diary.lock().is_ended {
                    return pending::<()>().await;
                }
                number += 1;
                let (text, from) = (format!("{name} {number}"), Instant::now());
                let result = client.send_message("general", text.as_str(), Final::Yes);
                if result.await.is_ok() {
                    let acknowledged = Instant::now();
                    diary.lock().sent.push(Sent {
                        text,
                        from,
                        acknowledged,
                    });
                }
                sleep(Duration::from_millis(30)).await;
            }
        };
        tokio::select! {
            () = receiving => {}
            () = talking => {}
        }
        diary.lock().sessions[at].is_open = false;
    }
}

impl Diary {
    fn begin(&mut self, name: &str) -> usize {
        self.sessions.push(Session {
            name: name.to_owned(),
            from: Instant::now(),
            is_open: true,
            received: Vec::new(),
        });
        self.sessions.len() - 1
    }

    /// Returns a message that an open session should have received and has not.
    fn missing(&self) -> Option<(&str, &str)> {
        let open = self.sessions.iter().filter(|it| it.is_open);
        open.flat_map(|session| {
            let received: HashSet<_> = session.received.iter().map(|(_, text)| text).collect();
            let due = self.sent.iter().filter(|it| it.from > session.from);
            let missing = due.filter(move |it| !received.contains(&it.text));
            missing.map(|it| (session.name.as_str(), it.text.as_str()))
        })
        .next()
    }

    /// Checks that each session received a message once, in the order of all, and nothing from before it.
    ///
    /// Two senders whose messages were not acknowledged before a loss repeat them in an order of their own: those
    /// are not compared.
    fn check(&self) {
        /// How long a message may take: an older copy of the stream has older ones.
        const LATE: Duration = Duration::from_secs(7);
        let sent: HashMap<&str, _> = self.sent.iter().map(|it| (it.text.as_str(), it)).collect();
        let is_repeated = |text: &str| {
            sent.get(text).is_none_or(|it| {
                let is_hit =
                    |loss: &(Instant, Instant)| it.from < loss.1 && loss.0 < it.acknowledged;
                self.losses.iter().any(is_hit)
            })
        };
        for session in &self.sessions {
            let (name, from) = (&session.name, session.from);
            let mut places = HashMap::new();
            for (place, (at, text)) in session.received.iter().enumerate() {
                let before = places.insert(text.as_str(), place);
                assert_eq!(before, None, "{name} receives {text} twice");
                let acknowledged = sent.get(text.as_str()).map_or(*at, |it| it.acknowledged);
                let is_new = acknowledged + LATE > from;
                assert!(is_new, "{name} receives {text}, which is old");
            }
            places.retain(|text, _| !is_repeated(text));
            for other in &self.sessions {
                let texts = other.received.iter().map(|(_, text)| text.as_str());
                let common = texts.filter_map(|it| places.get(it));
                assert!(common.is_sorted(), "{name} and {} differ", other.name);
            }
        }
    }
}

/// Waits for a state that has to come.
async fn until(what: impl Fn() -> Option<String>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Some(state) = what() {
        assert!(Instant::now() < deadline, "{state}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn whatever_nats_loses_all_receive_the_same_and_nothing_from_before() {
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
        let from = Instant::now();
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
        diary.lock().losses.push((from, Instant::now()));
        // A node notices at its next comparison.
        sleep(Duration::from_secs(8)).await;
        until(|| {
            let states: Vec<_> = backends.iter().map(ClusterBackend::ready).collect();
            let is_ready = states.iter().all(Result::is_ok);
            (!is_ready).then(|| format!("after loss {loss}: {states:?}"))
        })
        .await;
    }
    diary.lock().is_ended = true;
    until(|| {
        let diary = diary.lock();
        diary
            .missing()
            .map(|(name, text)| format!("{name} misses {text}"))
    })
    .await;
    talking.abort_all();
    let diary = diary.lock();
    assert!(diary.sent.len() > 100, "{} were sent", diary.sent.len());
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
