//! A bot for Snek: `cargo run -p examples --bin bot -- --bind 127.0.0.1:8080` starts a server in memory and the bot, and
//! puts what you type into its channel, as others do with `cargo run -p switchboard -- bot chat`. Without `--bind`, and
//! with `SNEK_URL`, `SNEK_USER` and `SNEK_PASSWORD`, the bot goes to a server that exists.
//!
//! It answers who mentions it, streams its answer, and has a tool: say `@bot roll 20`.
//!
//! Left out: it remembers nothing, and its model is [`think`] of `src/lib.rs`. `wss://` needs the feature `tls`.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use examples::{Failure, Step, cannot, lines, options, roll, stopped, think};
use serde_json::{Value, json};
use snek_proto::bot::{Bot, BotConfig, Context, Handler, State};
use snek_proto::error::BotError;
use snek_proto::frame::{Final, Message};
use snek_proto::llm::chat::{ChatMessage, Content, Role, ToolCall};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};
use snek_proto::llm::toolloop::{Call, ChatModel, ToolFailure, ToolLoop, ToolLoopConfig, Tools};
use snek_proto::net::{MemoryBackend, Server, ServerOptions};

/// Where the server in memory listens.
const HERE: &str = "127.0.0.1:0";
/// Where it has people talk.
const CHANNEL: &str = "general";

/// What the bot does with messages.
pub(crate) struct Answering;

impl Handler for Answering {
    async fn on_mention(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        let _typing = cx.typing(); // as long as it lives
        // Its name and its nick are both spelled as its server has them.
        let name = |name: &str| format!("@{name}");
        let said = message.message.replace(&name(&cx.user().username), "");
        let said = said.replace(&name(&cx.user().nick), "");
        let said = said.trim_start_matches([' ', ',', ':']);
        let mut conversation = vec![ChatMessage::user(said)];
        // The loop asks the model, runs the tools that it wants, and stays within its limits.
        let tool_loop = ToolLoop::new(ToolLoopConfig::default());
        // Whatever happens now, there is one final message.
        let mut reply = cx.stream();
        let show = |piece: &str| reply.push(piece);
        tool_loop
            .run(&mut Scripted, &mut Dice::new(), &mut conversation, show)
            .await?;
        reply.finish().await?;
        Ok(())
    }

    async fn on_own_message(&self, _: &Context, message: &Message) -> Result<(), BotError> {
        if message.is_final == Final::Yes {
            println!("bot: {}", message.message);
        }
        Ok(())
    }

    /// Messages in a direct channel need no mention.
    async fn on_message(&self, cx: &Context, message: &Message) -> Result<(), BotError> {
        let channel = cx.channel_record();
        if channel.is_some_and(|it| it.tag.as_deref() == Some("dm")) {
            self.on_mention(cx, message).await?;
        }
        Ok(())
    }
}

/// The model. Yours sends the messages and the definitions of the tools to its provider.
struct Scripted;

impl ChatModel for Scripted {
    type Error = BotError;

    async fn answer(
        &mut self,
        messages: &[ChatMessage],
        _tools: &[ToolDefinition],
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ChatMessage, BotError> {
        let text_of = |it: &ChatMessage| it.content.text().into_owned();
        let prompt = messages.iter().rfind(|it| it.role == Role::User);
        let results = messages.iter().filter(|it| it.role == Role::Tool);
        let results: Vec<_> = results.map(text_of).collect();
        let prompt = prompt.map(text_of).unwrap_or_default();
        Ok(match think(&prompt, &results) {
            Step::Say(pieces) => {
                pieces.iter().for_each(|piece| on_text(piece));
                ChatMessage::assistant(pieces.concat())
            }
            Step::Tool { name, argument } => {
                let arguments = json!({ "sides": argument.parse().unwrap_or(6) });
                let call = ToolCall::new("call-1", name, arguments.to_string());
                ChatMessage::assistant(Content::None).with_tool_calls(vec![call])
            }
        })
    }
}

/// The bot's tool.
struct Dice([ToolDefinition; 1]);

impl Dice {
    fn new() -> Self {
        let sides = Param::new("sides", ParamType::Integer).with_default(6);
        Self([ToolDefinition::new("roll", "Rolls a die.").param(sides)])
    }
}

impl Tools for Dice {
    fn definitions(&self) -> &[ToolDefinition] {
        &self.0
    }

    async fn call(&mut self, call: &Call) -> Result<Value, ToolFailure> {
        if call.name != "roll" {
            return Err(ToolFailure::Call(format!("there is no tool {}", call.name)));
        }
        let sides = call.arguments.get("sides");
        let rolled = roll(&sides.map_or_else(String::new, Value::to_string));
        rolled.map(Value::from).map_err(ToolFailure::Tool)
    }
}

/// Starts a server in memory, and says on its channel what is typed. Returns its URL.
async fn serve(address: &str) -> Result<String, Failure> {
    let backend = MemoryBackend::new()
        .with_channel(CHANNEL, "General")
        .with_user("you", "", "You")
        .with_user("bot", "", "Bot")
        .open();
    let backend = Arc::new(backend);
    let server = Server::bind(address, backend.clone(), ServerOptions::default()).await;
    let server = server.map_err(cannot("listen on", address))?;
    let url = server.url();
    tokio::spawn(server.run());
    println!("chat at {url}: say `@bot hello`, or `@bot roll 20`");
    let mut lines = lines();
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if let Err(error) = backend.post("you", CHANNEL, &line, Final::Yes) {
                println!("not sent: {error}");
            }
        }
    });
    Ok(url)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let [address] = options(include_str!("bot.rs"), [("--bind", HERE)]);
    let setting = |name| std::env::var(name).ok();
    // An option says more than the environment.
    let (url, config) = match setting("SNEK_URL").filter(|_| address == HERE) {
        Some(url) => {
            let user = setting("SNEK_USER").unwrap_or_else(|| "bot".to_owned());
            let password = setting("SNEK_PASSWORD").unwrap_or_default();
            (url, BotConfig::new(user, password))
        }
        None => (serve(&address).await?, BotConfig::new("bot", "")),
    };
    let bot = Bot::new(&url, config, Answering)?;
    let mut state = bot.lifecycle();
    tokio::spawn(async move {
        let running = state.wait_for(|state| *state == State::Running).await;
        if running.is_ok() {
            println!("the bot is here");
        }
    });
    bot.run_until(stopped()?).await?; // reconnects until then; open answers may end
    Ok(())
}
