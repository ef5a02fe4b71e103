//! The skill [`ASK_FIRST`]: with it a chat asks before it edits a file or runs a command. `Decisions`
//! keeps what waits for an answer, and what the user has allowed.

use std::collections::VecDeque;
use std::time::Duration;

use acolyte_proto::frame::ChatRequest;
use acolyte_proto::id::SessionId;
use rpc_core::sync::Mutex;
use tokio::time::Instant;

use super::workspace::{Change, Workspace};
use crate::assistant::Turn;
use crate::markdown::{code, fenced};

/// The name of the skill, and the word among the capabilities of a server that enforces it. The
/// protocol has no frame for an approval, but any server tells its model the skill's instructions.
pub const ASK_FIRST: &str = "ask-first";
/// The instructions, for servers that do not know the skill.
pub const INSTRUCTIONS: &str = "Before you edit or create a file or run a command, say what you are about \
    to do, with the change as a diff or the command, and end your answer with the question whether you may. \
    Do it only after the user has said yes.";
/// The state of a reply that asks.
pub const AWAITING_INPUT: &str = "awaiting-input";

/// Sessions with decisions; of more, the one that was used longest ago is forgotten.
const MAX_SESSIONS: usize = 64;
/// How long a question can be answered.
const EXPIRY: Duration = Duration::from_secs(60 * 60);

/// A kind of step that the user is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file is changed.
    Edit,
    /// A command runs.
    Command,
}

/// A step that the user is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its kind.
    pub kind: Kind,
    /// The question, in Markdown: what the step does, and all of it.
    pub question: String,
}

impl Step {
    /// Creates the step that makes this change.
    pub fn edit(change: &Change) -> Self {
        let Change { path, is_new, diff } = change;
        let verb = if *is_new { "create" } else { "change" };
        let (added, removed) = (diff.added, diff.removed);
        let block = fenced("diff", &diff.unified(path, *is_new));
        Self {
            kind: Kind::Edit,
            question: format!(
                "I want to {verb} {} (+{added} -{removed}):\n\n{block}",
                code(path)
            ),
        }
    }

    /// Creates the step that runs a line of the shell.
    pub fn command(line: &str) -> Self {
        Self {
            kind: Kind::Command,
            question: format!("I want to run this command:\n\n{}", fenced("sh", line)),
        }
    }
}

/// What the user says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This step may be done.
    Yes,
    /// All steps of this kind in the session may be done.
    Always,
    /// It may not; with the reason for the model.
    No(String),
}

impl Answer {
    pub(super) fn parse(text: &str) -> Self {
        let word = text.trim().trim_end_matches(['.', '!', ',']).to_lowercase();
        match word.as_str() {
            "yes" | "y" => Self::Yes,
            "always" | "a" => Self::Always,
            "no" | "n" | "" => Self::No("the user does not allow it".to_owned()),
            _ => Self::No(format!("the user does not allow it, and says: {text}")),
        }
    }
}

/// Returns whether a chat is to ask.
pub(super) fn is_wanted(request: &ChatRequest) -> bool {
    let mut skills = request.active_skills.iter();
    skills.any(|skill| skill.name == ASK_FIRST)
}

/// A chat that waits for an answer.
#[derive(Debug)]
pub(super) struct Pending {
    /// What the user wants done.
    pub(super) task: String,
    pub(super) workspace: Workspace,
    /// Its next step is the call that is asked about.
    pub(super) turn: Turn,
    pub(super) step: Step,
}

/// The decisions of all sessions, as long as the program runs.
#[derive(Debug, Default)]
pub(super) struct Decisions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    id: SessionId,
    allowed: Vec<Kind>,
    pending: Option<(Instant, Box<Pending>)>,
}

impl Decisions {
    /// Changes a session, which is now the one that was used last.
    fn change<T>(&self, id: &SessionId, change: impl FnOnce(&mut Session) -> T) -> T {
        let mut sessions = self.0.lock();
        let place = sessions.iter().position(|session| session.id == *id);
        let mut session = place
            .and_then(|place| sessions.remove(place))
            .unwrap_or_else(|| Session {
                id: id.clone(),
                allowed: Vec::new(),
                pending: None,
            });
        let changed = change(&mut session);
        sessions.push_back(session);
        if sessions.len() > MAX_SESSIONS {
            sessions.pop_front();
        }
        changed
    }

    /// Keeps a chat until it is answered.
    pub(super) fn keep(&self, id: &SessionId, pending: Pending) {
        let expires = Instant::now() + EXPIRY;
        self.change(id, |session| {
            session.pending = Some((expires, Box::new(pending)));
        });
    }

    /// Returns the chat that waits, which waits no longer.
    pub(super) fn take(&self, id: &SessionId) -> Option<Pending> {
        let mut sessions = self.0.lock();
        let session = sessions.iter_mut().find(|session| session.id == *id)?;
        let (expires, pending) = session.pending.take()?;
        (Instant::now() < expires).then_some(*pending)
    }

    /// Allows all steps of a kind.
    pub(super) fn allow(&self, id: &SessionId, kind: Kind) {
        self.change(id, |session| {
            if !session.allowed.contains(&kind) {
                session.allowed.push(kind);
            }
        });
    }

    /// Returns whether all steps of a kind are allowed.
    pub(super) fn allows(&self, id: &SessionId, kind: Kind) -> bool {
        let sessions = self.0.lock();
        let session = sessions.iter().find(|session| session.id == *id);
        session.is_some_and(|session| session.allowed.contains(&kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::diff::Diff;

    #[test]
    fn only_a_clear_yes_allows_something() {
        for text in ["yes", " Y ", "Yes."] {
            assert_eq!(Answer::parse(text), Answer::Yes, "{text}");
        }
        assert_eq!(Answer::parse("always!"), Answer::Always);
        for text in ["no", "", "yes but not now", "yep", "use b.txt"] {
            assert!(matches!(Answer::parse(text), Answer::No(_)), "{text}");
        }
        let Answer::No(words) = Answer::parse("use b.txt") else {
            panic!("allowed")
        };
        assert!(words.contains("use b.txt"), "{words}");
    }

    #[test]
    fn a_name_cannot_be_markup_or_forge_a_line_of_a_diff() {
        let change = Change {
            path: "pkg/__init__.py".to_owned(),
            is_new: true,
            diff: Diff::new("", "x\r+y\u{202e}\n\tz\n"),
        };
        let question = Step::edit(&change).question;
        assert!(question.starts_with("I want to create `pkg/__init__.py` (+3 -0):\n\n```diff\n"));
        assert!(
            question.contains("\n+x\n++y\\u{202e}\n+\tz\n```"),
            "{question}"
        );
    }

    #[test]
    fn no_command_ends_its_block() {
        let step = Step::command("echo '\n```\n\nI want to run ls'");
        let fence = "\n````";
        assert_eq!(step.question.matches(fence).count(), 2, "{}", step.question);
        assert!(step.question.ends_with(fence));
    }

    #[test]
    fn old_sessions_are_forgotten() {
        let decisions = Decisions::default();
        let id = |number: u64| SessionId::random(number);
        for number in 0..=MAX_SESSIONS as u64 {
            decisions.allow(&id(number), Kind::Edit);
        }
        assert!(!decisions.allows(&id(0), Kind::Edit));
        assert!(decisions.allows(&id(1), Kind::Edit) && !decisions.allows(&id(1), Kind::Command));
    }
}
