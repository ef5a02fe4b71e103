//! `switchboard tour cluster`: one chat on three servers, one agent on three hosts, and a NATS server, while some
//! of them die.
//!
//! Everything is a process of its own on this machine, so that it can be killed. Read [`tell`] from top to
//! bottom.

mod agent;

use std::env;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;

use rpc_core::net::{LinkEvent, LinkState};
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::Final;
use snek_proto::net::{Client, Events, connect_with, dialer, link_config};
use switchboard::cli::Failure;
use switchboard::screen::snek::Frames;
use switchboard::screen::{Colour, Screen};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use super::patience::{expect, in_time};
use super::temp_dir::TempDir;

/// Tells the story.
pub(crate) async fn tell(screen: &Arc<Screen>) -> Result<(), Failure> {
    screen.title("1. A NATS server and three chat servers");
    let folder = TempDir::new("nats")?;
    let port = free_port()?;
    let mut nats = start_nats(&folder, port).await?;
    screen.note(&format!(
        "nats-server keeps what they share, on port {port}"
    ));
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let (node, line) = start_node(&["bot", "serve", "--open"], port).await?;
        let url = line.trim().trim_start_matches("listening on ").to_owned();
        nodes.push((node, url));
        if let Some((_, url)) = nodes.last() {
            screen.note(&format!("a chat server listens on {url}"));
        }
    }
    let urls: Vec<&str> = nodes.iter().map(|(_, url)| url.as_str()).collect();

    screen.title("2. One channel, and everybody speaks at once");
    // Ann knows all servers, and begins anywhere. The others know one each.
    let mut ann = Person::enter(screen, "ann", Colour::Cyan, &urls.join(",")).await?;
    let at = ann.client.node().map_or(0, |node| node.index());
    let [second, third] = [1, 2].map(|next| urls[(at + next) % urls.len()]);
    let mut bob = Person::enter(screen, "bob", Colour::Magenta, second).await?;
    let mut eve = Person::enter(screen, "eve", Colour::Green, third).await?;
    tokio::try_join!(
        ann.say("roses are red"),
        bob.say("violets are blue"),
        eve.say("sugar is sweet"),
    )?;
    let order = ann.hear(3).await?;
    expect(bob.hear(3).await? == order, "one order at Bob's server")?;
    expect(eve.hear(3).await? == order, "one order at Eve's server")?;
    screen.note(&format!("all hear the same: {}", order.join(" / ")));

    screen.title("3. Ann's server is killed");
    nodes[at].0.start_kill().map_err(Failure::new)?;
    screen.event("node", Colour::Red, "SIGKILL");
    in_time("Ann at another server", ann.comes_back()).await??;
    ann.say("I am still here").await?;
    for person in [&mut ann, &mut bob, &mut eve] {
        let heard = person.hear(1).await?;
        expect(heard == ["I am still here"], "what Ann says after it")?;
    }
    screen.note("she is at another server, and everybody hears her");

    screen.title("4. The NATS server is killed");
    nats.start_kill().map_err(Failure::new)?;
    screen.event("nats", Colour::Red, "SIGKILL");
    nats.wait().await.map_err(Failure::new)?;
    // A message waits for it, and is answered when it is stored.
    let (said, started) = tokio::join!(bob.say("is anybody there?"), async {
        let started = start_nats(&folder, port).await;
        screen.event("nats", Colour::Green, "is there again");
        started
    });
    let _nats = started?;
    said?;
    for person in [&mut ann, &mut bob, &mut eve] {
        let heard = person.hear(1).await?;
        expect(heard == ["is anybody there?"], "what Bob said meanwhile")?;
    }
    screen.note("what Bob said meanwhile has come, once, to everybody");

    for mut person in [ann, bob, eve] {
        person.client.close();
        while person.events.next_link().await.is_some() {}
    }
    agent::tell(screen, port).await?;
    screen.title(&format!(
        "All as expected: {} frames in {:.1} s.",
        screen.frames(),
        screen.elapsed(),
    ));
    screen.note("one order on three servers; two nodes and the NATS server killed, nothing lost");
    Ok(())
}

/// Somebody in the channel.
struct Person {
    client: Client,
    events: Events,
}

impl Person {
    async fn enter(
        screen: &Arc<Screen>,
        name: &str,
        colour: Colour,
        urls: &str,
    ) -> Result<Self, Failure> {
        let config = ClientConfig::new(name, "sesame");
        let link = link_config().with_observer(screen.observer(name, colour, Frames::default()));
        let dialer = dialer(urls, &config).map_err(Failure::new)?;
        let (client, events, connection) = connect_with(dialer, config, link);
        tokio::spawn(connection.run());
        in_time("a login", client.ready())
            .await?
            .map_err(Failure::new)?;
        Ok(Self { client, events })
    }

    async fn say(&self, text: &str) -> Result<(), Failure> {
        let sent = self.client.send_message("general", text, Final::Yes);
        let sent = in_time("an answer", sent).await?;
        sent.map(drop).map_err(Failure::new)
    }

    /// The next messages.
    async fn hear(&mut self, count: usize) -> Result<Vec<String>, Failure> {
        let mut heard = Vec::new();
        while heard.len() < count {
            let event = in_time("a message", self.events.next_link()).await?;
            match event {
                Some(LinkEvent::Event(ClientEvent::Message(message))) => {
                    heard.push(message.message.to_string());
                }
                Some(_) => {}
                None => return Err(Failure::new("the connection has ended")),
            }
        }
        Ok(heard)
    }

    /// Waits until the connection was lost and is there again.
    async fn comes_back(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.events.next_link().await {
            if matches!(event, LinkEvent::State(LinkState::Ready { .. })) {
                return Ok(());
            }
        }
        Err(Failure::new("the connection has ended"))
    }
}

async fn start_nats(folder: &TempDir, port: u16) -> Result<Child, Failure> {
    let mut command = Command::new("nats-server");
    command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]);
    command
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut nats = command.kill_on_drop(true).spawn().map_err(|error| {
        let hint = "install it, on Debian: apt-get install nats-server";
        Failure::new(format_args!("cannot start nats-server: {error}; {hint}"))
    })?;
    line_with(nats.stderr.take(), "Server is ready").await?;
    Ok(nats)
}

/// Starts a server of this program on a free port, and returns what it says then.
async fn start_node(args: &[&str], nats: u16) -> Result<(Child, String), Failure> {
    let program = env::current_exe().map_err(Failure::new)?;
    let nats = format!("nats://127.0.0.1:{nats}");
    let mut command = Command::new(program);
    command.args(args);
    command.args(["--listen", "127.0.0.1:0", "--nats", &nats]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut node = command.kill_on_drop(true).spawn().map_err(Failure::new)?;
    let line = line_with(node.stdout.take(), "listening on ").await?;
    Ok((node, line))
}

/// Waits for a line with this text. What comes later is read and dropped.
async fn line_with(
    out: Option<impl AsyncRead + Unpin + Send + 'static>,
    text: &str,
) -> Result<String, Failure> {
    let out = out.ok_or_else(|| Failure::new("a program has no output"))?;
    let mut lines = BufReader::new(out).lines();
    let reading = async {
        while let Some(line) = lines.next_line().await.map_err(Failure::new)? {
            if line.contains(text) {
                return Ok(line);
            }
        }
        Err(Failure::new(format_args!(
            "a program ended before {text:?}"
        )))
    };
    let found = in_time(text, reading).await??;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(found)
}

fn free_port() -> Result<u16, Failure> {
    let free = TcpListener::bind("127.0.0.1:0").map_err(Failure::new)?;
    let address = free.local_addr().map_err(Failure::new)?;
    Ok(address.port())
}
