//! Vectors of messages that a bot sends again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::CloseFrame;
use rpc_core::net::mem;
use serde_json::{Value, json};
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice, RetrySend};
use snek_proto::client::ClientConfig;
use snek_proto::error::BotError;
use snek_proto::frame::Message;
use tokio::time::Instant;

use super::{Vector, load};
use crate::scripted::Peer;

#[derive(Clone, Default)]
struct Sender {
    outcomes: Arc<Mutex<Vec<String>>>,
    resent: Arc<Mutex<Vec<Value>>>,
}

impl Handler for Sender {
    async fn on_mention(&self, cx: &Context, _: &Message) -> Result<(), BotError> {
        let outcome = cx.reply("hi").await;
        let name = outcome.as_ref().map_or_else(BotError::name, |_| "ok");
        self.outcomes.lock().unwrap().push(name.to_owned());
        Ok(())
    }

    fn on_notice(&self, notice: &Notice) {
        if let Notice::Resent { attempt, delivery } = notice {
            let seen = json!([attempt, format!("{delivery:?}")]);
            self.resent.lock().unwrap().push(seen);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resends_match_the_vectors() {
    let vectors: Vec<_> = load("send_retry").into_iter().map(Arc::new).collect();
    let mut failed = Vec::new();
    for vector in &vectors {
        if tokio::spawn(play(Arc::clone(vector))).await.is_err() {
            failed.push(vector.name());
        }
    }
    assert!(failed.is_empty(), "send_retry: {failed:#?}");
}

async fn play(vector: Arc<Vector>) {
    let name = vector.name();
    let (dialer, mut listener) = mem::listen(64);
    let client = ClientConfig::new("mybot", "mypassword");
    let client = ClientConfig {
        call_timeout: Duration::from_secs(10),
        ..client
    };
    let retry = match vector.try_str("retry") {
        None => RetrySend::default(),
        Some("OnlyIfUnsent") => RetrySend::OnlyIfUnsent,
        Some("EvenIfRefused") => RetrySend::EvenIfRefused,
        Some("Off") => RetrySend::Off,
        Some(other) => panic!("{other}"),
    };
    let config = BotConfig::new("mybot", "mypassword");
    let config = BotConfig {
        client,
        retry_send: retry,
        ..config
    };
    let sender = Sender::default();
    let bot = Bot::with_dialer(dialer, config, sender.clone());
    let running = tokio::spawn(bot.run_until(std::future::pending()));

    let mut first = None;
    let mut sent_at = Vec::new();
    let mut silent = Vec::new();
    for server in vector.strs("servers") {
        match server {
            "no login" => {
                drop(Peer::accept(&mut listener).await);
                continue;
            }
            "bad login" => {
                let mut line = Peer::accept(&mut listener).await;
                let login = line.request().await;
                line.refuse(&login, "wrong password").await;
                silent.push(line);
                continue;
            }
            _ => {}
        }
        let mut line = Peer::logged_in(&mut listener).await;
        if first.is_none() {
            line.send_message("ch1", "ann", "@MyBot").await;
        }
        let request = line.request().await;
        assert_eq!(request.method, "send_message", "{name}");
        assert_eq!(request.args, json!(["ch1", "hi", true]), "{name}");
        sent_at.push(first.get_or_insert_with(Instant::now).elapsed().as_secs());
        match server {
            "ok" => line.answer(&request, json!({})).await,
            "refuse" => line.refuse(&request, "no such channel").await,
            "refuse as text" => {
                let frame = json!({"callId": request.id, "success": false, "data": "no"});
                line.send(frame).await;
            }
            "cut" => {
                line.cut();
                continue;
            }
            "too large" => line.close(CloseFrame::TOO_BIG).await,
            "silent" => {}
            other => panic!("{other}"),
        }
        silent.push(line);
    }
    tokio::time::sleep(Duration::from_secs(25)).await;
    running.abort();
    assert_eq!(&json!(sent_at), vector.get("sent_at"), "{name}");
    assert_eq!(
        *sender.outcomes.lock().unwrap(),
        [vector.str("outcome")],
        "{name}"
    );
    assert_eq!(
        &json!(*sender.resent.lock().unwrap()),
        vector.get("resent"),
        "{name}"
    );
}
