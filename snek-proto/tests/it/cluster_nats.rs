//! Snek's nodes on a NATS server: what only a real one shows.

use std::path::Path;
use std::time::Duration;

use rpc_core::net::nats::{self, NatsConfig};
use snek_proto::frame::Final;
use switchboard_testing::nats::NatsServer;

use crate::cluster::{Member, login, message, messages, node_at, options, sees};

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

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_rolled_back_nats_doubles_and_loses_nothing_new() {
    let mut server = NatsServer::start();
    let (data, copy) = (
        server.folder().join("jetstream"),
        server.folder().join("copy"),
    );
    let nodes = [node(&server).await, node(&server).await];
    let general = nodes[0].backend.put_channel("general", "");
    general.await.unwrap();
    let mut talking = [login(&nodes[0], "ann").await, login(&nodes[1], "bob").await];
    for (client, _) in &talking {
        sees(client, "general").await;
    }
    for round in 0..4 {
        match round {
            1 => {
                server.kill();
                copy_folder(&data, &copy);
                server.restart();
            }
            2 => {
                server.kill();
                std::fs::remove_dir_all(&data).unwrap();
                std::fs::rename(&copy, &data).unwrap();
                server.restart();
            }
            _ => {}
        }
        let said = [format!("{round} by ann"), format!("{round} by bob")];
        for (text, (client, _)) in said.iter().zip(&talking) {
            let sent = client.send_message("general", text, Final::Yes);
            sent.await.unwrap();
        }
        for (_, events) in &mut talking {
            assert_eq!(messages(events, 2).await, said);
        }
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
