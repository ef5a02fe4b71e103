//! The skill [`ASK_FIRST`]: with it a chat asks before it edits a file or runs a command. `Decisions`
//! keeps what waits for an answer, and what the user has allowed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::frame::ChatRequest;
use acolyte_proto::id::SessionId;
use rpc_core::sync::Mutex;
use snek_proto::llm::chat::Role;
use tokio::time::Instant;

use super::toolbox::OVER_COMMAND;
use super::worker::history;
use super::workspace::{Change, Known, Workspace};
use crate::assistant::Turn;
use crate::markdown::code;
use crate::pages::{Meant, Pages};
use crate::text::printable_lines;

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

/// What is said of a file or folder whose name begins with a dot.
const SETTINGS: &str = "programs read such files by themselves, and may run what they hold: when a folder is \
    entered or opened, at a commit, or after a push";

/// A kind of step that the user is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file is changed.
    Edit,
    /// A file is changed that other programs read by themselves, and may run.
    Settings,
    /// A command runs.
    Command,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    Change(PathBuf, Option<String>, String),
    Command(String),
}

/// A step that the user is asked about. Two are equal if they do the same.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its kind.
    pub kind: Kind,
    effect: Effect,
    /// All of what it does, and how far the user has read it.
    pub(super) pages: Pages,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.effect == other.effect
    }
}

impl Step {
    /// Creates the step that makes this change.
    pub fn edit(change: &Change) -> Self {
        let verb = if change.is_new() { "create" } else { "change" };
        let (added, removed) = (change.diff.added, change.diff.removed);
        let mut about = format!(
            "I want to {verb} {} (+{added} -{removed})",
            code(&change.path)
        );
        if change.is_over_command {
            about.push_str(OVER_COMMAND);
        }
        let mut parts = change.path.split('/').filter(|part| part.starts_with('.'));
        let mut kind = Kind::Edit;
        if let Some(part) = parts.next() {
            about = format!("{about} – {}: {SETTINGS}", code(part));
            kind = Kind::Settings;
        }
        let effect = Effect::Change(change.file.clone(), change.old.clone(), change.new.clone());
        let text = change.diff.unified(&change.path, change.is_new());
        let pages = Pages::new(about, "diff", &text);
        Self {
            kind,
            effect,
            pages,
        }
    }

    /// Creates the step that runs a line of the shell.
    pub fn command(line: &str) -> Self {
        let about = "I want to run this command".to_owned();
        Self {
            kind: Kind::Command,
            effect: Effect::Command(line.to_owned()),
            pages: Pages::new(about, "sh", &printable_lines(line)),
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
    /// The next page.
    More,
    /// It may not; with the reason for the model.
    No(String),
}

impl Answer {
    /// Parses what is said to a step, which is not agreed to before it was read.
    pub(super) fn parse(text: &str, step: &Step) -> Self {
        let words = text.trim().trim_end_matches(['.', '!', ',']).to_lowercase();
        match step.pages.meant(&words) {
            Meant::More => return Self::More,
            Meant::Counted => return Self::Yes,
            Meant::Other => {}
        }
        match words.as_str() {
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
    /// What the user was shown last.
    pub(super) asked: String,
    /// Another chat of the session has spoken meanwhile.
    pub(super) has_rival: bool,
}

impl Pending {
    /// Returns whether a chat answers the question: its history ends with it. A client that sends none says a word
    /// that nothing but an answer would be; if there is another chat, only a no is safe.
    fn is_answered_by(&self, request: &ChatRequest) -> bool {
        match history::messages(request).pop() {
            Some(last) => {
                last.role == Role::Assistant && last.content.text().trim() == self.asked.trim()
            }
            None => {
                let text = request.message.trim().to_lowercase();
                let word = text.split(|c: char| !c.is_alphanumeric()).next();
                text.is_empty()
                    || matches!(word, Some("n" | "no"))
                    || !self.has_rival && !matches!(Answer::parse(&text, &self.step), Answer::No(_))
            }
        }
    }
}

impl Session {
    /// Returns what waits for an answer, and forgets what has waited too long.
    fn open(&mut self) -> Option<&mut Pending> {
        self.pending
            .take_if(|(expires, _)| *expires <= Instant::now());
        self.pending.as_mut().map(|(_, pending)| &mut **pending)
    }
}

/// The decisions of all sessions, as long as the program runs.
#[derive(Debug, Default)]
pub(super) struct Decisions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    id: SessionId,
    allowed: Vec<Kind>,
    pending: Option<(Instant, Box<Pending>)>,
    /// What its chats know of files.
    known: Arc<Known>,
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
                known: Arc::default(),
            });
        let changed = change(&mut session);
        sessions.push_back(session);
        if sessions.len() > MAX_SESSIONS {
            sessions.pop_front();
        }
        changed
    }

    /// Returns what the chats of a session know of files.
    pub(super) fn known(&self, id: &SessionId) -> Arc<Known> {
        self.change(id, |session| Arc::clone(&session.known))
    }

    /// Keeps a chat until it is answered; `false` if another one of the session waits for that.
    pub(super) fn keep(&self, id: &SessionId, pending: Pending) -> bool {
        let expires = Instant::now() + EXPIRY;
        self.change(id, |session| {
            let is_free = session.open().is_none();
            if is_free {
                session.pending = Some((expires, Box::new(pending)));
            }
            is_free
        })
    }

    /// Returns whether a chat of the session waits for an answer, when another one has to ask.
    pub(super) fn is_asking(&self, id: &SessionId) -> bool {
        self.change(id, |session| {
            let pending = session.open();
            pending.map(|pending| pending.has_rival = true).is_some()
        })
    }

    /// Returns the chat that waits for this answer, which waits no longer.
    ///
    /// # Errors
    /// The question, if one is open that this does not answer.
    pub(super) fn take(
        &self,
        id: &SessionId,
        request: &ChatRequest,
    ) -> Result<Option<Pending>, String> {
        self.change(id, |session| match session.open() {
            Some(pending) if !pending.is_answered_by(request) => {
                pending.has_rival = true;
                Err(pending.asked.clone())
            }
            _ => Ok(session.pending.take().map(|(_, pending)| *pending)),
        })
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
        let step = Step::command("ls");
        for text in ["yes", " Y ", "Yes.", "yes 1"] {
            assert_eq!(Answer::parse(text, &step), Answer::Yes, "{text}");
        }
        assert_eq!(Answer::parse("always!", &step), Answer::Always);
        for text in ["no", "", "yes but not now", "yep", "use b.txt", "yes 2"] {
            assert!(
                matches!(Answer::parse(text, &step), Answer::No(_)),
                "{text}"
            );
        }
        let Answer::No(words) = Answer::parse("use b.txt", &step) else {
            panic!("allowed")
        };
        assert!(words.contains("use b.txt"), "{words}");
    }

    fn change(path: &str, new: &str) -> Change {
        Change {
            path: path.to_owned(),
            file: path.into(),
            old: None,
            new: new.to_owned(),
            is_over_command: false,
            diff: Diff::new("", new),
        }
    }

    #[test]
    fn steps_are_equal_if_they_do_the_same() {
        let one = Step::edit(&change("a.txt", "\u{200b}"));
        let same = r"\u{200b}";
        assert_ne!(one, Step::edit(&change("a.txt", same)));
        assert_eq!(one, Step::edit(&change("a.txt", "\u{200b}")));
        assert_ne!(one, Step::edit(&change("b.txt", "\u{200b}")));
        assert_eq!(
            one.pages.question(),
            Step::edit(&change("a.txt", same)).pages.question()
        );
    }

    #[test]
    fn a_question_says_what_becomes_of_a_file_that_programs_run_by_themselves() {
        for path in [".envrc", ".vscode/tasks.json", "sub/.husky/pre-commit"] {
            let step = Step::edit(&change(path, "x\n"));
            assert_eq!(step.kind, Kind::Settings);
            let question = step.pages.question();
            assert!(question.contains(SETTINGS), "{question}");
        }
        assert_eq!(Step::edit(&change("src/a.rs", "")).kind, Kind::Edit);
    }

    #[test]
    fn a_name_cannot_be_markup_or_forge_a_line_of_a_diff() {
        let change = change("pkg/__init__.py", "x\r+y\u{202e}\n\tz\n");
        let question = Step::edit(&change).pages.question();
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
        let question = step.pages.question();
        assert_eq!(question.matches(fence).count(), 2, "{question}");
        assert!(question.ends_with(fence));
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
