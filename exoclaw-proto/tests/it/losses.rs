//! A client and a gateway, and a line that is lost at every frame: each chat and each call ends, and
//! what is said of it is true.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::{Call, Status, StreamEvent, Usage};
use exoclaw_proto::net::{Client, connect_with};
use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::net::Driver;
use rpc_core::net::mem::MemTransport;
use rpc_core::{CallError, Delivery};
use switchboard_testing::losses::{Lossy, at_every_frame};

/// The contents of the chats that have arrived.
type Heard = Arc<Mutex<Vec<String>>>;

/// Answers a chat with three words, one each second.
async fn serve(line: MemTransport, received: Heard) {
    let (config, auth) = (ServerConfig::default(), Auth::token("s3cret").unwrap());
    let conn = ServerConn::new(config, auth, rpc_core::net::time::now());
    let mut driver = Driver::new(conn, line);
    let mut chats = Vec::new();
    loop {
        let event = tokio::select! {
            event = driver.next() => match event {
                Some(event) => event,
                None => return,
            },
            () = tokio::time::sleep(Duration::from_secs(1)), if !chats.is_empty() => {
                let conn = driver.machine_mut();
                chats.retain_mut(|(id, words)| match words {
                    0 => {
                        let _ = conn.event(*id, &StreamEvent::Usage(Usage::new(3, 3)));
                        conn.done(*id).is_err()
                    }
                    left => {
                        *left -= 1;
                        conn.text(*id, "word ").is_ok()
                    }
                });
                continue;
            }
        };
        let conn = driver.machine_mut();
        // The line may have ended.
        let _ = match event {
            ServerEvent::Request { id, call } => match call {
                Call::ChatSend(chat) => {
                    received.lock().unwrap().push(chat.content.to_string());
                    chats.push((id, 3));
                    Ok(())
                }
                Call::Status => conn.reply(id, &Status::new("0.1.0", 1, 2)),
                _ => conn.reply(id, &true),
            },
            _ => Ok(()),
        };
    }
}

async fn chat(
    client: &Client,
    content: &str,
) -> Result<usize, CallError<exoclaw_proto::error::RpcError>> {
    let mut chat = client.chat(content).await;
    let mut words = 0;
    while let Some(step) = chat.next().await {
        words += usize::from(matches!(step?, StreamEvent::Text(_)));
    }
    let summary = chat.summary().expect("a good end");
    assert_eq!(summary.usage, Usage::new(3, 3));
    Ok(words)
}

async fn scenario(lossy: Lossy) {
    let received = Heard::default();
    let all = Arc::clone(&received);
    let mut listener = lossy.listener;
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            tokio::spawn(serve(line, Arc::clone(&all)));
        }
    });
    let config = ClientConfig::new("s3cret");
    let (client, mut events, connection) = connect_with(lossy.dialer, config);
    tokio::spawn(connection.run());
    tokio::spawn(async move { while events.next().await.is_some() {} });
    client.ready().await.unwrap();
    for content in ["1", "2"] {
        let said = loop {
            match chat(&client, content).await {
                // The line is down: nothing was tried.
                Err(CallError::Refused(refused)) if refused.is_retryable() => {
                    client.ready().await.unwrap();
                }
                said => break said,
            }
        };
        let received = received.lock().unwrap().clone();
        let arrived = received.iter().filter(|it| *it == content).count();
        let possible = match said.as_ref().map_err(CallError::delivery) {
            Ok(words) => (*words, arrived) == (3, 1),
            Err(Delivery::Delivered) => arrived == 1,
            Err(Delivery::NotSent) => arrived == 0,
            Err(_) => arrived <= 1,
        };
        assert!(possible, "{content}: {said:?}, and {received:?}");
        let status = client.status().await;
        assert!((said.is_ok() && status.is_ok()) || lossy.loss.is_some());
        client.ready().await.unwrap();
    }
    client.close();
    client.closed().await;
}

#[tokio::test(start_paused = true)]
async fn every_chat_and_call_ends_wherever_the_connection_is_lost() {
    at_every_frame(scenario).await;
}
