//! The first act: a server, a bot and a user in one process, over real WebSockets.
//!
//! Read `helper.rs` first, which is the whole bot, then [`act`] from top to bottom.

mod helper;
mod script;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard::assistant::Assistant;
use switchboard::cli::Failure;
use switchboard::model::scripted::Scripted;
use switchboard::pictures::FromHere;
use switchboard::screen::snek::Frames;
use switchboard::screen::{Colour, Screen};
use rpc_core::net::server::HttpConfig;
use snek_proto::bot::{Bot, BotConfig};
use snek_proto::client::ClientConfig;
use snek_proto::net::{MemoryBackend, Server, ServerOptions, connect_with, dialer, link_config};
use tokio::sync::{oneshot, watch};

use self::helper::{Helper, Progress};
use self::script::{Alice, reached};
use crate::tour::patience::in_time;

/// A picture of one black dot.
const DOT: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\
    \0\0\0\nIDATx\xdac`\0\0\0\x02\0\x01\xe5'\xde\xfc\0\0\0\0IEND\xaeB`\x82";

/// Plays the act and says what was seen.
pub(crate) async fn act(screen: &Arc<Screen>) -> Result<String, Failure> {
    screen.title("1. A server, a bot and a user");
    // The server keeps everything in memory. Port 0 is any free port.
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("helper", "a bot's password", "Helper")
        .with_user("alice", "wonderland", "Alice");
    // Beside the WebSocket it serves a picture, which is needed later.
    let http = HttpConfig::default()
        .with_http(|_, _| async { http::Response::new(Bytes::from_static(DOT)) });
    let options = ServerOptions {
        http,
        ..ServerOptions::default()
    };
    let server = Server::bind("127.0.0.1:0", backend, options)
        .await
        .map_err(|error| Failure::new(format_args!("no port to listen on: {error}")))?;
    let (url, backend, server_handle) = (server.url(), server.runtime(), server.handle());
    screen.note(&format!("the server listens on {url}"));
    let host = url
        .trim_start_matches("ws://")
        .split('/')
        .next()
        .unwrap_or_default();
    let server = tokio::spawn(server.run());

    // The bot: credentials, a handler, and one future that runs it. The observer shows frames.
    let (progress, mut helper_progress) = watch::channel(Progress::default());
    // The model follows a script. One behind a network needs feature `llm` and little else.
    let model = Scripted::default().with_pace(Duration::from_millis(60));
    let steps = Arc::clone(screen);
    let assistant = Assistant::new(Arc::new(model))
        .with_watcher(Arc::new(move |step| helper::show(&steps, step)));
    let helper = Helper {
        screen: Arc::clone(screen),
        progress,
        assistant,
        pictures: FromHere::new(host).map_err(Failure::new)?,
    };
    let link =
        link_config().with_observer(screen.observer("helper", Colour::Magenta, Frames::default()));
    let mut config = BotConfig::new("helper", "a bot's password");
    config.link = link;
    // Words that come faster than this are shown together.
    config.stream.interval = Duration::from_millis(150);
    let bot = Bot::new(&url, config, helper).map_err(Failure::new)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let bot = tokio::spawn(bot.run_until(async {
        let _ = stopped.await;
    }));
    reached(&mut helper_progress, "the helper's login", |p| {
        p.connections == 1
    })
    .await?;

    // The user: a client, its events, and a task that you spawn yourself.
    let config = ClientConfig::new("alice", "wonderland");
    let dialer = dialer(&url, &config).map_err(Failure::new)?;
    let link =
        link_config().with_observer(screen.observer("alice", Colour::Cyan, Frames::default()));
    let (client, events, connection) = connect_with(dialer, config, link);
    tokio::spawn(connection.run());
    let mut alice = Alice {
        client,
        events,
        progress: helper_progress.clone(),
        heard: 0,
        partials: 0,
    };
    alice.log_in().await?;

    screen.title("2. A ping is answered without a line of code");
    alice.says("ping hello").await?;
    alice.hears("pong hello").await?;

    screen.title("3. In a public channel the bot speaks when it was asked to join");
    alice.says("dice").await?;
    screen.note("no answer: the bot has not joined");
    alice.says("@Helper join").await?;
    alice.hears("here I am").await?;
    alice.says("dice 2d6").await?;
    alice.hears("makes").await?;

    screen.title("4. A mention, and an answer that grows while it is written");
    alice.says("@Helper can you count?").await?;
    alice.hears("1 2 3 - done").await?;

    screen.title("5. A tool: the model asks, the bot runs it, the model answers");
    alice.says("@Helper what did I say about dice?").await?;
    alice.hears("I found «Alice: dice 2d6»").await?;

    screen.title("6. A picture, fetched and shown to the model");
    let picture = format!("http://{host}/dot.png");
    alice.says(&format!("@Helper and this? {picture}")).await?;
    alice.hears("image/png").await?;

    screen.title("7. The bot's line is cut");
    let cut = backend.cut("helper");
    screen
        .note("no closing handshake, as if a cable was pulled; the first attempt comes after 1 s");
    reached(&mut helper_progress, "the helper's second login", |p| {
        p.connections == 2
    })
    .await?;
    screen.note("the channels that the bot has joined are kept, so it answers at once");
    alice.says("time").await?;
    alice.hears("UTC").await?;

    screen.title("8. Goodbye, bot");
    // Whoever ends first finishes what is under way: handlers, calls, connections.
    let _ = stop.send(());
    let ended = in_time("the end of the bot", bot)
        .await?
        .map_err(Failure::new)?;
    ended.map_err(Failure::new)?;
    alice.client.drain(Duration::from_secs(5)).await;
    server_handle.drain(Duration::from_secs(5)).await;
    in_time("the end of the server", server)
        .await?
        .map_err(Failure::new)?;

    if cut != 1 || alice.partials < 3 {
        let partials = alice.partials;
        let error = format!("expected 1 line cut and parts of answers, not {cut} and {partials}");
        return Err(Failure::new(error));
    }
    Ok(format!(
        "{} answers of a bot, {} parts before their whole, 1 lost line healed",
        alice.heard, alice.partials
    ))
}
