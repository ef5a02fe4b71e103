//! The nodes: Snek servers and ConnectOnion hosts, on NATS or alone.

use std::sync::Arc;

use connectonion_proto::net::Server as Host;
use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
use futures_util::StreamExt;
use rpc_core::Limits;
use rpc_core::net::nats::{Nats, NatsConfig};
use rpc_core::net::server::ServerLimits;
use snek_proto::frame::{Channel, User};
use snek_proto::net::{self as snek, Backend, ClusterBackend, MemoryBackend};

use crate::net::serve::{CONNECTIONS, Echo, host_options};

/// In place of the URL of NATS.
pub(super) const ALONE: &str = "alone";
/// The channel that everybody is in.
pub(super) const ROOM: &str = "room";
/// How many members other channels have.
pub(super) const MEMBERS: usize = 10;

/// A Snek server. Everybody is in one channel; or there are so many users, in channels of
/// [`MEMBERS`].
pub(super) async fn snek(nats: &str, users: usize) {
    if nats == ALONE {
        return snek_on(MemoryBackend::new().with_channel(ROOM, "Room").open()).await;
    }
    let nats = Nats::connect(NatsConfig::new(nats)).await.unwrap();
    let options = snek::ClusterOptions {
        open: true,
        ..snek::ClusterOptions::default()
    };
    let (backend, runner) = ClusterBackend::open(Arc::new(nats), options).await.unwrap();
    tokio::spawn(runner.run());
    if users == 0 {
        backend.put_channel(ROOM, "Room").await.unwrap();
    }
    let users = futures_util::stream::iter(0..users);
    users
        .for_each_concurrent(16, |number| join(&backend, number))
        .await;
    snek_on(backend).await;
}

/// The name of a user, and the password of all.
pub(super) fn user(number: usize) -> (String, &'static str) {
    (format!("user{number}"), "a")
}

/// The channel of a user among many.
pub(super) fn channel(number: usize) -> String {
    format!("channel{}", number / MEMBERS)
}

async fn join(backend: &ClusterBackend, number: usize) {
    let (name, password) = user(number);
    let added = User::new(name.as_str(), name.as_str());
    backend.put_user(added, password).await.unwrap();
    let channel = channel(number);
    let channel = Channel::new(channel.as_str(), channel.as_str(), None);
    backend.join(&name, &channel).await.unwrap();
}

async fn snek_on(backend: impl Backend) {
    let limits = Limits {
        max_message_rate: None,
        ..Limits::default()
    };
    let mut options = snek::ServerOptions::default();
    options.connection.limits = limits;
    let limits = ServerLimits::default().with_max_connections(CONNECTIONS);
    options.http = snek::http_config().with_limits(limits);
    let server = snek::Server::bind("127.0.0.1:0", backend, options);
    let server = server.await.unwrap();
    println!("{}", server.local_addr());
    server.run().await;
}

/// A host of ConnectOnion, whose agent answers at once.
pub(super) async fn onion(nats: &str) {
    let mut options = host_options();
    let mut cluster = None;
    if nats != ALONE {
        let nats = Nats::connect(NatsConfig::new(nats)).await.unwrap();
        let address = *options.runtime.access.host();
        let opened = Cluster::open(Arc::new(nats), address, ClusterOptions::default());
        let opened = cluster.insert(opened.await.unwrap());
        options = options.with_cluster(opened.clone());
    }
    let host = Host::bind("127.0.0.1:0", Echo, options).await.unwrap();
    let address = host.local_addr();
    let running = tokio::spawn(host.run());
    if let Some(cluster) = cluster {
        cluster.joined().await;
    }
    println!("{address}");
    running.await.unwrap();
}
