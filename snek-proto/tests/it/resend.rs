//! A message that is never answered, under a paused clock: how often and where it is repeated.

use async_trait::async_trait;
use rpc_core::Delivery;
use rpc_core::net::{Link, LinkConfig, LinkEvent, Queued, link, mem};
use snek_proto::bot::{Bot, BotConfig, Context, Handler, Notice};
use snek_proto::codec;
use snek_proto::frame::OwnedCall;
use snek_proto::net::ServerSide;
use snek_proto::server::{ServerConfig, ServerEvent};
use snek_proto::{BotError, Channel, Message, User};
use tokio::sync::mpsc;

#[derive(Debug, PartialEq)]
enum Seen {
    Notice(Notice),
    Sent { connection: usize },
    Failed(&'static str, Option<Delivery>),
}

struct Replier(mpsc::UnboundedSender<Seen>);

#[async_trait]
impl Handler for Replier {
    async fn on_message(&self, cx: &Context, _: &Message) -> Result<(), BotError> {
        cx.reply("hello").await?;
        Ok(())
    }

    async fn on_error(&self, _: &Context, error: BotError) {
        let _ = self.0.send(Seen::Failed(error.name(), error.delivery()));
    }

    fn on_notice(&self, notice: &Notice) {
        if matches!(notice, Notice::Resent { .. }) {
            let _ = self.0.send(Seen::Notice(notice.clone()));
        }
    }
}

/// Serves connections one after the other; answers everything but `send_message`. On the first
/// one the bot is spoken to.
async fn silent_server(mut listener: mem::MemListener, seen: mpsc::UnboundedSender<Seen>) {
    let mut connection = 0;
    while let Some(transport) = listener.accept().await {
        connection += 1;
        let side = ServerSide::new(ServerConfig::default());
        let (link, mut events, task) = link::over(side, transport, LinkConfig::default());
        tokio::spawn(task.run());
        while let Some(event) = events.next().await {
            if let Queued::Item(LinkEvent::Event(event)) = event
                && answer(&link, event, connection == 1).await
            {
                let _ = seen.send(Seen::Sent { connection });
            }
        }
    }
}

/// Whether it was a `send_message`, which gets no answer.
async fn answer(link: &Link<ServerSide>, event: ServerEvent, speak: bool) -> bool {
    let user = || User::new("bot", "Bot");
    let done = match event {
        ServerEvent::Login { id, .. } => {
            link.command(move |conn, _| conn.accept_login(id, user()).unwrap())
                .await
        }
        ServerEvent::Request { id, call } => match call {
            OwnedCall::SendMessage { .. } => return true,
            OwnedCall::GetChannels => {
                let message = Message::new("dm1", "ann", "Ann", "hi");
                let event = codec::encode(&message.as_event()).unwrap();
                link.command(move |conn, _| {
                    conn.reply(id, &[Channel::new("dm1", "Ann", Some("dm"))])
                        .unwrap();
                    if speak {
                        conn.push(event).unwrap();
                    }
                })
                .await
            }
            _ => {
                link.command(move |conn, _| conn.reply(id, &user()).unwrap())
                    .await
            }
        },
        _ => Ok(()),
    };
    done.is_err()
}

#[tokio::test(start_paused = true)]
async fn each_repeat_of_an_unanswered_message_has_a_connection_of_its_own() {
    let (dialer, listener) = mem::listen(8);
    let (sender, mut seen) = mpsc::unbounded_channel();
    let config = BotConfig::new("bot", "secret");
    let bot = Bot::with_dialer(dialer, config, Replier(sender.clone()));
    tokio::spawn(silent_server(listener, sender));
    tokio::spawn(bot.run_until(std::future::pending()));

    let resent = |attempt| {
        Seen::Notice(Notice::Resent {
            attempt,
            delivery: Delivery::Unknown,
        })
    };
    for expected in [
        Seen::Sent { connection: 1 },
        resent(2),
        Seen::Sent { connection: 2 },
        resent(3),
        Seen::Sent { connection: 3 },
        Seen::Failed("ConnectionError", Some(Delivery::Unknown)),
    ] {
        assert_eq!(seen.recv().await, Some(expected));
    }
}
