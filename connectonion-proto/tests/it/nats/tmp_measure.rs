//! tmp
use crate::staff::{Client, Scripted, client_key, host_key, now, signed};
use connectonion_proto::auth::Draft;
use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
use connectonion_proto::net::{Server, ServerOptions};
use connectonion_proto::rpc_core::store::{MemoryStore, Store};
use connectonion_proto::trust::TrustLevel;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use switchboard_testing::nats::NatsServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measure"]
async fn measure_signed_commands() {
    let nats = NatsServer::start();
    let stores: [(&str, Option<Arc<dyn Store>>); 3] = [
        ("alone", None),
        ("memory", Some(Arc::new(MemoryStore::new()))),
        ("nats", Some(super::hosts::store(&nats.url()).await)),
    ];
    for (name, store) in stores {
        let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
        let mut cluster = None;
        if let Some(store) = store {
            let open = Cluster::open(store, *host_key().address(), ClusterOptions::default())
                .await
                .unwrap();
            options = options.with_cluster(open.clone());
            cluster = Some(open);
        }
        let host = Server::bind("127.0.0.1:0", Scripted, options)
            .await
            .unwrap();
        let url = host.url();
        tokio::spawn(host.run());
        if let Some(cluster) = cluster {
            cluster.joined().await;
        }
        let mut client = Client::dial(&url).await;
        let draft = Draft::new(now())
            .with_to(host_key().address())
            .with("signed_commands", 1)
            .with_nonce(9);
        client
            .say(&signed("CONNECT", &client_key(), &draft, json!({})))
            .await;
        client.hear_a("CONNECTED").await;
        let frames: Vec<_> = (0..1000u128)
            .map(|nonce| {
                let mode = if nonce % 2 == 0 { "plan" } else { "safe" };
                let draft = Draft::new(now())
                    .with_to(host_key().address())
                    .with_nonce(nonce + 100)
                    .with("type", "mode_change")
                    .with("mode", mode);
                signed("mode_change", &client_key(), &draft, json!({"mode": mode}))
            })
            .collect();
        let mut times = Vec::new();
        for frame in &frames {
            let begin = Instant::now();
            client.say(frame).await;
            client.hear_a("mode_changed").await;
            times.push(begin.elapsed());
        }
        times.sort();
        println!(
            "{name}: p50 {:?} p99 {:?} mean {:?}",
            times[500],
            times[990],
            times.iter().sum::<std::time::Duration>() / 1000
        );
    }
}
