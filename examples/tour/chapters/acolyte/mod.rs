//! The fifth act: a coding agent in this process, and somebody who gives it work.
//!
//! Read [`act`] from top to bottom.

mod script;

use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::Outcome;
use acolyte_proto::net::{Server, ServerOptions};
use acolyte_proto::task::TaskState;
use examples::cli::Failure;
use examples::daemon::command::{CommandConfig, Commands, Confinement};
use examples::daemon::{Toolbox, Worker, Workspace};
use examples::model::scripted::Scripted;
use examples::screen::{Colour, Screen};

use self::script::Player;
use crate::tour::patience::{expect, in_time};
use crate::tour::temp_dir::TempDir;

/// The file to be changed.
const POEM: &str = "poem.txt";
/// What clients have to show.
const KEY: &str = "0pen-sesam1";

/// Plays the act and says what was seen.
pub(crate) async fn act(screen: &Arc<Screen>) -> Result<String, Failure> {
    screen.title("36. A coding agent, and a wrong key");
    // The model follows rules; `daemon serve --provider` has those that think.
    let place = TempDir::new("daemon")?;
    place.write(POEM, "roses are red\n")?;
    let workspace = Workspace::open(place.path()).map_err(Failure::new)?;
    let mut commands = Commands::new(CommandConfig::default());
    if commands.check(&workspace).await.is_err() {
        // What is run here goes nowhere anyway.
        let open = CommandConfig::default().with_confinement(Confinement::Open);
        commands = Commands::new(open);
    }
    let toolbox = Toolbox::new(commands);
    let model = Scripted::default().with_commands(true).with_echo(true);
    let worker = Worker::new(Arc::new(model), "scripted", workspace, toolbox);
    let key = ApiKey::new(KEY).map_err(Failure::new)?;
    let options = ServerOptions::new(Auth::key(key));
    let server = Server::bind("127.0.0.1:0", worker, options)
        .await
        .map_err(|error| Failure::new(format_args!("no port to listen on: {error}")))?;
    let (url, handle) = (server.url(), server.handle());
    screen.note(&format!("the agent is at {url}, and works in one folder"));
    let server = tokio::spawn(server.run());

    let eve = Player::connect("eve", Colour::Yellow, &url, "0pen-barley", screen)?;
    let refused = in_time("a refusal", eve.client.ready()).await?;
    expect(refused.is_err(), "a wrong key to be refused")?;
    screen.event(
        "eve",
        Colour::Yellow,
        "the key is refused, before anything is said",
    );
    let ann = Player::connect("ann", Colour::Cyan, &url, KEY, screen)?;
    let ready = in_time("a connection", ann.client.ready()).await?;
    ready.map_err(Failure::new)?;
    let status = in_time("a status", ann.client.status()).await?;
    let status = status.map_err(Failure::new)?;
    status.agree(&["workspace.path"]).map_err(Failure::new)?;

    screen.title("37. A change, line by line");
    let (_, events) = ann.asks("edit poem.txt: red -> blue").await?;
    expect(events.diff == 2, "a line gone and a line new")?;
    expect(
        place.read(POEM)? == "roses are blue\n",
        "the file to be changed",
    )?;

    screen.title("38. Nothing leads out");
    let (_, events) = ann.asks("read ../../etc/passwd").await?;
    let code = events.failed.first().map(String::as_str);
    expect(
        code == Some("E_SANDBOX_VIOLATION"),
        "a violation of the sandbox",
    )?;

    screen.title("39. A plan");
    let (output, events) = ann
        .asks("plan: search roses; run cat poem.txt; rest")
        .await?;
    expect(
        events.lists == 4,
        "the list before each step, and at the end",
    )?;
    expect(output.ends_with("all is done"), "the plan to be done")?;

    screen.title("40. Three at once, and one of them changes her mind");
    let first = ann.starts("run sleep 60").await;
    let mut first = ann.sees_a_tool(first).await?;
    let mut second = ann.starts("create never.txt: x").await;
    let mut third = ann.starts("count to 2").await;
    expect(ann.waits(&mut second).await? == 1, "the second to wait")?;
    expect(
        ann.waits(&mut third).await? == 2,
        "the third to wait behind it",
    )?;
    let aborted = in_time("an abort", second.abort())
        .await?
        .map_err(Failure::new)?;
    expect(aborted, "something to be aborted")?;
    expect(ann.waits(&mut third).await? == 1, "the third to move up")?;
    screen.note("it does not run: now the one that does is aborted, in the middle of a command");
    in_time("an abort", first.abort())
        .await?
        .map_err(Failure::new)?;
    for chat in [&mut first, &mut second] {
        let outcome = in_time("the end of a chat", chat.finish()).await?;
        expect(matches!(outcome, Outcome::Aborted { .. }), "aborted chats")?;
    }
    let outcome = in_time("the end of a chat", third.finish()).await?;
    expect(outcome.is_done(), "the third to run at once, and be done")?;
    let task = first.task_id().cloned();
    let task = task.ok_or_else(|| Failure::new("expected a task"))?;
    let task = in_time("a task", ann.client.task_status(&task)).await?;
    let state = task.map_err(Failure::new)?.map(|task| task.state);
    expect(
        state == Some(TaskState::Cancelled),
        "the task to be cancelled",
    )?;
    expect(
        !place.path().join("never.txt").exists(),
        "nothing to be written",
    )?;

    screen.title("41. The same over HTTP");
    let text = "edit poem.txt: blue -> red";
    let (output, events) = ann.asks_over_http(&url, KEY, text).await?;
    screen.note(&format!(
        "server-sent events tell the same, and {output:?} at the end"
    ));
    expect(events.diff == 2, "the same events as before")?;
    expect(
        place.read(POEM)? == "roses are red\n",
        "the file to be as it was",
    )?;

    screen.title("42. Goodbye, coding agent");
    let chats = ann.chats();
    let report = in_time("the end of the agent", handle.drain(Duration::from_secs(5))).await?;
    expect(report.aborted == 0, "no connection to be cut")?;
    in_time("the end of her connection", ann.client.closed()).await?;
    in_time("the end of the agent", server)
        .await?
        .map_err(Failure::new)?;
    Ok(format!(
        "{chats} chats of a coding agent, 2 of them aborted, 1 over HTTP, 1 key refused"
    ))
}
