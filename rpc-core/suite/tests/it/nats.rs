//! The rules of a store, kept by NATS.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::store::Store;
use store_suite::{Engine, Fault};
use switchboard_testing::nats::NatsServer;

struct Server(Mutex<NatsServer>);

#[async_trait]
impl Engine for Server {
    async fn connect(&self) -> Arc<dyn Store> {
        let mut config = NatsConfig::new(&self.0.lock().unwrap().url());
        config.timeout = Duration::from_secs(2);
        nats::connect(config).await.unwrap()
    }

    async fn fault(&self, fault: Fault<'_>) -> bool {
        let mut server = self.0.lock().unwrap();
        match fault {
            Fault::Stop => server.kill(),
            // It starts as well: those who are connected are back at once.
            Fault::Empty => server.restart_empty(),
            Fault::Start => server.restart(),
            Fault::DeleteLog(name) => {
                drop(server);
                return self.delete(name).await;
            }
            _ => return false,
        }
        true
    }
}

impl Server {
    async fn delete(&self, name: &str) -> bool {
        let url = self.0.lock().unwrap().url();
        let client = async_nats::connect(url).await.unwrap();
        let subject = format!("$JS.API.STREAM.DELETE.switchboard_{name}");
        let answer = client.request(subject, "".into()).await.unwrap();
        assert!(
            answer.payload.windows(7).any(|it| it == b"success"),
            "{answer:?}"
        );
        true
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn nats_conforms_to_all_store_rules() {
    store_suite::all(&Server(Mutex::new(NatsServer::start()))).await;
}
