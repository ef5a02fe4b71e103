//! A client and a daemon, and a line that is lost at every frame: each chat ends, running, queued or
//! aborted, and what is said of it is true.

use acolyte_proto::client::{ChatUpdate, ClientConfig, Outcome};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{Chat, Client, Server, ServerOptions, connect_with};
use rpc_core::{CallError, Delivery};
use switchboard_testing::losses::{Lossy, at_every_frame};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::daemon::puppet;

async fn start(client: &Client, message: &str) -> Chat {
    client.chat(ChatRequest::new(message.to_owned(), "m")).await
}

/// What is said of a chat is true.
fn check(ran: &[String], message: &str, outcome: &Outcome) {
    let times = ran.iter().filter(|it| *it == message).count();
    let possible = match outcome {
        Outcome::Done(_) => times == 1,
        // It may have waited still.
        Outcome::Aborted { .. } => times <= 1,
        other if other.delivery() == Delivery::NotSent => times == 0,
        _ => times <= 1,
    };
    assert!(possible, "{message}: {outcome:?}, and {ran:?}");
}

fn drain(recv: &mut UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| recv.try_recv().ok()).collect()
}

async fn scenario(lossy: Lossy) {
    let (agent, shared, mut recv) = puppet();
    let (server, _) = Server::mount(agent, ServerOptions::default());
    let handle = server.handle();
    tokio::spawn(server.run());
    let mut listener = lossy.listener;
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            handle.serve(line, None);
        }
    });
    let config = ClientConfig::default();
    let (client, mut events, connection) = connect_with(lossy.dialer, config);
    tokio::spawn(connection.run());
    tokio::spawn(async move { while events.next().await.is_some() {} });
    client.ready().await.unwrap();
    // One that runs, one that waits behind it, and one that is aborted while it waits.
    let mut running = start(&client, "wait").await;
    let mut queued = start(&client, "words").await;
    let mut aborted = start(&client, "never").await;
    while let Some(update) = aborted.next().await {
        if matches!(update, ChatUpdate::Queued { .. } | ChatUpdate::Started) {
            break;
        }
    }
    let abort = aborted.abort().await;
    shared.gate.notify_one();
    let last = [
        ("wait", running.finish().await),
        ("words", queued.finish().await),
        ("never", aborted.finish().await),
    ];
    // Another one, which is aborted while it runs.
    client.ready().await.unwrap();
    let mut hanging = start(&client, "hang").await;
    while let Some(update) = hanging.next().await {
        if matches!(update, ChatUpdate::Started) {
            break;
        }
    }
    let second = hanging.abort().await;
    let hung = hanging.finish().await;
    let status = client.status().await;
    client.close();
    client.closed().await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let ran = drain(&mut recv);
    for (message, outcome) in &last {
        check(&ran, message, outcome);
    }
    check(&ran, "hang", &hung);
    if lossy.loss.is_none() {
        let [(_, first), (_, behind), (_, never)] = &last;
        assert!(first.is_done() && behind.is_done(), "{last:?}");
        for (aborted, outcome) in [(abort, never), (second, &hung)] {
            assert!(matches!(aborted, Ok(true)), "{aborted:?}");
            assert!(matches!(outcome, Outcome::Aborted { .. }), "{outcome:?}");
        }
        assert!(status.is_ok());
    } else if let Err(error) = status {
        let reported = matches!(error, CallError::Closed { .. } | CallError::TimedOut { .. });
        assert!(
            reported || matches!(error, CallError::Refused(_)),
            "{error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_chat_ends_wherever_its_connection_is_lost() {
    at_every_frame(scenario).await;
}
