//! What a server does before it edits or runs, and the user's answers to its questions.

use std::io::{self, IsTerminal as _};

use acolyte_proto::client::Outcome;
use acolyte_proto::frame::{Skill, Status};
use switchboard::cli::Failure;
use switchboard::daemon::ask_first::{ASK_FIRST, AWAITING_INPUT, INSTRUCTIONS};
use switchboard::terminal::{self, Input};

use super::connection::Wishes;

/// What can be answered.
pub(crate) const ALLOW: &str = "Allow? y/N/always, or say what to do instead:";
/// What the user is asked about a server that cannot be held to asking.
pub(crate) const MAY_WORK: &str =
    "This server may edit files and run commands without asking. Let it work? y/N";
/// Why a chat ends with a question.
pub(crate) const NOBODY: &str =
    "nobody was here to allow this; give --yes to let the server edit and run without asking";

/// The skill with which a server asks.
pub(crate) fn skill() -> Skill {
    Skill::new(ASK_FIRST, INSTRUCTIONS)
}

/// Returns whether a server asks by itself, whatever its model does.
pub(crate) fn is_enforced(status: &Status) -> bool {
    status.capability_words().any(|word| word == ASK_FIRST)
}

/// Returns whether a chat has ended with a question of the server.
pub(crate) fn is_question(outcome: &Outcome, status: &Status) -> bool {
    let state = outcome.reply().and_then(|reply| reply.state.as_deref());
    state == Some(AWAITING_INPUT) && is_enforced(status)
}

/// Returns whether the user has to be asked if the server may work, because it cannot be held to
/// asking.
///
/// # Errors
/// [`Failure`]: nobody is there to be asked.
pub(crate) fn needs_leave(wishes: &Wishes, status: &Status) -> Result<bool, Failure> {
    if wishes.yes || is_enforced(status) {
        return Ok(false);
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "this server cannot be held to asking before it edits or runs; give --yes to let it",
        ));
    }
    Ok(true)
}

/// Returns whether a line is a yes.
pub(crate) fn is_yes(text: &str) -> bool {
    ["y", "yes"].contains(&text.trim().to_lowercase().as_str())
}

/// The failure if the user does not let the server work.
pub(crate) fn not_allowed() -> Failure {
    Failure::new("nothing was done, because you did not allow it")
}

/// The lines with which the user answers.
#[derive(Debug, Default)]
pub(crate) struct Answers(Option<Input<Answer>>);

#[derive(Debug)]
struct Answer(String);

impl terminal::Line for Answer {
    const MAX_BYTES: usize = 64 * 1024;

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.trim().to_owned()))
    }

    fn wrong(why: String) -> Self {
        // Whatever was meant, it was no yes.
        Self(why)
    }

    fn quit() -> Self {
        Self(String::new())
    }

    fn is_quit(&self) -> bool {
        false
    }
}

impl Answers {
    /// The next answer; `None` if nobody is there.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let input = self.0.get_or_insert_with(terminal::plain);
        let Answer(text) = input.lines.recv().await?;
        Some(match text.as_str() {
            "" => "no".to_owned(),
            _ => text,
        })
    }
}
