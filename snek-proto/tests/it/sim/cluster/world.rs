//! Nodes, users, the store, and what happens to them.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use rpc_core::net::mem::{self, MemDialer};
use rpc_core::net::{LinkConfig, LinkEvent, LinkState, QueueConfig};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::store::MemoryStore;
use rpc_core::{CallError, Delivery};
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::error::RpcError;
use snek_proto::frame::Final;
use snek_proto::net::{
    Client, ClusterBackend, ClusterOptions, Events, Server, ServerOptions, connect_with,
};
use switchboard_testing::sim::cluster::{Cluster, Kind, Started, wait};
use switchboard_testing::sim::{Outcome, Rng, Tally, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::SECOND;
use super::diary::{Closed, Diary};

const NODES: usize = 3;
const USERS: [&str; 4] = ["ann", "bob", "cid", "dan"];
const CHANNEL: &str = "general";
/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

struct Shared {
    cluster: Arc<Cluster<MemDialer>>,
    diary: Mutex<Diary>,
    /// The users' connections.
    clients: Mutex<Vec<Option<Client>>>,
    is_over: watch::Sender<bool>,
}

pub struct World {
    shared: Arc<Shared>,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap()
}

async fn start(store: MemoryStore) -> Started<MemDialer> {
    let options = ClusterOptions {
        open: true,
        password_rounds: 1,
        ..ClusterOptions::default()
    };
    let (backend, runner) = loop {
        match ClusterBackend::open(Arc::new(store.clone()), options).await {
            Ok(opened) => break opened,
            Err(_) => sleep(SECOND).await,
        }
    };
    let (server, _) = Server::mount(backend.clone(), ServerOptions::default());
    let (handle, (dialer, mut listener)) = (server.handle(), mem::listen(64));
    Started {
        node: dialer,
        work: Box::pin(async {
            runner.run().await;
        }),
        tasks: vec![
            Box::pin(async {
                server.run().await;
            }),
            Box::pin(async move {
                while let Some(line) = listener.accept().await {
                    handle.serve(line, None);
                }
            }),
            Box::pin(async move {
                while backend.put_channel(CHANNEL, "General").await.is_err() {
                    sleep(SECOND).await;
                }
            }),
        ],
    }
}

impl Shared {
    /// Lets a user connect again and again, and note what it hears.
    async fn listen(self: Arc<Self>, user: usize, mut rng: Rng) {
        let mut slot = user % NODES;
        while !*self.is_over.borrow() {
            if let Some(dialer) = self.cluster.node(slot) {
                self.session(user, dialer).await;
            }
            wait(&mut rng, 2 * SECOND).await;
            slot = rng.below(NODES as u64) as usize;
        }
    }

    async fn session(&self, user: usize, dialer: MemDialer) {
        let link = LinkConfig {
            reconnect: ReconnectPolicy::off(),
            events: QueueConfig {
                max_items: 65_536,
                ..QueueConfig::default()
            },
            ..LinkConfig::default()
        };
        let config = ClientConfig::new(USERS[user], "secret");
        let (client, mut events, connection) =
            connect_with(dialer, ClientConfig { link, ..config });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            connection.run().await;
        });
        if !matches!(timeout(30 * SECOND, sees(&client)).await, Ok(true)) {
            return;
        }
        let stretch = lock(&self.diary).begins(USERS[user]);
        lock(&self.clients)[user] = Some(client);
        let why = loop {
            match received(&mut events).await {
                Ok(text) => lock(&self.diary).receives(stretch, text),
                Err(why) => break why,
            }
        };
        lock(&self.clients)[user] = None;
        lock(&self.diary).ends(stretch, &why);
    }

    /// Lets a user say something now and then.
    async fn talk(self: Arc<Self>, user: usize, mut rng: Rng) {
        let mut number = 0;
        while !*self.is_over.borrow() {
            wait(&mut rng, 4 * SECOND).await;
            let Some(client) = lock(&self.clients)[user].clone() else {
                continue;
            };
            let many = if rng.chance(2) { 64 } else { 1 };
            let texts = (number..number + many).map(|at| format!("{}-{at}", USERS[user]));
            number += many;
            let is_typed = rng.chance(30);
            join_all(texts.map(|text| self.send(&client, text, is_typed))).await;
        }
    }

    async fn send(&self, client: &Client, text: String, is_typed: bool) {
        if is_typed {
            let partial = format!("{text}~");
            let _ = client.send_message(CHANNEL, &partial, Final::No).await;
        }
        let call = lock(&self.diary).sends(text.clone());
        let sending = client.send_message(CHANNEL, &text, Final::Yes);
        let Ok(sent) = timeout(PATIENCE, sending).await else {
            return;
        };
        let answered = sent.as_ref().map_or_else(outcome, |_| Closed::Yes);
        let mut diary = lock(&self.diary);
        diary.answered(call, answered);
        if let Err(error) = sent {
            diary.fails(&text, &error);
        }
    }
}

/// Whether a message that has failed may be heard.
fn outcome(error: &CallError<RpcError>) -> Closed {
    match error {
        CallError::Remote(error) if !error.message().contains("may have been delivered") => {
            Closed::No
        }
        error if error.delivery() == Delivery::NotSent => Closed::No,
        _ => Closed::Perhaps,
    }
}

async fn sees(client: &Client) -> bool {
    if client.ready().await.is_err() {
        return false;
    }
    while let Ok(channels) = client.get_channels().await {
        if channels.iter().any(|it| it.uid.as_str() == CHANNEL) {
            return true;
        }
        sleep(SECOND / 10).await;
    }
    false
}

/// The next message, or why the connection has ended.
async fn received(events: &mut Events) -> Result<String, String> {
    loop {
        match events.next_link().await {
            Some(LinkEvent::Event(ClientEvent::Message(message))) => {
                return Ok(message.message.to_string());
            }
            Some(LinkEvent::Lagged(count)) => panic!("{count} events are lost"),
            Some(LinkEvent::State(
                LinkState::Lost { cause: why, .. } | LinkState::Closed { reason: why },
            )) => return Err(why.to_string()),
            Some(_) => {}
            None => return Err("it is over".to_owned()),
        }
    }
}

impl World {
    /// Nodes and users that talk.
    pub async fn new(rng: &mut Rng) -> Self {
        let world = Self::silent(rng, None).await;
        for user in 0..USERS.len() {
            let talking = Arc::clone(&world.shared).talk(user, Rng::new(rng.next_u64()));
            tokio::spawn(talking);
        }
        world
    }

    /// Nodes for which so many messages wait, and users that are silent.
    pub async fn with_queue(rng: &mut Rng, queue: usize) -> Self {
        let world = Self::silent(rng, Some(queue)).await;
        let all = async {
            while lock(&world.shared.clients).iter().any(Option::is_none) {
                sleep(SECOND).await;
            }
        };
        timeout(PATIENCE, all).await.expect("all are connected");
        world
    }

    async fn silent(rng: &mut Rng, queue: Option<usize>) -> Self {
        let kind = Kind {
            start: Box::new(|_, store| Box::pin(start(store))),
            log: "snek",
            queues: &[4, 64, 4_096],
            has_old_copies: true,
            set_clock: |_, _| {},
        };
        let cluster = Cluster::new(NODES, kind, queue, rng).await;
        let shared = Arc::new(Shared {
            diary: Mutex::new(Diary::new(cluster.chronicle.clone())),
            cluster,
            clients: Mutex::new(vec![None; USERS.len()]),
            is_over: watch::Sender::new(false),
        });
        for user in 0..USERS.len() {
            let listening = Arc::clone(&shared).listen(user, Rng::new(rng.next_u64()));
            tokio::spawn(listening);
        }
        Self { shared }
    }

    pub fn cluster(&self) -> &Arc<Cluster<MemDialer>> {
        &self.shared.cluster
    }

    /// Lets a user say so much, a few at a time. `is_calm`: no one loses any of it on the way.
    pub async fn send(&self, user: usize, count: usize, is_calm: bool) -> Outcome {
        let shared = &self.shared;
        lock(&shared.diary).is_calm = is_calm;
        let mut number = 0;
        while number < count {
            let Some(client) = lock(&shared.clients)[user].clone() else {
                let checked = lock(&shared.diary).check();
                return Err(format!("the speaker is not connected: {checked:?}"));
            };
            let texts = (number..count.min(number + 16)).map(|at| format!("{}-{at}", USERS[user]));
            let sending = texts.map(|text| shared.send(&client, text, number % 64 == 0));
            number += join_all(sending).await.len();
            // A server sends those away who say too much at once.
            sleep(SECOND / 50).await;
        }
        Ok(())
    }

    /// Has everyone say something last, and checks all that was said and heard.
    pub async fn end(&self, tally: &mut Tally) -> Outcome {
        let shared = &self.shared;
        shared.is_over.send_replace(true);
        sleep(PATIENCE).await;
        let clients: Vec<Client> = lock(&shared.clients).iter().flatten().cloned().collect();
        let count = clients.len();
        let complain = |what: String| match lock(&shared.diary).check() {
            Err(broken) => format!("{what}, and {broken}"),
            Ok(()) => what,
        };
        ensure(count == USERS.len(), || {
            complain(format!("only {count} are connected after a long peace"))
        })?;
        let before = lock(&shared.diary).counts();
        let sending = clients
            .iter()
            .zip(USERS)
            .map(|(client, name)| shared.send(client, format!("{name} has the last word"), false));
        join_all(sending).await;
        sleep(PATIENCE).await;
        let diary = lock(&shared.diary);
        let (calls, acknowledged) = diary.counts();
        tally.ended += calls;
        tally.answered += acknowledged;
        diary.check()?;
        let last = acknowledged - before.1;
        ensure(last == count as u64, || {
            format!("only {last} can say something at the end")
        })
    }
}
