//! Replays: one side of a recording is played over real connections, the other one compared.
//!
//! # What is compared
//! The kind of each frame of the other side, their order on each connection, all members, and how a
//! connection ends. The order of members and the way in which values are written do not matter, and
//! pings and pongs of the transport are passed over. A frame is played once all that is recorded before
//! it has passed, so that a recording of several connections is played in its order.
//!
//! # What is bound
//! What the other side makes is bound to what it sends at the first use, and stands for the recorded
//! value from then on, in both directions: in frames that are played also within texts and paths.
//! Such values are those of members like `id`, `callId`, `session_id`, `token` and `signature`, and UUIDs,
//! hexadecimal digits and values like `task_fgz1hprz` in any member. What is bound once cannot stand for
//! another value later. Short values, of up to five characters, are bound for members of the same name
//! only. An id in letters alone, such as `main`, has to be the recorded one.
//!
//! Times are not compared: dates, numbers that could be the current time, and members like `ts`,
//! `created_at` or `duration_ms`. [`Options::tolerated`] has members that may have any value.

mod difference;
mod recording;
mod run;
mod sign;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use difference::{Difference, changes};
pub(crate) use recording::read;
pub(crate) use run::{Edit, run};
pub(crate) use sign::{is_signed, signs};

use crate::cli::duration;
use crate::tag;

/// How a recording is replayed.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(crate) struct Options {
    /// The server to call as the recorded client did. A path of its own replaces the recorded one.
    #[arg(required_if_eq("plays", "client"))]
    pub url: Option<String>,
    /// How much longer than recorded a frame may take.
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub timeout: Duration,
    /// A member that may have any value: its name, or the end of its path; may be given again.
    #[arg(long = "tolerate", value_name = "MEMBER")]
    pub tolerated: Vec<String>,
    /// A kind of frames that are neither played nor awaited, such as heartbeats; may be given again.
    #[arg(long = "ignore", value_name = "KIND")]
    pub ignored: Vec<String>,
    /// Send a header in place of the recorded one; may be given again.
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME:VALUE")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

/// Returns whether a frame has one of these kinds.
fn is_of(text: &str, kinds: &[String]) -> bool {
    !kinds.is_empty() && tag(text).is_some_and(|kind| kinds.iter().any(|it| *it == kind))
}
