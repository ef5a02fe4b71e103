//! The fourth act: an agent in this process, and people who talk to it.
//!
//! Read [`act`] from top to bottom.

mod script;

use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::auth::{InviteCodes, Signer};
use connectonion_proto::client::Taken;
use connectonion_proto::frame::{EventKind, Rejection, Scope};
use connectonion_proto::net::{RuntimeOptions, Server, ServerOptions};
use connectonion_proto::storage::MemoryStorage;
use connectonion_proto::trust::{AccessControl, TrustLevel};
use examples::agent::tools::tools;
use examples::agent::{Folder, Worker};
use examples::cli::Failure;
use examples::model::scripted::Scripted;
use examples::screen::{Colour, Screen};

use self::script::Player;
use crate::tour::patience::{expect, in_time};
use crate::tour::temp_dir::TempDir;

/// So fast does the model speak: a word in this time.
const PACE: Duration = Duration::from_millis(20);
/// What strangers have to know.
const CODE: &str = "red onion";
/// Three tools, one after the other. The second one is a human.
const THREE_TOOLS: &str = r#"!tool calculate {"expression": "1 + 1"}
!tool ask_user {"question": "Shall I go on?"}
!tool calculate {"expression": "3 + 3"}"#;
/// 1012: a host that ends comes back, as a rule.
const SERVICE_RESTART: u16 = 1012;

/// Plays the act and says what was seen.
pub(crate) async fn act(screen: &Arc<Screen>) -> Result<String, Failure> {
    screen.title("27. An agent, and a stranger at its gate");
    // The model follows rules; `agent host --provider` has those that think.
    let place = TempDir::new("agent")?;
    let folder = Folder::open(place.path()).map_err(Failure::new)?;
    let model = Scripted::default().with_pace(PACE).with_commands(true);
    let worker = Worker::new(Arc::new(model), "scripted", tools(Some(&folder)));
    let key = Signer::from_seed(&[1; 32]);
    let codes = InviteCodes::new([CODE]).map_err(Failure::new)?;
    let access = AccessControl::new(*key.address(), TrustLevel::Careful).with_invites(codes);
    let mut runtime = RuntimeOptions::with_access(access);
    runtime.storage = Arc::new(MemoryStorage::new(16));
    runtime.uploads = place.path().join("uploads");
    let options = ServerOptions::with_runtime(runtime);
    let host = Server::bind("127.0.0.1:0", worker, options)
        .await
        .map_err(|error| Failure::new(format_args!("no port to listen on: {error}")))?;
    let (url, handle, address) = (host.url(), host.handle(), *key.address());
    screen.note(&format!("the agent is at {url}"));
    let host = tokio::spawn(host.run());

    let mut ann = Player::connect("ann", Colour::Cyan, &url, address, screen)?;
    ann.is_asked_for_a_code().await?;
    let refused = in_time("a refusal", ann.agent.onboard("blue onion")).await?;
    expect(refused.is_err(), "a wrong code to be refused")?;
    screen.note("the line stays, and another try is welcome");
    in_time("a welcome", ann.agent.onboard(CODE))
        .await?
        .map_err(Failure::new)?;
    ann.is_let_in().await?;
    screen.note("the agent has kept her CONNECT: she need not send it again");

    screen.title("28. A tool");
    let answer = ann.asks("What is 6 * 7?").await?;
    expect(answer == "42", "the calculator's result")?;

    screen.title("29. A question, with options");
    let mut run = ann.says("Ask me which colour I like (red, green)").await;
    let ask = ann.is_asked(&mut run).await?;
    ask.answer("green").await.map_err(Failure::new)?;
    expect(ann.is_answered(run).await? == "green", "her answer")?;

    screen.title("30. A tool that waits for leave");
    let note = folder.path().join("notes.txt");
    let mut run = ann.says("Write buy milk to notes.txt").await;
    let leave = ann.has_to_approve(&mut run).await?;
    expect(!note.exists(), "nothing to be written before that")?;
    leave.approve(Scope::Once).await.map_err(Failure::new)?;
    ann.is_answered(run).await?;
    expect(note.exists(), "the file to be written")?;
    screen.note("once is once: the next time she is asked again");
    let mut run = ann.says("Write buy gold to notes.txt").await;
    let leave = ann.has_to_approve(&mut run).await?;
    leave.reject(Rejection::Hard).await.map_err(Failure::new)?;
    ann.is_answered(run).await?;
    let text = ann.asks("Read notes.txt").await?;
    expect(text == "buy milk", "the file to be as it was")?;

    screen.title("31. The line is cut while the agent works");
    let mut run = ann.says(THREE_TOOLS).await;
    ann.sees(&mut run, |kind| matches!(kind, EventKind::LlmCall(_)))
        .await?;
    ann.loses_the_line();
    screen.note("the agent goes on without her, until it has something to ask");
    let first = ann.result(&mut run).await?;
    expect(first == "2", "the first tool's result")?;
    let ask = ann.is_asked(&mut run).await?;
    ask.answer("yes").await.map_err(Failure::new)?;
    let (second, third) = (ann.result(&mut run).await?, ann.result(&mut run).await?);
    expect(second == "yes" && third == "6", "every other result once")?;
    let answer = ann.is_answered(run).await?;
    expect(answer == "2; yes; 6", "all results")?;
    screen.note("what she missed was told when she was back");

    screen.title("32. Something to add while the agent works");
    let mut run = ann.says("!slow 12 20").await;
    ann.sees(&mut run, |kind| matches!(kind, EventKind::LlmCall(_)))
        .await?;
    let taken = in_time("a word of the agent", ann.agent.interject("Count to 2!")).await?;
    let queued = matches!(taken, Ok(Taken::Queued { .. }));
    expect(queued, "it to be read at the next step")?;
    let answer = ann.is_answered(run).await?;
    expect(answer.contains("1 2 - done"), "an answer to both")?;

    screen.title("33. Stop");
    let mut run = ann.says("!slow 1000 20").await;
    ann.sees(&mut run, |kind| matches!(kind, EventKind::LlmCall(_)))
        .await?;
    ann.agent.interrupt().await.map_err(Failure::new)?;
    let answer = ann.is_answered(run).await?;
    expect(answer.ends_with('?'), "to be asked what she would like")?;

    screen.title("34. Somebody else asks for her conversation");
    let mut eve = Player::connect_as(&ann, "eve", Colour::Yellow, &url, screen)?;
    eve.is_asked_for_a_code().await?;
    in_time("a welcome", eve.agent.onboard(CODE))
        .await?
        .map_err(Failure::new)?;
    eve.is_let_in().await?;
    let (hers, other) = (ann.agent.session(), eve.agent.session());
    expect(hers.session_id != other.session_id, "another session")?;
    screen.note("she gets a session, but another one, and nothing of this one");

    screen.title("35. Goodbye, agent");
    let drained = tokio::spawn(async move { handle.drain(Duration::from_secs(5)).await });
    let mut seen = (0, 0, 0);
    for player in [&mut ann, &mut eve] {
        player.hears_goodbye(SERVICE_RESTART).await?;
        seen = player.counts(seen);
    }
    let report = in_time("the end of the connections", drained).await?;
    let report = report.map_err(Failure::new)?;
    expect(report.aborted == 0, "no connection to be cut")?;
    in_time("the end of the agent", host)
        .await?
        .map_err(Failure::new)?;
    let (runs, asked, lost) = seen;
    Ok(format!(
        "{runs} runs of an agent, {asked} questions to a human, {lost} line lost and resumed, 2 strangers let in"
    ))
}
