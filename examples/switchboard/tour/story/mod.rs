//! The story: what a person says goes through five protocols, and the answer comes back.
//!
//! ```text
//! person -> SmartHole router -> ConnectOnion agent -> Exoclaw gateway -> Acolyte coding agent
//!                                                                     -> Snek bot -> channel
//! ```
//!
//! Read [`tell`] from top to bottom, then a file for each hop: `router.rs`, `agent.rs`, `gateway.rs`,
//! `daemon.rs`, `channel.rs`. All of it is what the programs beside the tour are made of.

mod agent;
mod cable;
mod channel;
mod daemon;
mod gateway;
mod hop;
mod router;
mod script;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::Direction::{In, Out};
use switchboard::cli::Failure;
use switchboard::screen::{Colour, Screen};
use tokio::sync::Barrier;

use self::hop::Hop;
use crate::tour::patience::{expect, in_time};

/// The room for the names of the lines.
pub(crate) const LONGEST_NAME: usize = "connectonion".len();
/// What the coding agent finds.
pub(crate) const POEM: &str = "Roses are red,\nviolets are blue.\n";
/// What it leaves.
const NEW_POEM: &str = "Roses are blue,\nviolets are blue.\n";

/// What the person says, what Zoe reads, and what the person reads.
const WISH: &str = "make the roses in my poem blue";
const NEWS: &str = "News! changed poem.txt (+1 -1)";
const ANSWER: &str = "It is done: changed poem.txt (+1 -1), and the channel knows.";

/// How long a server's end may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// Tells the story. Whatever goes otherwise is an error.
pub(crate) async fn tell(screen: &Arc<Screen>, poem: &str) -> Result<(), Failure> {
    let smarthole = Hop::new("smarthole", Colour::Cyan, screen);
    let connectonion = Hop::new("connectonion", Colour::Magenta, screen);
    let exoclaw = Hop::new("exoclaw", Colour::Yellow, screen);
    let acolyte = Hop::new("acolyte", Colour::Green, screen);
    let snek = Hop::new("snek", Colour::Blue, screen);

    screen.title("1. Five servers on this machine, the last hop first");
    let pause = Arc::new(Barrier::new(2));
    let (mut channel, news) = channel::open(&snek).await?;
    let daemon = daemon::open(&acolyte, poem, Arc::clone(&pause)).await?;
    let gateway = gateway::open(&exoclaw, daemon.client(), news).await?;
    let agent = agent::open(&connectonion, gateway.client()).await?;
    let mut router = router::open(&smarthole, agent.remote()).await?;

    screen.title("2. In the channel Zoe asks the bot for news");
    channel.says("@Herald join").await?;
    let greeting = channel.hears().await?;
    expect(greeting.starts_with("here I am"), "the bot to join")?;

    screen.title("3. A person speaks, and each hop hands it to the next");
    screen.note("smarthole -> connectonion -> exoclaw -> acolyte, and exoclaw -> snek");
    screen.event("person", Colour::Bold, &format!("says {WISH:?}"));
    router.hears(WISH).await?;
    connectonion.until(In, r#""tool_call""#).await?;
    in_time("the coding agent to begin", pause.wait()).await?;
    acolyte.until(In, r#""running""#).await?;

    screen.title("4. The line to the agent is cut, and behind it the work goes on");
    screen.note("no closing handshake, as if a cable was pulled; the others do not notice");
    connectonion.event("the line is cut");
    agent.cut();
    pause.wait().await;
    let told = channel.hears().await?;
    exoclaw.until(In, r#""done""#).await?;

    screen.title("5. The line is there again, and what was missed is told");
    screen.note("the agent waits for leave to write into its diary, and then answers");
    connectonion.event("the line is mended");
    agent.mend();
    let answer = router.shows().await?;
    screen.event("person", Colour::Bold, &format!("reads {answer:?}"));

    screen.title("6. Everybody goes home, the first hop first");
    let (new_poem, diary) = (daemon.poem()?, agent.diary()?);
    router.close(GOODBYE).await?;
    agent.close(GOODBYE).await?;
    gateway.close(GOODBYE).await?;
    daemon.close(GOODBYE).await?;
    channel.close(GOODBYE).await?;

    same("what Zoe reads", &told, NEWS)?;
    same("what the person reads", &answer, ANSWER)?;
    same("the poem", &new_poem, NEW_POEM)?;
    same("the agent's diary", &diary, ANSWER)?;
    // The line came back, and nothing was said again because of that.
    connectonion.has(2, In, r#""type":"CONNECTED""#)?;
    connectonion.has(1, Out, r#""type":"INPUT""#)?;
    connectonion.has(1, In, r#""type":"OUTPUT""#)?;
    smarthole.has(1, In, r#""type":"message""#)?;
    exoclaw.has(1, Out, r#""chat.send""#)?;
    acolyte.has(1, Out, r#""chat.start""#)?;
    snek.has(1, Out, NEWS)?;

    screen.title(&format!("All as expected, in {:.1} s.", screen.elapsed()));
    for hop in [&smarthole, &connectonion, &exoclaw, &acolyte, &snek] {
        screen.note(&hop.summary());
    }
    screen.note("1 line cut and healed: nothing was lost, and nothing was done twice");
    screen.note(&format!("Zoe read {told:?}"));
    screen.note(&format!("the person read {answer:?}"));
    Ok(())
}

fn same(what: &str, found: &str, expected: &str) -> Result<(), Failure> {
    expect(
        found == expected,
        &format!("{what} to be {expected:?}, not {found:?}"),
    )
}
