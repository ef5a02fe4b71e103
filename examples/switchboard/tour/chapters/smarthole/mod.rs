//! The third act: a router in this process, and clients that take messages, or do not.
//!
//! Read [`act`] from top to bottom.

mod script;

use std::sync::Arc;
use std::time::Duration;

use switchboard::cli::Failure;
use switchboard::screen::smarthole::Frames;
use switchboard::screen::{Colour, Screen};
use smarthole_proto::frame::Registration;
use smarthole_proto::hub::{HubConfig, Input, Outcome, Unroutable};
use smarthole_proto::net::{DROPPED, Server, ServerOptions};
use smarthole_proto::router::Keywords;

use self::script::{Ann, Does, Player};
use crate::tour::patience::{expect, in_time};

/// How long a client may take. The specification has 30 s, for which nobody would wait here.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Plays the act and says what was seen.
pub(crate) async fn act(screen: &Arc<Screen>) -> Result<String, Failure> {
    screen.title("18. A router, and clients that say what they can do");
    // The router compares words. One that asks a language model is `switchboard::router::ModelRouter`.
    let hub = HubConfig {
        response_timeout: RESPONSE_TIMEOUT,
        ..HubConfig::default()
    };
    let options = ServerOptions::new(hub);
    let server = Server::bind("127.0.0.1:0", Keywords::new(), options)
        .await
        .map_err(|error| Failure::new(format_args!("no port to listen on: {error}")))?;
    let (url, runtime, handle) = (server.url(), server.runtime(), server.handle());
    screen.note(&format!("the router listens on {url}"));
    let server = tokio::spawn(server.run());

    // One message has one number, whoever gets it.
    let frames = Frames::default();
    let shown = |name: &str, colour| screen.observer(name, colour, frames.clone());
    let register = async |name, colour, description, does| {
        let registration = Registration::new(name, description);
        Player::register(&url, registration, does, shown(name, colour)).await
    };
    let broken = Does::Rejects("The bulb is broken.");
    let lists = "Keeps notes and shopping lists.";
    let light = "Gives some light when nothing else does.";
    let sieve = Registration::new("sieve", "Lets through.");
    let players = [
        register("notes", Colour::Cyan, lists, Does::Takes).await?,
        register("lights", Colour::Magenta, "Switches lights.", broken).await?,
        register("torch", Colour::Yellow, light, Does::Takes).await?,
        register("alarm", Colour::Green, "Wakes people.", Does::Sleeps).await?,
        register("diary", Colour::Cyan, "Keeps appointments.", Does::Takes).await?,
        Player::register_sieve(&url, sieve, shown("sieve", Colour::Magenta)).await?,
    ];
    let mut ann = Ann::new(&runtime, screen);

    screen.title("19. Who is named gets the message, without the name");
    let settled = ann.says(Input::text("Notes: buy milk")).await?;
    ann.is_taken_by(&settled, &["notes"])?;
    ann.is_shown("buy milk").await?;

    screen.title("20. Everybody else is chosen");
    screen.note("the router knows their descriptions, and gives a reason");
    let settled = ann
        .says(Input::voice("put bread on my shopping list", Some(0.93)))
        .await?;
    ann.is_taken_by(&settled, &["notes"])?;
    ann.is_shown("put bread on my shopping list").await?;

    screen.title("21. Rejected, so it goes to somebody else");
    let settled = ann.says(Input::text("switch on the light")).await?;
    ann.is_taken_by(&settled, &["lights", "torch"])?;
    let first = settled.outcomes.first().map(|at| &at.outcome);
    let has_reason = matches!(
        first,
        Some(Outcome::Rejected { reason }) if reason == "The bulb is broken."
    );
    expect(has_reason, "the reason of the lights")?;
    ann.is_shown("switch on the light").await?;

    screen.title("22. No answer in time, so it goes to somebody else");
    screen.note("the alarm sleeps; its time is 1 s here, and 30 s in the specification");
    let text = "wake me for my appointment with the alarm";
    let settled = ann.says(Input::text(text)).await?;
    ann.is_taken_by(&settled, &["alarm", "diary"])?;
    let first = settled.outcomes.first().map(|at| &at.outcome);
    expect(first == Some(&Outcome::TimedOut), "the alarm to be late")?;
    ann.is_shown(text).await?;

    screen.title("23. Something for two");
    let text = "note that it is dark and bring the torch";
    let settled = ann.says(Input::text(text)).await?;
    ann.is_taken_by(&settled, &["notes", "torch"])?;
    ann.is_shown(text).await?;
    ann.is_shown(text).await?;

    screen.title("24. A message cannot be forgotten");
    screen.note("the sieve lets it fall, which rejects it at once, with a reason");
    let settled = ann.says(Input::text("sieve: keep this")).await?;
    let dropped = Outcome::Rejected {
        reason: DROPPED.into(),
    };
    let first = settled.outcomes.first().map(|at| &at.outcome);
    expect(first == Some(&dropped), "the sieve to reject it")?;
    screen.note("whom ann has named is her choice: nobody else gets it");
    expect(
        settled.unroutable == Some(Unroutable::Rejected) && settled.outcomes.len() == 1,
        "nobody else to get it",
    )?;

    screen.title("25. Nobody is bothered with what is for nobody");
    let settled = ann.says(Input::text("sing me a song")).await?;
    expect(
        settled.unroutable == Some(Unroutable::NobodyChosen) && settled.outcomes.is_empty(),
        "nobody to be chosen",
    )?;

    screen.title("26. Goodbye, router");
    let drained = tokio::spawn(async move { handle.drain(Duration::from_secs(5)).await });
    for player in players {
        player.goes_home().await?;
    }
    let report = in_time("the end of the connections", drained).await?;
    let report = report.map_err(Failure::new)?;
    expect(report.aborted == 0, "no connection to be cut")?;
    in_time("the end of the router", server)
        .await?
        .map_err(Failure::new)?;
    Ok(ann.summary())
}
