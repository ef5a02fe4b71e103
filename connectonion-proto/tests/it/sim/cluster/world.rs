//! Hosts, users, the store, and what happens to them.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use connectonion_proto::frame::{EventKind, Thinking};
use connectonion_proto::net::cluster::{self, ClusterOptions};
use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Server, ServerOptions, Turn};
use connectonion_proto::session::HubConfig;
use connectonion_proto::trust::TrustLevel;
use futures_util::SinkExt as _;
use futures_util::future::join_all;
use rpc_core::net::Dialer;
use rpc_core::net::mem::{self, MemDialer, MemTransport};
use rpc_core::store::{LogConfig, MemoryStore, Store, StoreError};
use rpc_core::{Outgoing, Text};
use serde_json::{Value, json};
use switchboard_testing::sim::cluster::{Cluster, Kind, Started, wait};
use switchboard_testing::sim::{Outcome, Rng, Tally, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::SECOND;
use super::diary::{Diary, answer_to};
use crate::staff::{Client, client_key, connect, host_key, input};

/// Sends a frame, if the connection takes it.
async fn try_send(client: &mut Client, frame: &Value) -> Option<()> {
    let text = Text::from(frame.to_string());
    client.line.send(Outgoing::Text(text)).await.ok()
}

const HOSTS: usize = 3;
/// How far a wrong clock is ahead: more than a signature is valid.
pub const HOUR: Duration = Duration::from_secs(3_600);
/// The users and their sessions; two share one.
const USERS: [(&str, &str); 4] = [
    ("ann", "s-0"),
    ("bob", "s-0"),
    ("cid", "s-1"),
    ("dan", "s-2"),
];
/// How many prompts there are in a session of someone who says much.
const PROMPTS: usize = 16;
/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    /// How far the clock of each machine is ahead. A life has a thread of its own.
    static AHEAD: [Cell<Duration>; HOSTS] = const { [const { Cell::new(Duration::ZERO) }; HOSTS] };
}

/// The clocks of the machines.
const CLOCKS: [fn() -> SystemTime; HOSTS] = [clock::<0>, clock::<1>, clock::<2>];

fn clock<const SLOT: usize>() -> SystemTime {
    SystemTime::now() + AHEAD.with(|ahead| ahead[SLOT].get())
}

/// Sets the clock of a machine.
pub fn set_ahead(slot: usize, ahead: Duration) {
    AHEAD.with(|all| all[slot].set(ahead));
}

/// Answers after a while.
struct Slow {
    most: Duration,
}

impl Agent for Slow {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        turn.emit(EventKind::Thinking(Thinking::new("hm")))?;
        // Each prompt takes its own time.
        let share = prompt.text.bytes().map(u32::from).sum::<u32>() % 8;
        sleep(self.most * share / 8).await;
        Ok(Reply::new(answer_to(&prompt.text)))
    }
}

/// A host, and how it is dialled.
#[derive(Clone)]
pub struct Host {
    pub cluster: cluster::Cluster,
    dialer: MemDialer,
}

struct Shared {
    cluster: Arc<Cluster<Host>>,
    diary: Mutex<Diary>,
    sessions: Mutex<Vec<&'static str>>,
    is_over: watch::Sender<bool>,
}

pub struct World {
    shared: Arc<Shared>,
    talking: Mutex<JoinSet<()>>,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap()
}

async fn start(slot: usize, store: MemoryStore, think: Duration) -> Started<Host> {
    let cluster = loop {
        let store = Arc::new(store.clone());
        let options = ClusterOptions::default();
        match cluster::Cluster::open(store, *host_key().address(), options).await {
            Ok(cluster) => break cluster,
            Err(_) => sleep(SECOND).await,
        }
    };
    let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
    options.runtime.clock = CLOCKS[slot];
    options.runtime.hub = HubConfig {
        max_reruns: 1_000,
        ..HubConfig::default()
    };
    options.runtime.cluster = Some(cluster.clone());
    let (server, _) = Server::mount(Slow { most: think }, options);
    let (handle, (dialer, mut listener)) = (server.handle(), mem::listen(64));
    Started {
        node: Host { cluster, dialer },
        work: Box::pin(async {
            server.run().await;
        }),
        tasks: vec![Box::pin(async move {
            while let Some(line) = listener.accept().await {
                handle.serve(line, None);
            }
        })],
    }
}

impl Shared {
    fn note(&self, note: &str) {
        self.cluster.chronicle.note(note);
    }

    /// Connects to a session at a host. Returns what is said there.
    async fn enter(&self, slot: usize, session: &str) -> Option<(Client, Value)> {
        let line: MemTransport = self.cluster.node(slot)?.dialer.dial().await.ok()?;
        let mut client = Client { line };
        let members = json!({"session_id": session});
        try_send(&mut client, &connect(&client_key(), members)).await?;
        loop {
            let frame = client.try_recv(30 * SECOND).await?;
            match frame["type"].as_str() {
                Some("CONNECTED") => return Some((client, frame)),
                Some("ERROR") | None => return None,
                Some(_) => {}
            }
        }
    }

    /// Lets a user connect again and again, say something now and then, and note what it hears.
    async fn live(self: Arc<Self>, user: usize, mut rng: Rng) {
        let mut number = 0;
        let (name, session) = USERS[user];
        while !*self.is_over.borrow() {
            let slot = rng.below(HOSTS as u64) as usize;
            if let Some((mut client, _)) = self.enter(slot, session).await {
                let stretch = lock(&self.diary).begins(session);
                self.note(&format!("{name} is connected to {slot}"));
                let why = self
                    .talk(user, &mut client, stretch, &mut number, &mut rng)
                    .await;
                self.note(&format!("{name} is not connected any more: {why}"));
                lock(&self.diary).ends(stretch);
            }
            wait(&mut rng, 2 * SECOND).await;
        }
    }

    async fn talk(
        &self,
        user: usize,
        client: &mut Client,
        stretch: usize,
        number: &mut usize,
        rng: &mut Rng,
    ) -> String {
        let (name, session) = USERS[user];
        let mut is_over = self.is_over.subscribe();
        let mut asked = None;
        loop {
            let pause = rng.duration(4 * SECOND);
            let over = async {
                let _ = is_over.wait_for(|it| *it).await;
            };
            let received = tokio::select! {
                received = client.try_recv(PATIENCE) => Some(received),
                () = sleep(pause), if asked.is_none() => None,
                () = over => return "it is over".to_owned(),
            };
            let frame = match received {
                Some(Some(frame)) => frame,
                Some(None) => return "nothing comes".to_owned(),
                None => {
                    let text = format!("{name}-{number}");
                    *number += 1;
                    if try_send(client, &input(&text)).await.is_none() {
                        return "it takes nothing".to_owned();
                    }
                    asked = Some((lock(&self.diary).sends(session, &text), text));
                    continue;
                }
            };
            let mut diary = lock(&self.diary);
            match frame["type"].as_str() {
                Some("user_input") => {
                    if let Some((prompt, _)) = asked.as_ref().filter(|it| frame["content"] == *it.1)
                    {
                        diary.taken(*prompt);
                    }
                }
                Some("RUNTIME_INPUT_ACK") => {
                    if let Some((prompt, _)) = &asked {
                        diary.taken(*prompt);
                    }
                }
                Some("OUTPUT") => {
                    let answer = frame["result"].as_str().unwrap_or_default();
                    diary.receives(stretch, answer);
                    if asked
                        .as_ref()
                        .is_some_and(|(_, text)| answer.contains(&**text))
                    {
                        asked = None;
                    }
                }
                Some("ERROR") => {
                    self.note(&format!("{name}: {frame}"));
                    asked = None;
                }
                None => return frame.to_string(),
                Some(_) => {}
            }
        }
    }
}

impl World {
    /// Hosts and users that talk.
    pub async fn new(rng: &mut Rng) -> Self {
        let world = Self::with(rng, 3 * SECOND).await;
        *lock(&world.shared.sessions) = vec!["s-0", "s-1", "s-2"];
        for user in 0..USERS.len() {
            let living = Arc::clone(&world.shared).live(user, Rng::new(rng.next_u64()));
            lock(&world.talking).spawn(living);
        }
        world
    }

    /// Hosts, and no one there.
    pub async fn silent(rng: &mut Rng) -> Self {
        Self::with(rng, Duration::ZERO).await
    }

    async fn with(rng: &mut Rng, think: Duration) -> Self {
        let kind = Kind {
            start: Box::new(move |slot, store| Box::pin(start(slot, store, think))),
            log: "onion_log",
            queues: &[64, 4_096],
            // What was lost comes back in no other log.
            has_old_copies: false,
            set_clock: |slot, is_wrong| {
                set_ahead(slot, if is_wrong { HOUR } else { Duration::ZERO });
            },
        };
        let cluster = Cluster::new(HOSTS, kind, None, rng).await;
        let shared = Arc::new(Shared {
            diary: Mutex::new(Diary::new(cluster.chronicle.clone())),
            cluster,
            sessions: Mutex::default(),
            is_over: watch::Sender::new(false),
        });
        Self {
            shared,
            talking: Mutex::default(),
        }
    }

    pub fn cluster(&self) -> &Arc<Cluster<Host>> {
        &self.shared.cluster
    }

    /// Whether a user who comes to a host is let into a session.
    pub async fn lets_in(&self, slot: usize, session: &str) -> bool {
        self.shared.enter(slot, session).await.is_some()
    }

    /// Denies a host the store. Returns what it says of that.
    pub async fn denied(&self, slot: usize) -> StoreError {
        let cluster = self.shared.cluster.node(slot).unwrap().cluster;
        cluster.joined().await;
        self.shared.cluster.store_of(slot).set_denied(true);
        timeout(PATIENCE, cluster.failed())
            .await
            .expect("it says so")
    }

    /// Says so much at a host that the store has this many records more, and hears all answers.
    pub async fn send(&self, slot: usize, records: usize) -> Outcome {
        // Of each prompt: itself, its events, its answer.
        let sending = (0..records.div_ceil(3 * PROMPTS))
            .map(|number| self.send_in(slot, format!("t-{number}").leak()));
        let messages: Vec<Outcome> = join_all(sending).await;
        messages.into_iter().collect::<Outcome>()?;
        let config = LogConfig {
            max_age: Some(Duration::from_secs(14 * 24 * 60 * 60)),
            ..LogConfig::new("onion_log.*")
        };
        let sessions = self.shared.cluster.store.log("onion_log", config);
        let stored = sessions.await.unwrap().state().await.unwrap().last;
        ensure(stored >= records as u64, || {
            format!("only {stored} records")
        })
    }

    async fn send_in(&self, slot: usize, session: &'static str) -> Outcome {
        let shared = &self.shared;
        let entered = shared.enter(slot, session).await;
        let (mut client, _) = entered.ok_or("nobody is let in")?;
        lock(&shared.sessions).push(session);
        let stretch = lock(&shared.diary).begins(session);
        for number in 0..PROMPTS {
            let text = format!("ann-{number}");
            lock(&shared.diary).sends(session, &text);
            client.send(&input(&text)).await;
            let output = client.output().await;
            let answer = output["result"].as_str().unwrap_or_default();
            lock(&shared.diary).receives(stretch, answer);
        }
        lock(&shared.diary).ends(stretch);
        Ok(())
    }

    /// Ends the talking, and checks all that was said and heard, at each host.
    pub async fn end(&self, tally: &mut Tally) -> Outcome {
        let shared = &self.shared;
        shared.is_over.send_replace(true);
        let talking = std::mem::take(&mut *lock(&self.talking));
        let over = timeout(PATIENCE, talking.join_all()).await;
        ensure(over.is_ok(), || "somebody talks for ever".to_owned())?;
        // Runs that no one waits for end.
        sleep(PATIENCE).await;
        let sessions = lock(&shared.sessions).clone();
        for session in sessions {
            let looking = (0..HOSTS).map(|slot| async move {
                let entered = timeout(PATIENCE, shared.enter(slot, session)).await;
                let (mut client, connected) = entered.ok().flatten()?;
                let messages = messages(&connected);
                // All of them serve it.
                try_send(&mut client, &input("still there?")).await?;
                Some((client, messages))
            });
            let mut all = Vec::new();
            for (slot, look) in looking.enumerate() {
                let Some((mut client, messages)) = look.await else {
                    return Err(format!("host {slot} does not let anybody into {session}"));
                };
                let answer = timeout(PATIENCE, client.output()).await;
                let answer = answer.map_err(|_| format!("host {slot} does not answer"))?;
                ensure(answer["result"] == answer_to("still there?"), || {
                    format!("host {slot} answers {answer}")
                })?;
                all.push(messages);
            }
            let before = all[0].clone();
            lock(&shared.diary).check(session, &before)?;
            for messages in &all {
                ensure(messages.starts_with(&before), || {
                    format!("{session} is {messages:?} at one host, and {before:?} at another")
                })?;
            }
        }
        let (prompts, answered) = lock(&shared.diary).counts();
        tally.ended += prompts;
        tally.answered += answered;
        Ok(())
    }
}

/// What was said in a session, and by whom.
fn messages(connected: &Value) -> Vec<(String, String)> {
    let messages = connected["session"]["messages"].as_array();
    let messages = messages.into_iter().flatten();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    messages
        .map(|it| (text(&it["role"]), text(&it["content"])))
        .collect()
}
