//! Hosts of one cluster in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
use connectonion_proto::net::{HostRuntime, Server, ServerOptions};
use connectonion_proto::session::HubConfig;
use connectonion_proto::storage::{Record, RecordStatus};
use connectonion_proto::trust::TrustLevel;
use rpc_core::cluster::LeaseConfig;
use rpc_core::net::DrainReport;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::store::{Bucket, BucketConfig, Log, LogConfig, Store};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::staff::{Scripted, host_key, stored};

/// A lease that tests can wait for.
pub fn short() -> ClusterOptions {
    lease(Duration::from_millis(1500))
}

/// A lease that does not end during a test.
pub fn long() -> ClusterOptions {
    lease(Duration::from_secs(60))
}

fn lease(lease: Duration) -> ClusterOptions {
    ClusterOptions {
        lease: LeaseConfig {
            lease,
            margin: lease / 5,
            ..LeaseConfig::default()
        },
        ..ClusterOptions::default()
    }
}

/// A connection to NATS.
pub async fn store(nats: &str) -> Arc<dyn Store> {
    nats::connect(NatsConfig::new(nats)).await.unwrap()
}

/// A host that is a part of the cluster.
pub struct Host {
    pub url: String,
    pub address: SocketAddr,
    pub runtime: HostRuntime,
    pub cluster: Cluster,
    pub handle: connectonion_proto::net::ServerHandle,
    pub run: JoinHandle<DrainReport>,
}

impl Host {
    pub async fn start(nats: &str, options: ClusterOptions, hub: HubConfig) -> Self {
        let server = ServerOptions::new(&host_key(), TrustLevel::Open);
        Self::start_with(nats, options, hub, server).await
    }

    /// Starts two hosts of one cluster, one after the other.
    pub async fn two(nats: &str, options: ClusterOptions) -> [Self; 2] {
        let first = Self::start(nats, options.clone(), HubConfig::default()).await;
        [
            first,
            Self::start(nats, options, HubConfig::default()).await,
        ]
    }

    pub async fn start_with(
        nats: &str,
        options: ClusterOptions,
        hub: HubConfig,
        mut server: ServerOptions,
    ) -> Self {
        let cluster = Cluster::open(store(nats).await, *host_key().address(), options);
        let cluster = cluster.await.unwrap();
        server.runtime.hub = hub;
        let mut options = server;
        options.runtime.cluster = Some(cluster.clone());
        let host = Server::bind("127.0.0.1:0", Scripted, options);
        let host = host.await.unwrap();
        let (url, address) = (host.url(), host.local_addr());
        let (runtime, handle) = (host.runtime(), host.handle());
        let run = tokio::spawn(host.run());
        cluster.joined().await;
        Self {
            url,
            address,
            runtime,
            cluster,
            handle,
            run,
        }
    }

    /// Ends the host as a kill does: its lease is left to run out.
    pub async fn kill(self) {
        self.run.abort();
        let _ = self.run.await;
    }

    pub async fn get(&self, path: &str) -> Value {
        self.get_with_status(path).await.1
    }

    pub async fn get_with_status(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path).await
    }

    /// Deletes a session of callers without a signature; returns the status.
    pub async fn delete(&self, session: &str) -> u16 {
        let path = format!("/sessions/{session}");
        self.ask("DELETE", &path).await.0
    }

    async fn ask(&self, method: &str, path: &str) -> (u16, Value) {
        let mut tcp = TcpStream::connect(self.address).await.unwrap();
        let head = "Host: localhost\r\nConnection: close\r\nContent-Length: 2";
        let request = format!("{method} {path} HTTP/1.1\r\n{head}\r\n\r\n{{}}");
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse();
        (
            status.unwrap(),
            serde_json::from_str(body).unwrap_or_default(),
        )
    }
}

/// What the hosts have stored, as NATS has it.
pub struct Stored {
    store: Arc<dyn Store>,
    owners: Bucket,
    pub sessions: Arc<dyn Log>,
}

impl Stored {
    pub async fn open(nats: &str) -> Self {
        let store = store(nats).await;
        let owners = Bucket::open(&store, "onion_owners", BucketConfig::default());
        let config = LogConfig {
            max_age: Some(Duration::from_secs(14 * 24 * 60 * 60)),
            ..LogConfig::new("onion_log.*")
        };
        Self {
            owners: owners.await.unwrap(),
            sessions: store.log("onion_log", config).await.unwrap(),
            store,
        }
    }

    /// The sessions with an owner, dead or alive.
    pub async fn owned(&self) -> Vec<String> {
        let mut owned = self.owners.keys("*").await.unwrap();
        owned.sort();
        owned
    }

    /// Waits until the newest message of a session has this text.
    pub async fn has(&self, session_id: &str, text: &str) {
        let subject = format!("onion_log.{session_id}");
        loop {
            let last = self.sessions.last(&subject).await.unwrap().unwrap();
            if std::str::from_utf8(&last.payload).unwrap().contains(text) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Removes all messages of a session.
    pub async fn forget(&self, session_id: &str) {
        let subject = format!("onion_log.{session_id}");
        self.sessions.purge(&subject, u64::MAX).await.unwrap();
    }

    /// The record of a session, as soon as its run has ended.
    pub async fn ended(&self, session_id: &str) -> Record {
        loop {
            if let Some(record) = stored(&*self.store, session_id).await
                && matches!(record.status, RecordStatus::Done | RecordStatus::Failed)
            {
                return record;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// What was said in a session, by its CONNECTED or OUTPUT.
pub fn messages(frame: &Value) -> Vec<String> {
    let messages = frame["session"]["messages"].as_array().unwrap();
    let messages = messages.iter();
    messages
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect()
}
