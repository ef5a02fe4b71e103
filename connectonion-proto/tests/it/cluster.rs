//! Several hosts of one agent, which pass clients on, on a network and a store in memory.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use axum::serve::Listener;
use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
use connectonion_proto::net::{Server, ServerHandle, ServerOptions, http_config};
use connectonion_proto::trust::TrustLevel;
use futures_util::{SinkExt as _, StreamExt as _};
use rcgen::{CertifiedKey, KeyPair};
use rpc_core::Outgoing;
use rpc_core::net::server::{HttpConfig, PeerAddr};
use rpc_core::net::tls::{TlsAcceptor, TlsConfig};
use rpc_core::net::ws::{WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer as _, Message};
use rpc_core::store::{Bucket, BucketConfig, MemoryStore, Store};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use crate::staff::{Client, SECOND, Scripted, client_key, connect, host_key, input, types};

type Line = Client<WsStream<DuplexStream>>;

/// A network in memory.
#[derive(Clone, Default)]
struct Net(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    hosts: BTreeMap<String, (mpsc::UnboundedSender<DuplexStream>, watch::Sender<bool>)>,
    /// Who does not reach whom.
    cut: HashSet<(String, String)>,
    /// Who has dialled whom.
    dialled: Vec<(String, String)>,
    lines: Vec<(String, AbortHandle)>,
}

struct Door(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for Door {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(line) => (line, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Carries bytes both ways while the host is not frozen.
async fn carry(one: DuplexStream, two: DuplexStream, frozen: watch::Receiver<bool>) {
    let ((mut a, mut b), (mut c, mut d)) = (split(one), split(two));
    let (up, down) = (frozen.clone(), frozen);
    let pump = async |from: &mut tokio::io::ReadHalf<_>,
                      to: &mut tokio::io::WriteHalf<_>,
                      mut frozen: watch::Receiver<bool>| {
        let mut bytes = vec![0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes).await {
            let _ = frozen.wait_for(|it| !it).await;
            if to.write_all(&bytes[..len]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = pump(&mut a, &mut d, up) => {}
        () = pump(&mut c, &mut b, down) => {}
    }
}

impl Net {
    async fn dial(
        self,
        from: String,
        dialer: WsDialer,
    ) -> Result<WsStream<DuplexStream>, DialError> {
        let to = dialer.headers()?["host"].to_str().unwrap().to_owned();
        let ours = {
            let mut state = self.0.lock().unwrap();
            state.dialled.push((from.clone(), to.clone()));
            let is_cut = state.cut.contains(&(from.clone(), to.clone()));
            let Some((accept, frozen)) = state.hosts.get(&to).filter(|_| !is_cut) else {
                let source = std::io::ErrorKind::HostUnreachable.into();
                return Err(DialError::Unreachable { host: to, source });
            };
            let ((ours, one), (two, theirs)) = (duplex(65_536), duplex(65_536));
            let _ = accept.send(theirs);
            let carrying = tokio::spawn(carry(one, two, frozen.subscribe()));
            state.lines.push((to, carrying.abort_handle()));
            ours
        };
        dialer.upgrade(ours).await
    }

    /// A client that comes to a host.
    async fn client(&self, to: &str) -> Line {
        let dialer = WsDialer::new(&format!("ws://{to}/ws")).unwrap();
        let dialer = dialer.with_header("x-name", "ann").unwrap();
        let line = self.clone().dial("client".into(), dialer).await.unwrap();
        Client { line }
    }

    /// A client of a session, and its CONNECTED.
    async fn inside(&self, to: &str, session: &str) -> (Line, Value) {
        let mut client = self.client(to).await;
        client
            .send(&connect(&client_key(), json!({"session_id": session})))
            .await;
        let connected = client.recv_type("CONNECTED").await;
        (client, connected)
    }

    fn cut(&self, from: &str, to: &str) {
        let way = (from.to_owned(), to.to_owned());
        self.0.lock().unwrap().cut.insert(way);
    }

    /// Ends the connections of a host that is gone.
    fn end(&self, host: &str) {
        let mut state = self.0.lock().unwrap();
        state.hosts.remove(host);
        let lines = state.lines.iter().filter(|it| it.0 == host);
        lines.for_each(|(_, line)| line.abort());
    }

    fn freeze(&self, host: &str) {
        self.0.lock().unwrap().hosts[host].1.send_replace(true);
    }
}

/// A host of the cluster, named as its address.
struct Host {
    store: MemoryStore,
    runtime: connectonion_proto::net::HostRuntime,
    handle: ServerHandle,
    tasks: [JoinHandle<()>; 2],
}

impl Host {
    async fn start(net: &Net, store: &MemoryStore, name: &str) -> Self {
        let store = store.connect();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let options = ClusterOptions {
            advertise: Some(format!("ws://{name}")),
            ..ClusterOptions::default()
        };
        let cluster = Cluster::open(shared, *host_key().address(), options)
            .await
            .unwrap();
        let (way, from) = (net.clone(), name.to_owned());
        cluster.dial_with(move |dialer| way.clone().dial(from.clone(), dialer));
        let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
        // The hosts have other names than the agent.
        options.http = http_config();
        options.http.guards.hosts = rpc_core::net::server::HostPolicy::Any;
        options.runtime.cluster = Some(cluster.clone());
        let (server, service) = Server::mount(Scripted, options);
        let peer = |mut request: Request| async {
            let peer: SocketAddr = "192.0.2.7:5000".parse().unwrap();
            request.extensions_mut().insert(PeerAddr(peer));
            request
        };
        let app = Router::new()
            .fallback_service(service)
            .layer(map_request(peer));
        let (accept, door) = mpsc::unbounded_channel();
        let host = (accept, watch::Sender::new(false));
        net.0.lock().unwrap().hosts.insert(name.to_owned(), host);
        let (runtime, handle) = (server.runtime(), server.handle());
        let serving = tokio::spawn(async move { drop(axum::serve(Door(door), app).await) });
        let running = tokio::spawn(async move {
            server.run().await;
        });
        cluster.joined().await;
        Self {
            store,
            runtime,
            handle,
            tasks: [serving, running],
        }
    }

    async fn two() -> (Net, MemoryStore, [Self; 2]) {
        let (net, store) = (Net::default(), MemoryStore::new());
        let a = Self::start(&net, &store, "a").await;
        let b = Self::start(&net, &store, "b").await;
        (net, store, [a, b])
    }

    /// Ends as a kill does.
    fn kill(self, net: &Net, name: &str) {
        self.tasks.iter().for_each(JoinHandle::abort);
        net.end(name);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_at_another_host_is_served_as_one_at_the_owner() {
    let (net, _, [a, b]) = Host::two().await;
    let (mut at_owner, _) = net.inside("a", "s").await;
    let (mut elsewhere, connected) = net.inside("b", "s").await;
    assert_eq!(connected["status"], "connected");
    assert_eq!((a.runtime.sessions(), b.runtime.sessions()), (1, 0));
    assert_eq!(elsewhere.ask("header x-name").await, "ann");
    let ping = Outgoing::Ping("still there?".into());
    elsewhere.line.send(ping).await.unwrap();
    let pong = elsewhere.line.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("still there?".into()));
    at_owner.output().await;
    let long = format!("echo {}", "x".repeat(500_000));
    assert!(elsewhere.ask(&long).await.len() > 500_000);
    elsewhere.send(&input("think hard")).await;
    let frames = elsewhere.recv_until("OUTPUT").await;
    assert_eq!(types(&frames), ["user_input", "thinking", "OUTPUT"]);
    // The owner's end is the client's.
    a.handle.drain(SECOND).await;
    assert_eq!(elsewhere.close_frame().await.code, 1012);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_something_before_its_connect_is_passed_on_too() {
    let (net, _, [_a, b]) = Host::two().await;
    let (_owner, _) = net.inside("a", "s").await;
    let mut late = net.client("b").await;
    late.send(&json!({"type": "SEAL"})).await;
    late.send(&connect(&client_key(), json!({"session_id": "s"})))
        .await;
    late.recv_type("ERROR").await;
    assert_eq!(late.recv_type("CONNECTED").await["status"], "connected");
    assert_eq!(b.runtime.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_clients_of_an_owner_that_is_killed_are_sent_to_the_next_one() {
    let (net, _, [a, b]) = Host::two().await;
    let (mut client, _) = net.inside("a", "s").await;
    assert_eq!(client.ask("one").await, "echo: one");
    let (mut client, _) = net.inside("b", "s").await;
    a.kill(&net, "a");
    assert_eq!(client.close_frame().await.code, 1012);
    // It waits for the end of the lease.
    let (mut client, _) = net.inside("b", "s").await;
    assert_eq!(client.ask("count").await, "3 messages");
    assert_eq!(b.runtime.sessions(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_clients_of_an_owner_that_is_paused_are_sent_to_the_next_one() {
    let (net, _, [a, _b]) = Host::two().await;
    let (mut client, _) = net.inside("b", "s").await;
    client.ask("one").await;
    let (mut owner, _) = net.inside("a", "t").await;
    owner.ask("one").await;
    let (mut client, _) = net.inside("b", "t").await;
    // Its socket stays open.
    net.freeze("a");
    a.store.set_paused(true);
    let closed = timeout(15 * SECOND, client.close_frame()).await;
    assert_eq!(closed.expect("within lease and look").code, 1012);
    let (mut client, _) = net.inside("b", "t").await;
    assert_eq!(client.ask("count").await, "3 messages");
}

#[tokio::test(start_paused = true)]
async fn hosts_that_lose_each_other_without_a_sign_notice_it_while_their_clients_are_idle() {
    let (net, _, [_a, _b]) = Host::two().await;
    let (_owner, _) = net.inside("a", "s").await;
    let (mut client, _) = net.inside("b", "s").await;
    for _ in 0..10 {
        sleep(60 * SECOND).await;
        assert_eq!(client.ask("hello").await, "echo: hello");
    }
    net.freeze("a");
    let closed = timeout(60 * SECOND, client.close_frame()).await;
    assert_eq!(closed.expect("soon").code, 1012);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_another_owner_ends_the_connections_to_the_former_one_at_once() {
    let (net, store, [_a, _b]) = Host::two().await;
    let (_owner, _) = net.inside("a", "s").await;
    let (mut client, _) = net.inside("b", "s").await;
    let (mut other, _) = net.inside("b", "t").await;
    let store: Arc<dyn Store> = Arc::new(store.connect());
    let owners = Bucket::open(&store, "onion_owners", BucketConfig::default())
        .await
        .unwrap();
    let there = owners.get("t").await.unwrap().unwrap().value;
    owners.put("s", there).await.unwrap();
    let closed = timeout(SECOND / 10, client.close_frame()).await;
    assert_eq!(closed.expect("at once").code, 1012);
    assert_eq!(other.ask("one").await, "echo: one");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_not_reached_gives_up_an_idle_session_and_keeps_one_in_use() {
    let (net, _, [a, b]) = Host::two().await;
    net.cut("b", "a");
    for session in ["idle", "busy"] {
        let (mut client, _) = net.inside("a", session).await;
        client.ask("one").await;
        if session == "busy" {
            client.send(&input("wait")).await;
            client.recv_type("user_input").await;
        }
    }
    let (_shared, _) = net.inside("a", "shared").await;
    sleep(SECOND).await;
    let (mut client, connected) = net.inside("b", "idle").await;
    assert_eq!(connected["status"], "new");
    assert_eq!(client.ask("count").await, "3 messages");
    assert_eq!((a.runtime.sessions(), b.runtime.sessions()), (2, 1));
    for session in ["busy", "shared"] {
        let mut client = net.client("b").await;
        client
            .send(&connect(&client_key(), json!({"session_id": session})))
            .await;
        let close = client.close_frame().await;
        assert_eq!(close.code, 1013);
        assert!(close.reason.contains("out of reach"), "{}", close.reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_passed_on_once() {
    let (net, _, [_a, _b]) = Host::two().await;
    let (_first, _) = net.inside("a", "a's").await;
    let (_second, _) = net.inside("b", "b's").await;
    let mut client = net.client("b").await;
    let mut forged = connect(&client_key(), json!({"session_id": "a's"}));
    forged["signature"] = "00".repeat(64).into();
    client.send(&forged).await;
    client.recv_type("ERROR").await;
    client
        .send(&connect(&client_key(), json!({"session_id": "b's"})))
        .await;
    assert_eq!(client.close_frame().await.code, 1012);
}

#[tokio::test(start_paused = true)]
async fn each_host_tries_the_way_to_another_and_back_when_it_joins() {
    let (net, _, [_a, _b]) = Host::two().await;
    sleep(SECOND).await;
    let dialled = &net.0.lock().unwrap().dialled;
    for (from, to) in [("a", "b"), ("b", "a")] {
        assert!(
            dialled.contains(&(from.to_owned(), to.to_owned())),
            "{from}"
        );
    }
}

#[tokio::test]
async fn a_host_that_others_cannot_reach_does_not_start() {
    for (listen, advertise, words) in [
        ("0.0.0.0:0", None, "advertise"),
        ("[::]:0", None, "advertise"),
        ("127.0.0.1:0", Some("one.example"), "one.example"),
        ("127.0.0.1:0", Some("ws://one.example?a=b"), "query"),
        ("0.0.0.0:0", Some("ws://one.example"), ""),
        ("127.0.0.1:0", None, ""),
    ] {
        let options = ClusterOptions {
            advertise: advertise.map(str::to_owned),
            ..ClusterOptions::default()
        };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let cluster = Cluster::open(store, *host_key().address(), options)
            .await
            .unwrap();
        let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
        options.runtime.cluster = Some(cluster);
        let bound = Server::bind(listen, Scripted, options).await;
        match bound {
            Ok(_) => assert_eq!(words, "", "{listen} {advertise:?}"),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
                let error = error.to_string();
                assert!(!words.is_empty() && error.contains(words), "{error}");
            }
        }
    }
}

/// A host on a socket, with a certificate for `localhost`, which trusts the others if they have the same.
async fn on_tls(
    store: &MemoryStore,
    made: &CertifiedKey<KeyPair>,
    trusted: &str,
) -> (String, Cluster) {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr();
    let address = free.unwrap();
    let options = ClusterOptions {
        advertise: Some(format!("wss://localhost:{}", address.port())),
        ..ClusterOptions::default()
    };
    let store: Arc<dyn Store> = Arc::new(store.connect());
    let cluster = Cluster::open(store, *host_key().address(), options);
    let cluster = cluster.await.unwrap();
    let trusted = TlsConfig::with_root_certificates(trusted.as_bytes()).unwrap();
    cluster.dial_with(move |dialer| {
        let dialer = dialer.with_tls(trusted.clone());
        async move { dialer.dial().await }
    });
    let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let acceptor = TlsAcceptor::from_pem(cert.as_bytes(), key.as_bytes());
    options.http = HttpConfig {
        tls: Some(acceptor.unwrap()),
        ..http_config()
    };
    options.runtime.cluster = Some(cluster.clone());
    let server = Server::bind(address, Scripted, options);
    let server = server.await.unwrap();
    tokio::spawn(server.run());
    cluster.joined().await;
    (format!("wss://{address}/ws"), cluster)
}

#[tokio::test]
async fn hosts_check_each_others_certificates() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (store, pem) = (MemoryStore::new(), made.cert.pem());
    let (a, _) = on_tls(&store, &made, &pem).await;
    let (b, _) = on_tls(&store, &made, &pem).await;
    let (c, _) = on_tls(&store, &made, &other.cert.pem()).await;
    let client = async |url: &str| {
        let url = url.replace("127.0.0.1", "localhost");
        let tls = TlsConfig::with_root_certificates(pem.as_bytes()).unwrap();
        let line = WsDialer::new(&url)
            .unwrap()
            .with_tls(tls)
            .dial()
            .await
            .unwrap();
        let mut client = Client { line };
        client
            .send(&connect(&client_key(), json!({"session_id": "s"})))
            .await;
        client
    };
    let mut owner = client(&a).await;
    owner.recv_type("CONNECTED").await;
    let mut through = client(&b).await;
    through.recv_type("CONNECTED").await;
    assert_eq!(through.ask("hello").await, "echo: hello");
    // What it does not trust it does not dial.
    assert_eq!(client(&c).await.close_frame().await.code, 1013);
}
