//! A SmartHole client: it takes a message, drops one, leaves one unanswered, loses its line, registers again, waits too
//! long for a connection, and leaves.

use futures_util::FutureExt as _;
use smarthole_proto::CloseReason;
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::net::{self, Event, Events, InboundMessage};
use smarthole_proto::rpc_core::net::ws::WsConfig;
use tokio::join;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::{Line, MOMENT, Outcome, expect, failed, fails, leaves, soon};

fn config() -> Result<ClientConfig, JsValue> {
    let registration = Registration::new("page", "Shows messages in a page.");
    Ok(ClientConfig {
        response_timeout: MOMENT,
        ..ClientConfig::new(registration).map_err(failed)?
    })
}

async fn registers(events: &mut Events) -> Outcome {
    let event = soon(events.next()).await?;
    fails(event, |it| matches!(it, Some(Event::Registered { .. })))
}

async fn message(events: &mut Events) -> Result<InboundMessage, JsValue> {
    match soon(events.next()).await? {
        Some(Event::Message(message)) => Ok(message),
        other => Err(failed(format!("{other:?}"))),
    }
}

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let connected = net::connect(url, config()?).await;
    let (client, mut events, connection) = connected.map_err(failed)?;
    spawn_local(connection.run().map(drop));
    registers(&mut events).await?;
    takes(&mut events, line).await?;

    // The router tries the next client at once, and there is none.
    let dropped = message(&mut events).map(|message| message.map(drop));
    let (answer, dropped) = join!(line.control("ask"), dropped);
    dropped?;
    let answer = answer?;
    expect(answer.contains("dropped the message"), answer)?;

    let (answer, overdue) = join!(line.control("ask"), async {
        let unanswered = message(&mut events).await?;
        let event = soon(events.next()).await?;
        fails(event, |it| matches!(it, Some(Event::Overdue { .. })))?;
        unanswered.ack().await.map_err(failed)
    });
    overdue?;
    answer?;

    line.control("drop").await?;
    registers(&mut events).await?;
    takes(&mut events, line).await?;

    leaves(&client).await?;
    waits_no_longer(url, line).await
}

async fn waits_no_longer(url: &str, line: &Line) -> Outcome {
    line.control("hold").await?;
    let config = config()?;
    let dialer = net::dialer(url, &config).map_err(failed)?;
    let dialer = dialer.with_config(WsConfig {
        connect_timeout: MOMENT,
        ..WsConfig::default()
    });
    let (_client, _events, connection) = net::connect_with(dialer, config);
    let late = connection.establish().await.map(drop);
    line.control("release").await?;
    fails(late, |it| matches!(it, Err(CloseReason::Connect { .. })))
}

async fn takes(events: &mut Events, line: &Line) -> Outcome {
    let taken = async {
        let message = message(events).await?;
        expect(message.text == *"milk", &message.text)?;
        let noted = message.notify(Notification::new("noted")).await;
        noted.map_err(failed)
    };
    let (answer, taken) = join!(line.control("ask"), taken);
    taken?;
    let answer = answer?;
    expect(answer.contains("page"), answer)
}
