//! A Snek bot: it answers who mentions it, over one line and the next, until it is told to stop.

use futures_util::FutureExt as _;
use snek_proto::bot::{Bot, BotConfig, Context, Handler, State};
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::error::BotError;
use snek_proto::frame::{Final, Message};
use snek_proto::net::{self, Client, Events};
use tokio::{sync::watch, try_join};
use wasm_bindgen_futures::spawn_local;

use super::{Line, Outcome, expect, failed, soon};

struct Echo;

impl Handler for Echo {
    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        cx.reply(format!("hi {}", message.username)).await?;
        Ok(())
    }
}

async fn is_greeted(client: &Client, events: &mut Events) -> Outcome {
    let sent = client.send_message("general", "@bob hello", Final::Yes);
    sent.await.map_err(failed)?;
    loop {
        match soon(events.next()).await? {
            Some(ClientEvent::Message(it)) if it.username == *"bob" => {
                return expect(it.message.contains("hi alice"), &it.message);
            }
            Some(_) => {}
            None => return Err(failed("the events have ended")),
        }
    }
}

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let bot = Bot::new(url, BotConfig::new("bob", "builder"), Echo).map_err(failed)?;
    let (stop, mut stopped) = watch::channel(());
    let mut state = bot.lifecycle();
    let talk = async move {
        let is_running = |state: &State| *state == State::Running;
        soon(state.wait_for(is_running)).await?.map_err(failed)?;
        let config = ClientConfig::new("alice", "wonderland");
        let connected = net::connect(url, config).await;
        let (client, mut events, connection) = connected.map_err(failed)?;
        spawn_local(connection.run().map(drop));
        is_greeted(&client, &mut events).await?;
        line.control("drop").await?;
        soon(state.wait_for(|state| *state == State::Connecting))
            .await?
            .map_err(failed)?;
        soon(state.wait_for(is_running)).await?.map_err(failed)?;
        soon(client.ready()).await?.map_err(failed)?;
        is_greeted(&client, &mut events).await?;
        drop(stop);
        Ok(())
    };
    let run = bot.run_until(async move {
        let _ = stopped.changed().await;
    });
    try_join!(talk, run.map(|ran| ran.map(drop).map_err(failed)))?;
    Ok(())
}
