//! A tour of the five protocols: `cargo run -p examples`.
//!
//! It starts the servers of the five programs beside it, each on a free port of this machine, and talks to them as
//! a client does. Nothing here needs an account.
#![allow(clippy::print_stdout)]
#![allow(dead_code, reason = "the `main` of the other programs")]

mod agent;
mod bot;
mod daemon;
mod gateway;
mod router;

use std::io::Write as _;

use examples::{Failure, options};

type Outcome = Result<(), Failure>;

fn heading(protocol: &str, what: &str, url: &str) {
    println!("\n== {protocol}: {what} ({url})");
}

fn you(text: &str) {
    println!("   you  > {text}");
}

fn print(text: &str) {
    print!("{text}");
    // Who reads this may have left.
    let _ = std::io::stdout().flush();
}

/// A bot in a chat: it is mentioned, rolls a die with its tool, and its answer grows.
async fn snek() -> Outcome {
    use snek_proto::bot::{Bot, BotConfig, State};
    use snek_proto::client::{ClientConfig, ClientEvent};
    use snek_proto::frame::Final;
    use snek_proto::net::{self, MemoryBackend, Server, ServerOptions};

    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "", "Ann")
        .with_user("bot", "", "Bot");
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());
    heading("Snek", "a bot in a chat", &url);

    let bot = Bot::new(&url, BotConfig::new("bot", ""), bot::Answering)?;
    let mut state = bot.lifecycle();
    tokio::spawn(bot.run_until(std::future::pending()));
    state.wait_for(|state| *state == State::Running).await?;

    let (client, mut events, connection) = net::connect(&url, ClientConfig::new("ann", "")).await?;
    tokio::spawn(connection.run());
    you("@bot roll 20");
    client
        .send_message("general", "@bot roll 20", Final::Yes)
        .await?;
    while let Some(event) = events.next().await {
        match event {
            ClientEvent::Message(message) if message.username == "bot" => {
                println!("   bot  > {}", message.message);
                if message.is_final == Final::Yes {
                    break;
                }
            }
            _ => {} // our own message, and what does not concern us
        }
    }
    Ok(())
}

/// A gateway to a model: a streamed answer with a tool, and what it cost.
async fn exoclaw() -> Outcome {
    use exoclaw_proto::auth::Auth;
    use exoclaw_proto::client::ClientConfig;
    use exoclaw_proto::frame::StreamEvent;
    use exoclaw_proto::net::{self, Server, ServerOptions};

    let options = ServerOptions::new(Auth::token("secret")?);
    let server = Server::bind("127.0.0.1:0", gateway::Gateway::new()?, options).await?;
    let url = server.url();
    tokio::spawn(server.run());
    heading("Exoclaw", "a gateway to a model", &url);

    let (client, _events, connection) = net::connect(&url, ClientConfig::new("secret")).await?;
    tokio::spawn(connection.run());
    you("roll 6");
    let mut chat = client.chat("roll 6").await;
    print("   model> ");
    while let Some(event) = chat.next().await {
        match event? {
            StreamEvent::Text(text) => print(&text),
            StreamEvent::ToolUse(call) => print(&format!("[{} {}] ", call.name, call.input.get())),
            _ => {}
        }
    }
    let used = client.budget_status(None).await?.daily.used;
    println!("\n   {used} tokens of today's budget are used");
    Ok(())
}

/// An agent that asks: the connection is lost meanwhile, the question is not.
async fn connectonion() -> Outcome {
    use connectonion_proto::auth::Signer;
    use connectonion_proto::client::ClientConfig;
    use connectonion_proto::frame::{EventKind, Scope};
    use connectonion_proto::net::{self, RunEvent, Server, ServerOptions};
    use connectonion_proto::trust::TrustLevel;

    let key = Signer::generate()?;
    let options = ServerOptions::new(&key, TrustLevel::Open);
    let server = Server::bind("127.0.0.1:0", agent::Assistant, options).await?;
    let url = server.url();
    tokio::spawn(server.run());
    heading("ConnectOnion", "an agent that asks", &url);

    let options = ClientConfig {
        host: Some(*key.address()),
        ..ClientConfig::default()
    };
    let (agent, _events, connection) = net::connect(&url, Signer::generate()?, options).await?;
    tokio::spawn(connection.run());
    you("roll 6");
    let mut run = agent.chat("roll 6").await;
    while let Some(event) = run.next().await {
        match event? {
            RunEvent::Approval(asked) => {
                println!("   agent> may I use {}?", asked.question().tool);
                agent.cut();
                println!("   (the connection is cut, and comes back)");
                you("yes");
                asked.approve(Scope::Once).await?;
            }
            RunEvent::Step(step) => {
                if let EventKind::ToolCall(call) = &step.event.kind {
                    println!("   agent> [{}]", call.name);
                }
            }
            _ => {}
        }
    }
    if let Some(Ok(output)) = run.outcome() {
        println!("   agent> {}", output.result);
    }
    Ok(())
}

/// A router of what a user says: by words, by names, to several, and on to the next when one rejects.
async fn smarthole() -> Outcome {
    use smarthole_proto::frame::Registration;
    use smarthole_proto::hub::Input;
    use smarthole_proto::net::{Server, ServerOptions};
    use smarthole_proto::plugin::{AppError, Plugin, PluginConfig, handler_fn};

    let router = router::NamesThenWords::default();
    let server = Server::bind("127.0.0.1:0", router, ServerOptions::default()).await?;
    let (url, runtime) = (server.url(), server.runtime());
    tokio::spawn(server.run());
    heading("SmartHole", "a router of what you say", &url);

    for (name, description) in [
        ("notes", "Keeps notes and shopping lists."),
        (
            "lamp",
            "Switches the light, for instance for the shopping list at night.",
        ),
    ] {
        let plugin = PluginConfig::new(Registration::new(name, description))?;
        let handler = handler_fn(move |_, message| async move {
            if name == "notes" && message.text.contains("light") {
                return Err(AppError::rejected("I only keep notes"));
            }
            Ok(())
        });
        tokio::spawn(Plugin::new(&url, plugin, handler)?.run());
    }
    let mut events = runtime.events();
    while runtime.clients().len() < 2 {
        events.next().await;
    }
    for text in [
        "put milk on the shopping list",
        "light for the notes and shopping list, please",
        "notes and lamp: good night",
    ] {
        you(text);
        let settled = runtime.ask(Input::text(text)).await?;
        for one in settled.outcomes {
            println!("   {}: {}", one.client, router::describe(&one.outcome));
        }
    }
    Ok(())
}

/// A coding agent: it writes into its folder and not beside it, and an endless answer is aborted.
async fn acolyte() -> Outcome {
    use acolyte_proto::client::{ChatUpdate, ClientConfig};
    use acolyte_proto::event::Event;
    use acolyte_proto::frame::ChatRequest;
    use acolyte_proto::net::{self, Server, ServerOptions};
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    let name = format!("switchboard-tour-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&path)?;
    let agent = daemon::Coder {
        folder: Dir::open_ambient_dir(&path, ambient_authority())?,
        name: path.display().to_string(),
    };
    let server = Server::bind("127.0.0.1:0", agent, ServerOptions::default()).await?;
    let url = server.url();
    tokio::spawn(server.run());
    heading("Acolyte", "a coding agent in a folder", &url);

    let (client, _events, connection) = net::connect(&url, ClientConfig::default()).await?;
    tokio::spawn(connection.run());
    let model = client.status().await?.model;
    for text in [
        "write hello.txt Hello!",
        "read ../secret.txt",
        "count 10000",
    ] {
        you(text);
        let request = ChatRequest::new(text, model.clone());
        let mut chat = client.chat(request).await;
        let mut length = 0;
        print("   agent> ");
        while let Some(update) = chat.next().await {
            match update {
                ChatUpdate::Event(Event::TextDelta(text)) => {
                    print(&text);
                    length += text.len();
                }
                ChatUpdate::Event(Event::ToolCall(call)) => print(&format!("[{}] ", call.name)),
                _ => {}
            }
            if length > 80 {
                print(&format!("(aborted: {})", chat.abort().await?));
                chat.finish().await;
                break;
            }
        }
        println!();
    }
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let [] = options(include_str!("tour.rs"), []);
    snek().await?;
    exoclaw().await?;
    connectonion().await?;
    smarthole().await?;
    acolyte().await?;
    println!(
        "\nThe programs are a page or two each: read bot.rs, gateway.rs, agent.rs, router.rs, daemon.rs.\n\
         Start one and talk to it: cargo run -p examples --bin gateway\n\
         and in another terminal:  cargo run -p switchboard -- gateway chat"
    );
    Ok(())
}
