//! Our ConnectOnion clients: a session runs one prompt at a time, so there is a client for each that
//! is in flight.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use connectonion_proto::auth::{Address, Draft, Signer, unix_seconds};
use connectonion_proto::client::ClientConfig;
use connectonion_proto::frame::Input;
use connectonion_proto::net::{Client, connect_lazy};

use super::Pace;
use crate::net::serve::host_key;
use crate::net::values::TEXT;

/// How many prompts a session gets: its conversation goes back with each answer.
const TURNS: usize = 16;

/// A client with a session of its own.
struct Caller {
    signer: Signer,
    host: Address,
    client: Client,
    turns: AtomicUsize,
}

impl Caller {
    async fn open(address: &str, place: usize) -> Self {
        let signer = Signer::from_seed(&[place as u8 + 2; 32]);
        let own = Signer::from_seed(&[place as u8 + 2; 32]);
        let host = *host_key().address();
        let options = ClientConfig {
            host: Some(host),
            ..ClientConfig::default()
        };
        let url = format!("ws://{address}/ws");
        let (client, _events, connection) = connect_lazy(&url, own, options).unwrap();
        tokio::spawn(connection.run());
        client.ready().await.unwrap();
        Self {
            signer,
            host,
            client,
            turns: AtomicUsize::new(0),
        }
    }

    async fn ask(&self) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        if turn > 0 && turn.is_multiple_of(TURNS) {
            self.client.new_session(false).await.unwrap();
        }
        let payload = Draft::new(unix_seconds(SystemTime::now()))
            .with_to(&self.host)
            .with("type", "INPUT")
            .with("prompt", TEXT);
        let mut input = Input::new(TEXT);
        input.signed = self.signer.sign_payload(&payload).unwrap();
        let output = self.client.send(input).await.finish().await.unwrap();
        assert_eq!(output.result, TEXT);
    }
}

pub(super) async fn load(address: &str, pace: Pace) {
    let mut callers = Vec::new();
    for place in 0..pace.in_flight {
        callers.push(Caller::open(address, place).await);
    }
    pace.measure(|place| callers[place].ask()).await;
}
