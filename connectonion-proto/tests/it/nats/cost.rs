//! What a prompt costs on NATS: the numbers in the guide.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use switchboard_testing::nats::NatsServer;

use super::hosts::{Host, Stored, long};
use crate::staff::Client;

/// The prompts over which is counted.
const PROMPTS: u64 = 50;

/// A NATS server that counts.
struct Counting {
    nats: NatsServer,
    monitor: String,
}

/// What went over all connections.
#[derive(Clone, Copy)]
struct Count {
    messages: u64,
    /// From the hosts to NATS.
    bytes: u64,
}

impl Counting {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let port = free.unwrap().port().to_string();
        Self {
            nats: NatsServer::start_with("", &["-m", &port]),
            monitor: format!("127.0.0.1:{port}"),
        }
    }

    fn count(&self) -> Count {
        let mut tcp = TcpStream::connect(&self.monitor).unwrap();
        tcp.write_all(b"GET /varz HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let number = |name: &str| body[name].as_u64().unwrap();
        Count {
            messages: number("in_msgs") + number("out_msgs"),
            bytes: number("in_bytes"),
        }
    }

    /// The messages of a prompt that is answered at once, in hundredths, and its bytes.
    async fn cost(&self, client: &mut Client<rpc_core::net::ws::WsStream>) -> Count {
        client.ask("hello").await;
        let before = self.count();
        for _ in 0..PROMPTS {
            client.ask("hello").await;
        }
        let after = self.count();
        Count {
            messages: (after.messages - before.messages) * 100 / PROMPTS,
            bytes: (after.bytes - before.bytes) / PROMPTS,
        }
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_prompt_costs_the_documented_number_of_messages() {
    let nats = Counting::start();
    let [a, b] = Host::two(&nats.nats.url(), long()).await;
    let session = json!({"session_id": "s"});
    let (mut at_owner, _) = Client::dial_in(&a.url, session.clone()).await;
    let owned = nats.cost(&mut at_owner).await.messages;
    drop(at_owner);
    let (mut through, _) = Client::dial_in(&b.url, session).await;
    let passed_on = nats.cost(&mut through).await.messages;
    println!("messages of a prompt, in hundredths: {owned}, through another host {passed_on}");
    assert!(owned <= 1150, "{owned}");
    assert!(passed_on <= 1150, "{passed_on}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn the_bytes_of_a_prompt_do_not_grow_with_the_conversation() {
    let nats = Counting::start();
    let [a, b] = Host::two(&nats.nats.url(), long()).await;
    let session = json!({"session_id": "s"});
    let (_owner, _) = Client::dial_in(&a.url, session.clone()).await;
    // OUTPUT has it, too, and does not pass NATS on its way through another host.
    let (mut client, _) = Client::dial_in(&b.url, session).await;
    let mut costs = Vec::new();
    while costs.len() < 4 {
        costs.push(nats.cost(&mut client).await.bytes);
    }
    println!("bytes of a prompt, after 0, 50, 100 and 150 others: {costs:?}");
    let first = costs[0];
    assert!(costs.iter().all(|bytes| *bytes < 2 * first), "{costs:?}");
    let stored = Stored::open(&nats.nats.url()).await;
    let kept = stored.sessions.state().await.unwrap().bytes;
    println!("bytes kept: {kept}");
}
