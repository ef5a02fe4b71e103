//! The second act: a whole gateway in this process, and clients that talk to it.
//!
//! Read [`act`] from top to bottom.

mod script;

use std::sync::Arc;
use std::time::Duration;

use switchboard::cli::Failure;
use switchboard::gateway::config::{Config, Origin};
use switchboard::gateway::setup::{Gateway, Overrides};
use switchboard::screen::{Colour, Screen};
use exoclaw_proto::budget::{Exceeded, Scope};
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::error::ErrorKind;
use rpc_core::{CloseFrame, CloseReason, Secret};

use self::script::{Ann, Seen, holds, piece, read};
use crate::tour::patience::{expect, in_time};

/// What a file would hold. Every key has a default; see `examples/switchboard/gateway/gateway.toml`.
const CONFIG: &str = r#"
[gateway]
port = 0                # any free one
data_dir = ":memory:"   # nothing is kept after the tour
extensions = true       # the methods that the specification only reserves

[agent]
provider = "scripted"   # a few rules; "anthropic" and "openai" need feature `llm` and a key

[[plugins]]
name = "echo"
path = "builtin:echo"

[[plugins]]
name = "clock"
path = "builtin:clock"

[budgets]
session = 2000          # tokens
"#;

const TOKEN: &str = "open sesame, please";

/// Plays the act and says what was seen.
pub(crate) async fn act(screen: &Arc<Screen>) -> Result<String, Failure> {
    screen.title("9. A gateway, and a token that is wrong");
    let config = Config::parse(CONFIG, &Origin::default()).map_err(Failure::new)?;
    expect(config.warnings.is_empty(), "a configuration without a flaw")?;
    let overrides = Overrides {
        token: Some(Secret::from(TOKEN)),
        ..Overrides::default()
    };
    let gateway = Gateway::start(config.config, overrides, &|_| None)
        .await
        .map_err(Failure::new)?;
    expect(gateway.warnings().is_empty(), "a gateway without warnings")?;
    let (url, handle) = (gateway.url(), gateway.handle());
    screen.note(&format!("the gateway listens on {url}"));
    let gateway = tokio::spawn(gateway.run());

    let seen = Seen::default();
    let connect = |name: &'static str, colour, token: &str| {
        let config = ClientConfig::new(token);
        Ann::connect(&url, (name, colour), config, screen, &seen)
    };
    let eve = connect("eve", Colour::Yellow, "a guess")?;
    let refused = in_time("a refusal", eve.client.ready()).await?;
    let is_refused = matches!(refused, Err(CloseReason::Authentication { .. }));
    expect(is_refused, "the token to be refused, for good")?;
    eve.ended().await?;

    screen.title("10. The right token, and an answer that comes word by word");
    let ann = connect("ann", Colour::Cyan, TOKEN)?;
    ann.ready().await?;
    let mut chat = ann.client.chat("!slow 8 60").await;
    piece(&mut chat).await?;
    screen.note("a ping in the middle is answered at once");
    ann.pings().await?;
    holds(&read(&mut chat).await?, "2 3 4 5 6 7 8")?;
    let place = |chat: Option<exoclaw_proto::id::CallId>, name| {
        let id = chat.map(|id| id.to_string()).unwrap_or_default();
        seen.first(&id, name)
    };
    let (pong, done) = (seen.first_result(), place(chat.id(), "done"));
    expect(
        pong.is_some() && pong < done,
        "the ping's answer before the chat's end",
    )?;

    screen.title("11. Tools: the model asks, the gateway runs them, the model answers");
    ann.asks("echo good morning", "good morning").await?;
    ann.asks("how late is it?", "UTC").await?;

    screen.title("12. What a user says is remembered");
    ann.asks("My name is Ann. Count to 3!", "1 2 3").await?;
    ann.asks("What do you know of me?", "Ann").await?;

    screen.title("13. Another session knows nothing of it");
    let answer = ann.asks_as("work", "What do you know of me?", "").await?;
    expect(!answer.contains("Ann"), "nothing of the first session")?;

    screen.title("14. A budget runs out");
    let long = "Tell me a very long story. ".repeat(150) + "Count to 1!";
    ann.asks_as("stories", &long, "").await?;
    screen.note("the past is part of each question, so the next one is too much");
    let error = ann.is_refused(ann.other("stories", &long)).await?;
    let exceeded = Exceeded::parse(error.message());
    let is_budget = error.kind() == ErrorKind::BudgetExceeded
        && exceeded.is_some_and(|it| it.scope == Scope::Session && it.limit == 2000);
    expect(is_budget, "the session's budget to be used up")?;
    screen.note("other sessions have budgets of their own");
    ann.asks("Count to 2!", "1 2").await?;

    screen.title("15. Two sessions side by side on one connection");
    let mut first = ann.client.chat("!slow 4 60").await;
    let mut second = ann.client.chat_send(ann.other("work", "!slow 4 60")).await;
    holds(&read(&mut first).await?, "1 2 3 4")?;
    holds(&read(&mut second).await?, "1 2 3 4")?;
    let (a, b) = (first.id(), second.id());
    let mixed = place(a, "text") < place(b, "done") && place(b, "text") < place(a, "done");
    expect(
        mixed && place(b, "text").is_some(),
        "answers that are interleaved",
    )?;

    screen.title("16. A client leaves in the middle of an answer");
    let bo = connect("bo", Colour::Green, TOKEN)?;
    bo.ready().await?;
    let mut chat = bo.client.chat("!slow 100 100").await;
    piece(&mut chat).await?;
    drop(chat);
    screen.note("bo forgets the answer, and the connection goes on");
    bo.pings().await?;
    bo.leaves().await?;
    screen.note("nobody listens any more: the model stops, and the session is free at once");
    let bo = connect("bo", Colour::Green, TOKEN)?;
    bo.ready().await?;
    let mut chat = bo.client.chat("Count to 3!").await;
    holds(&read(&mut chat).await?, "1 2 3")?;
    let cost = chat.summary().map_or(0, |summary| summary.usage.total());
    let session = bo.client.session();
    let turns = in_time("a history", bo.client.chat_history(session.clone(), None)).await?;
    let turns = turns.map_err(Failure::new)?;
    let marks = turns.iter().map(|turn| turn.mark.as_deref());
    expect(
        marks.eq([Some("stopped"), None]),
        "both turns to be remembered, the first as stopped",
    )?;
    let budget = in_time("a budget", bo.client.budget_status(Some(session))).await?;
    let used = budget
        .map_err(Failure::new)?
        .session
        .map_or(0, |session| session.used);
    expect(used > cost, "the tokens of both answers to be counted")?;
    bo.leaves().await?;

    screen.title("17. Goodbye, gateway");
    let mut chat = ann.client.chat("!slow 4 60").await;
    piece(&mut chat).await?;
    screen.note("the gateway ends: nothing new, and what is under way is finished");
    let drained = tokio::spawn(async move { handle.drain(Duration::from_secs(5)).await });
    holds(&read(&mut chat).await?, "2 3 4")?;
    let why = in_time("the gateway's goodbye", ann.client.closed()).await?;
    let said_goodbye =
        matches!(&why, CloseReason::Peer(frame) if frame.code == CloseFrame::GOING_AWAY);
    expect(said_goodbye, "the gateway to say goodbye with code 1001")?;
    ann.ended().await?;
    let report = in_time("the end of the connections", drained).await?;
    let report = report.map_err(Failure::new)?;
    expect(report.aborted == 0, "no connection to be cut")?;
    in_time("the end of the gateway", gateway)
        .await?
        .map_err(Failure::new)?;

    for (name, times) in [
        ("refused 4001", 1),
        ("hello", 3),
        ("failure", 1),
        ("result", 4),
        ("tool_use", 2),
        ("tool_result", 2),
        ("error", 0),
        ("unreadable", 0),
    ] {
        let found = seen.count(name);
        expect(
            found == times,
            &format!("{times} times {name:?}, not {found}"),
        )?;
    }
    Ok(format!(
        "{} answers of a gateway in {} pieces of text, 2 tools, 1 token refused, 1 budget used up, 1 client lost",
        seen.count("done"),
        seen.count("text"),
    ))
}
