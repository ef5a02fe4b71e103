//! A router and a plugin, and a line that is lost at every frame: each message is settled, and what
//! is said of it is true, on both sides.

use std::sync::{Arc, Mutex};

use rpc_core::net::DriverConfig;
use smarthole_proto::frame::Notification;
use smarthole_proto::hub::{HubConfig, Input, Outcome};
use smarthole_proto::net::{InboundMessage, RouterOptions, RouterRuntime};
use smarthole_proto::plugin::{AppError, Context, Ended, Handler, Plugin, PluginConfig};
use smarthole_proto::server::ServerConfig;
use switchboard_testing::losses::{Lossy, at_every_frame};
use tokio::sync::Notify;

use crate::harness::Obedient;
use crate::played::registration;

/// Takes every message but those that it is told not to, and writes them down.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Handler for Notes {
    async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), AppError> {
        self.0.lock().unwrap().push(message.text.to_string());
        match &*message.text {
            "reject" => message.reject("no").await?,
            "notify" => message.notify(Notification::new("done")).await?,
            _ => message.ack().await?,
        }
        Ok(())
    }

    async fn on_error(&self, _: &Context, _: AppError) {}
}

async fn scenario(lossy: Lossy) {
    let runtime = RouterRuntime::new(HubConfig::default());
    let (running, door) = (runtime.clone(), runtime.clone());
    tokio::spawn(async move {
        let router = Arc::new(Obedient::default());
        running.run(router, RouterOptions::default()).await
    });
    let mut listener = lossy.listener;
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            tokio::spawn(door.serve(line, ServerConfig::default(), DriverConfig::default()));
        }
    });
    let notes = Notes::default();
    let config = PluginConfig::new(registration()).unwrap();
    let plugin = Plugin::with_dialer(lossy.dialer, config, notes.clone());
    let client = plugin.client();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(plugin.run_until(async move { stopped.notified().await }));
    for text in ["ack", "reject", "notify"] {
        client.ready().await.unwrap();
        // Both sides know of the line, or the message is refused.
        let settled = loop {
            match runtime.ask(Input::text(text)).await {
                Ok(settled) if !settled.outcomes.is_empty() => break settled,
                _ => {
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        };
        let received = notes.0.lock().unwrap();
        let times = received.iter().filter(|it| *it == text).count();
        let [settlement] = &settled.outcomes[..] else {
            panic!("{settled:?}");
        };
        let possible = match (text, &settlement.outcome) {
            ("ack", Outcome::Acked) | ("notify", Outcome::Notified) => times == 1,
            ("reject", Outcome::Rejected { reason }) if *reason == *"no" => times == 1,
            // The line was lost, or the answer with it.
            (_, Outcome::Rejected { .. } | Outcome::TimedOut) => lossy.loss.is_some(),
            _ => false,
        };
        assert!(possible, "{text}: {settled:?}, and {received:?}");
    }
    stop.notify_one();
    assert!(matches!(task.await.unwrap(), Ended::Stopped(_)));
    assert_eq!(runtime.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_message_is_settled_wherever_the_connection_is_lost() {
    at_every_frame(scenario).await;
}
