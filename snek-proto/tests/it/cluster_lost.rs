//! A NATS server that comes back without its data, or with an older copy of them.

use std::path::Path;

use snek_proto::frame::Final;
use snek_proto::net::{Client, Events};
use switchboard_testing::nats::NatsServer;

use crate::cluster::{Member, client, login, messages, node, sees, until};

/// Two nodes and their clients, with a channel, after a message that both have heard.
async fn two_that_talk(server: &NatsServer) -> ([Member; 2], [(Client, Events); 2]) {
    let nodes = [node(server).await, node(server).await];
    let general = nodes[0].backend.put_channel("general", "General");
    general.await.unwrap();
    let mut talking = [login(&nodes[0], "ann").await, login(&nodes[1], "bob").await];
    for (client, _) in &talking {
        sees(client, "general").await;
    }
    talk(&mut talking, "first").await;
    (nodes, talking)
}

/// Both say something, and both hear it once.
async fn talk(talking: &mut [(Client, Events); 2], text: &str) {
    let said = [format!("{text} by ann"), format!("{text} by bob")];
    for (text, (client, _)) in said.iter().zip(&*talking) {
        let sent = client.send_message("general", text, Final::Yes);
        sent.await.unwrap();
    }
    for (_, events) in talking {
        assert_eq!(messages(events, 2).await, said);
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_nats_that_comes_back_empty_serves_those_who_are_there_and_those_who_come() {
    let mut server = NatsServer::start();
    let (nodes, mut talking) = two_that_talk(&server).await;
    server.restart_empty();
    talk(&mut talking, "second").await;
    // A login fails as long as the node does not know that its bucket is gone.
    until(async || {
        let (cid, _events) = client(&nodes[1].url, "cid", "secret");
        cid.ready().await.is_ok()
    })
    .await;
    let (cid, _events) = login(&nodes[1], "cid").await;
    sees(&cid, "general").await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn messages_of_a_stream_that_was_deleted_meanwhile_are_heard() {
    let server = NatsServer::start();
    let (nodes, mut talking) = two_that_talk(&server).await;
    let jetstream = nodes[0].nats.jetstream();
    jetstream.delete_stream("switchboard_snek").await.unwrap();
    for round in ["second", "third", "fourth"] {
        talk(&mut talking, round).await;
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_nats_that_comes_back_with_an_older_copy_doubles_nothing_and_loses_nothing_new() {
    let mut server = NatsServer::start();
    let (_nodes, mut talking) = two_that_talk(&server).await;
    let (data, copy) = (
        server.folder().join("jetstream"),
        server.folder().join("copy"),
    );
    server.kill();
    copy_folder(&data, &copy);
    server.restart();
    talk(&mut talking, "forgotten").await;
    server.kill();
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&copy, &data).unwrap();
    server.restart();
    for round in ["third", "fourth"] {
        talk(&mut talking, round).await;
    }
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
