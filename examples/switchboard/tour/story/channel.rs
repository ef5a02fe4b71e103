//! The last hop, Snek: a channel, a bot that tells news in it, and Zoe, who reads them.

use std::time::Duration;

use rpc_core::net::LinkEvent;
use snek_proto::bot::{Bot, BotConfig, Context, Handler};
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::error::BotError;
use snek_proto::frame::Final;
use snek_proto::net::{
    Client, Events, MemoryBackend, Server, ServerHandle, ServerOptions, connect_with, dialer,
    link_config,
};
use switchboard::cli::Failure;
use switchboard::screen::snek::Frames;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::hop::Hop;
use crate::tour::patience::in_time;

const BOT: &str = "herald";

/// Something for the bot to tell. Whoever gives it to the bot learns when that was done.
pub(super) struct News {
    pub(super) text: String,
    pub(super) told: oneshot::Sender<()>,
}

/// The bot. It tells news in the channel that it was asked to join.
struct Herald {
    news: Mutex<mpsc::Receiver<News>>,
}

impl Handler for Herald {
    async fn on_join(&self, cx: &Context) -> Result<(), BotError> {
        cx.reply("here I am, and tell what is new").await?;
        let (mut news, mut end) = (self.news.lock().await, cx.cancellation());
        loop {
            tokio::select! {
                next = news.recv() => match next {
                    Some(News { text, told }) => {
                        cx.reply(text).await?;
                        // Whoever has given it may have gone.
                        let _ = told.send(());
                    }
                    None => return Ok(()),
                },
                () = end.cancelled() => return Ok(()),
            }
        }
    }
}

/// The channel, with everybody in it.
pub(super) struct Channel {
    zoe: Client,
    events: Events,
    bot: JoinHandle<Result<rpc_core::net::DrainReport, BotError>>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
    handle: ServerHandle,
}

/// Opens the channel. What is sent to the second value the bot tells there.
pub(super) async fn open(hop: &Hop) -> Result<(Channel, mpsc::Sender<News>), Failure> {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user(BOT, "trumpet", "Herald")
        .with_user("zoe", "clover", "Zoe");
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default())
        .await
        .map_err(Failure::new)?;
    let (url, handle) = (server.url(), server.handle());
    hop.event(&format!("listens on {url}"));
    let server = tokio::spawn(async move {
        server.run().await;
    });

    let (sender, news) = mpsc::channel(1);
    let news = Mutex::new(news);
    let link = link_config().with_observer(hop.line("snek herald", Frames::default()));
    let mut config = BotConfig::new(BOT, "trumpet");
    config.link = link;
    let bot = Bot::new(&url, config, Herald { news }).map_err(Failure::new)?;
    let mut state = bot.lifecycle();
    let (stop, stopped) = oneshot::channel::<()>();
    let bot = tokio::spawn(bot.run_until(async {
        let _ = stopped.await;
    }));
    let ready = state.wait_for(|state| *state == snek_proto::bot::State::Running);
    in_time("the bot's login", ready)
        .await?
        .map_err(Failure::new)?;

    let config = ClientConfig::new("zoe", "clover");
    let dialer = dialer(&url, &config).map_err(Failure::new)?;
    let link = link_config().with_observer(hop.line("snek zoe", Frames::default()));
    let (zoe, events, connection) = connect_with(dialer, config, link);
    tokio::spawn(connection.run());
    in_time("zoe's login", zoe.ready())
        .await?
        .map_err(Failure::new)?;
    let channel = Channel {
        zoe,
        events,
        bot,
        stop,
        server,
        handle,
    };
    Ok((channel, sender))
}

impl Channel {
    /// Zoe says something.
    pub(super) async fn says(&self, text: &str) -> Result<(), Failure> {
        let sent = self.zoe.send_message("general", text, Final::Yes);
        in_time("the answer to a send_message", sent)
            .await?
            .map_err(Failure::new)?;
        Ok(())
    }

    /// What the bot says next.
    pub(super) async fn hears(&mut self) -> Result<String, Failure> {
        in_time("a message of the bot", self.next()).await?
    }

    async fn next(&mut self) -> Result<String, Failure> {
        while let Some(event) = self.events.next_link().await {
            if let LinkEvent::Event(ClientEvent::Message(message)) = event
                && &*message.username == BOT
            {
                return Ok(message.message.to_string());
            }
        }
        Err(Failure::new("expected a message of the bot"))
    }

    pub(super) async fn close(self, within: Duration) -> Result<(), Failure> {
        let _ = self.stop.send(());
        let ended = in_time("the end of the bot", self.bot).await?;
        ended.map_err(Failure::new)?.map_err(Failure::new)?;
        self.zoe.drain(within).await;
        self.handle.drain(within).await;
        in_time("the end of the channel", self.server)
            .await?
            .map_err(Failure::new)
    }
}
