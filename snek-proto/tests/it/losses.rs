//! A client and a bot, and a line that is lost at every frame: each call and each streamed answer
//! ends, and what is said of a message is true.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::net::mem::MemTransport;
use rpc_core::net::{Driver, LinkEvent};
use rpc_core::{CallError, Delivery, Text};
use serde_json::json;
use snek_proto::bot::{Bot, Context, Handler, Notice};
use snek_proto::client::ClientConfig;
use snek_proto::error::BotError;
use snek_proto::frame::{Call, Final, Message, User};
use snek_proto::net::connect_with;
use snek_proto::server::{ServerConfig, ServerConn, ServerEvent};
use switchboard_testing::losses::{Lossy, at_every_frame};
use tokio::sync::{Notify, mpsc};

use crate::acting::config;

/// What was posted, and whether it was final.
type Posted = Arc<Mutex<Vec<(String, bool)>>>;

/// A server that takes every message, and mentions a bot when it logs in.
async fn serve(line: MemTransport, posted: Posted, mentions: bool) {
    let conn = ServerConn::new(ServerConfig::default(), rpc_core::net::time::now());
    let mut driver = Driver::new(conn, line);
    while let Some(event) = driver.next().await {
        let conn = driver.machine_mut();
        let said = match event {
            ServerEvent::Login { id, .. } => conn.accept_login(id, User::new("mybot", "MyBot")),
            ServerEvent::Request { id, call } => match call {
                Call::GetUser { .. } => conn.reply(id, &User::new("mybot", "MyBot")),
                Call::GetChannels => {
                    let channels = json!([{"uid": "ch1", "name": "general", "tag": "public"}]);
                    let reported = conn.reply(id, &channels);
                    if mentions {
                        let mention = json!({"event": "message", "message": "@MyBot hi",
                            "username": "ann", "user_nick": "ann", "channel_uid": "ch1",
                            "is_final": true});
                        let _ = conn.push(Text::from(mention.to_string()));
                    }
                    reported
                }
                Call::SendMessage {
                    message, is_final, ..
                } => {
                    let is_final = is_final == Final::Yes;
                    posted.lock().unwrap().push((message.to_string(), is_final));
                    conn.reply(id, &json!({"uid": "m"}))
                }
                _ => conn.reply(id, &json!({})),
            },
            _ => Ok(()),
        };
        // The line may have ended.
        let _ = said;
    }
}

fn host(mut listener: rpc_core::net::mem::MemListener, mentions: bool) -> Posted {
    let posted = Posted::default();
    let all = Arc::clone(&posted);
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            tokio::spawn(serve(line, Arc::clone(&all), mentions));
        }
    });
    posted
}

async fn calls(lossy: Lossy) {
    let posted = host(lossy.listener, false);
    let config = ClientConfig::new("mybot", "mypassword");
    let (client, mut events, connection) = connect_with(lossy.dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    for text in ["1", "2", "3"] {
        let said = loop {
            match client.send_message("ch1", text, Final::Yes).await {
                // The line is down: nothing was tried.
                Err(CallError::Refused(refused)) if refused.is_retryable() => {
                    client.ready().await.unwrap();
                }
                said => break said,
            }
        };
        let said = said.map(drop).map_err(|error| error.delivery());
        let posted = posted.lock().unwrap();
        let arrived = posted.iter().filter(|(it, _)| it == text).count();
        let possible = match said {
            Ok(()) | Err(Delivery::Delivered) => arrived == 1,
            Err(Delivery::NotSent) => arrived == 0,
            Err(_) => arrived <= 1,
        };
        assert!(possible, "{text}: {said:?}, and {posted:?}");
        assert!(said.is_ok() || lossy.loss.is_some());
    }
    client.close();
    client.closed().await;
    while let Some(event) = events.next_link().await {
        assert!(!matches!(event, LinkEvent::Lagged(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_ends_wherever_the_connection_is_lost() {
    at_every_frame(calls).await;
}

/// Answers a mention in three parts, once.
struct Streaming {
    ended: mpsc::UnboundedSender<Result<(), BotError>>,
    begun: Mutex<bool>,
}

impl Handler for Streaming {
    async fn on_mention(&self, cx: &Context, _: &Message) -> Result<(), BotError> {
        if std::mem::replace(&mut *self.begun.lock().unwrap(), true) {
            return Ok(());
        }
        let mut answer = cx.stream();
        for part in ["one", " two", " three"] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            answer.push(part);
            answer.flush().await;
        }
        let finished = answer.finish().await;
        let _ = self.ended.send(finished.map(drop));
        Ok(())
    }

    fn on_notice(&self, _: &Notice) {}
}

async fn streamed(lossy: Lossy) {
    let posted = host(lossy.listener, true);
    let (ended, mut recv) = mpsc::unbounded_channel();
    let begun = Mutex::new(false);
    let bot = Bot::with_dialer(lossy.dialer, config(), Streaming { ended, begun });
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(bot.run_until(async move { stopped.notified().await }));
    let answered = recv.recv().await.expect("the answer ends");
    let whole = posted
        .lock()
        .unwrap()
        .iter()
        .any(|(text, is_final)| text == "one two three" && *is_final);
    match &answered {
        Ok(()) => assert!(whole),
        Err(error) => assert!(lossy.loss.is_some(), "{error}"),
    }
    stop.notify_one();
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_streamed_reply_ends_wherever_the_connection_is_lost() {
    at_every_frame(streamed).await;
}
