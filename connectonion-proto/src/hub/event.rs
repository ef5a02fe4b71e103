//! What goes into a hub and what comes out: [`ConnectRequest`], [`NewInput`], [`Reply`], [`HubEvent`].

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rpc_core::Text;
use rpc_core::{Json, Str};

use crate::console::Line;
use crate::frame::{Answer, Connect, Connected, ErrorFrame, Mode, RuntimeInputAck};
use crate::id::SessionId;
use crate::session::{Owner, RunId, RuntimeInput};
use crate::storage::Record;

/// What time it is: for deadlines, and for what is written down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// By a clock that never goes back.
    pub instant: Instant,
    /// By the wall's clock, in seconds since 1970.
    pub unix: f64,
}

impl Now {
    /// Both clocks.
    #[must_use]
    pub fn new(instant: Instant, wall: SystemTime) -> Self {
        let since = wall.duration_since(UNIX_EPOCH);
        Self {
            instant,
            unix: since.unwrap_or_default().as_secs_f64(),
        }
    }
}

/// A client who may come in, and its CONNECT.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectRequest {
    /// Who it is, as its signature proves, or nobody.
    pub owner: Owner,
    /// What it sent.
    pub connect: Connect,
    /// 128 random bits, which nobody can guess: who did not sign is known by its session's id alone.
    pub random: u128,
    /// Whether the client is told that a signature is recommended. Default no.
    pub recommend_signature: bool,
}

impl ConnectRequest {
    /// A client who may come in.
    #[must_use]
    pub const fn new(owner: Owner, connect: Connect, random: u128) -> Self {
        Self {
            owner,
            connect,
            random,
            recommend_signature: false,
        }
    }

    /// Sets [`recommend_signature`](Self::recommend_signature).
    #[must_use]
    pub const fn with_recommend_signature(mut self, recommend: bool) -> Self {
        self.recommend_signature = recommend;
        self
    }
}

/// A file that came with a prompt, and was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedFile {
    /// Its name there.
    pub name: Str,
    /// Where it is: an absolute path.
    pub path: Str,
}

impl SavedFile {
    /// A file of this name, at this path.
    pub fn new(name: impl Into<Str>, path: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
        }
    }
}

/// What a user says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewInput {
    /// The text; with files, the reminder where they are stands at its end.
    pub prompt: Str,
    /// Pictures, as data URLs.
    pub images: Vec<Str>,
    /// Files, which are saved already.
    pub files: Vec<SavedFile>,
    /// The conversation, from clients that hand it over only here.
    pub session: Option<Json>,
}

impl NewInput {
    /// A text.
    pub fn new(prompt: impl Into<Str>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Sets [`images`](Self::images).
    #[must_use]
    pub fn with_images(mut self, images: Vec<Str>) -> Self {
        self.images = images;
        self
    }

    /// Sets [`files`](Self::files).
    #[must_use]
    pub fn with_files(mut self, files: Vec<SavedFile>) -> Self {
        self.files = files;
        self
    }

    /// Sets [`session`](Self::session).
    #[must_use]
    pub fn with_session(mut self, session: Option<Json>) -> Self {
        self.session = session;
        self
    }
}

/// What a hub has to say to one connection, in order. Events and OUTPUT are not among them: a
/// connection [takes](super::Hub::next_frame) those at its own speed, after its replies.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// It is in: the answer to its CONNECT.
    Accept(Box<Connected>),
    /// Its CONNECT or INPUT was refused.
    Refuse(Box<ErrorFrame>),
    /// Its INPUT has begun a run.
    Begun,
    /// Its INPUT will be read by the agent that runs.
    Acknowledge(RuntimeInputAck),
    /// A frame that answers neither.
    Frame(Text),
}

/// Something that a storage has to do: give the outcome back with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// What has to be done, or has happened. Nothing may be skipped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HubEvent {
    /// Look a session up, then call [`loaded`](super::Hub::loaded).
    Load {
        /// The job.
        job: JobId,
        /// The session.
        session_id: SessionId,
    },
    /// Store a record, then call [`stored`](super::Hub::stored). In the order in which they come, of
    /// one session at least.
    Store {
        /// The job.
        job: JobId,
        /// What to store. In a box, because it is larger than all the rest.
        record: Box<Record>,
    },
    /// Start the agent. It ends with [`finish`](super::Hub::finish) or [`fail`](super::Hub::fail).
    Start {
        /// The run.
        run: RunId,
        /// The session.
        session_id: SessionId,
        /// Whose it is.
        owner: Owner,
        /// What the user says.
        input: NewInput,
    },
    /// Stop the agent: its run is over.
    Cancel {
        /// The run.
        run: RunId,
    },
    /// The user has answered a question of the agent.
    Answer {
        /// The run.
        run: RunId,
        /// The question.
        request_id: Str,
        /// The answer.
        answer: Answer,
    },
    /// The agent is to stop after what it is doing.
    Interrupt {
        /// The run.
        run: RunId,
    },
    /// The user says something to the running agent.
    Interjected {
        /// The run.
        run: RunId,
    },
    /// The user wants the running agent to work in another mode.
    Mode {
        /// The run.
        run: RunId,
        /// Which.
        mode: Mode,
        /// For how many turns, in the mode `ulw`.
        turns: Option<u64>,
    },
    /// The user has another goal for the running agent.
    Goal {
        /// The run.
        run: RunId,
        /// The goal.
        prompt: Str,
    },
    /// For the console.
    Line(Line),
}

/// How a run goes on when its agent has answered. Exhaustive: there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Finished {
    /// It is over: the OUTPUT is sent as soon as the result is stored.
    Done,
    /// These were acknowledged and not read: the agent has to answer them as well.
    More(Vec<RuntimeInput>),
}

/// A question that cannot be asked. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The run is over.
    #[error(transparent)]
    Over(#[from] crate::session::RunOver),
    /// Too many questions are open, or the event asks nothing.
    #[error("no room for another question")]
    NoRoom,
}

/// An event that cannot be sent. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The run is over.
    #[error(transparent)]
    Over(#[from] crate::session::RunOver),
    /// Frames of this type are the host's own.
    #[error("frames of the type {name:?} are the host's own")]
    Reserved {
        /// The type.
        name: Str,
    },
    /// It cannot be written, or is too large.
    #[error(transparent)]
    Refused(#[from] rpc_core::Refused),
}
