//! How many messages of NATS a prompt costs: the numbers in the guide.

use std::sync::atomic::Ordering;

use serde_json::json;
use switchboard_testing::nats::NatsServer;

use super::hosts::{Host, long};
use crate::staff::Client;

/// The prompts over which the messages are counted.
const PROMPTS: u64 = 50;

/// The messages that these hosts have sent and received.
fn messages(hosts: &[&Host]) -> u64 {
    let count = |host: &&Host| {
        let statistics = host.nats.client().statistics();
        let sent = statistics.out_messages.load(Ordering::Relaxed);
        sent + statistics.in_messages.load(Ordering::Relaxed)
    };
    hosts.iter().map(count).sum()
}

/// The messages of a prompt that is answered at once, in hundredths.
async fn cost(client: &mut Client<rpc_core::net::ws::WsStream>, hosts: &[&Host]) -> u64 {
    client.ask("hello").await;
    let before = messages(hosts);
    for _ in 0..PROMPTS {
        client.ask("hello").await;
    }
    (messages(hosts) - before) * 100 / PROMPTS
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_prompt_costs_the_messages_that_the_guide_says() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    let session = json!({"session_id": "s"});
    let (mut at_owner, _) = Client::dial_in(&a.url, session.clone()).await;
    let owned = cost(&mut at_owner, &[&a, &b]).await;
    drop(at_owner);
    let (mut through, _) = Client::dial_in(&b.url, session).await;
    let relayed = cost(&mut through, &[&a, &b]).await;
    println!("messages of a prompt, in hundredths: {owned}, through another host {relayed}");
    assert!(owned <= 650, "{owned}");
    assert!(relayed <= 1450, "{relayed}");
}
