//! What tools do: calls, results, files and images.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, SharedJson, SharedStr, Slot};
use serde::Serialize;

use super::super::body::Body;
use super::super::json::Json;
use super::super::keep::Keep;
use super::super::number::Number;
use super::super::word::{ToolStatus, Word};

/// The id that the call and the result of a tool share. Hosts that have none name the event's own.
fn tool_id<'a>(body: &Body<'a>) -> Result<Cow<'a, str>, DecodeError> {
    match body.id("tool_id")? {
        Some(id) => Ok(id),
        None => body
            .id("id")?
            .ok_or_else(|| DecodeError::missing("tool_id")),
    }
}

/// A tool starts. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolCall<S = SharedStr, J = SharedJson> {
    /// The id that its result will carry.
    pub tool_id: S,
    /// The tool.
    pub name: S,
    /// What the tool gets, as it was sent: an object as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<J>,
    /// How it stands. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<ToolStatus, S>>,
}

impl ToolCall {
    /// This tool starts, with this object.
    pub fn new(
        tool_id: impl Into<SharedStr>,
        name: impl Into<SharedStr>,
        args: SharedJson,
    ) -> Self {
        Self {
            tool_id: tool_id.into(),
            name: name.into(),
            args: Some(args),
            status: None,
        }
    }
}

impl<'a> ToolCall<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tool_id: tool_id(body)?,
            name: body.need("name")?,
            args: body.raw("args")?,
            status: body.word("status")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ToolCall<K::Text, K::Json> {
        ToolCall {
            tool_id: how.text(&self.tool_id),
            name: how.text(&self.name),
            args: how.jsons(&self.args),
            status: how.words(&self.status),
        }
    }
}

/// A tool has ended. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResult<S = SharedStr, J = SharedJson> {
    /// The id of its [`ToolCall`].
    pub tool_id: S,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<S>,
    /// What the tool got, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<J>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<ToolStatus, S>>,
    /// What the tool says; of another value than a text its JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<S>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing_ms: Option<Number>,
    /// What went wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<S>,
    /// What kind of thing went wrong: the host's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<S>,
    /// What the tool returned before it was made a text, as it was sent. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<J>,
    /// What kind of tool it is: the host's own word. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<S>,
    /// Whether the user did not let it run. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declined: Option<bool>,
}

impl ToolResult {
    /// The tool has ended like this.
    pub fn new(
        tool_id: impl Into<SharedStr>,
        name: impl Into<SharedStr>,
        status: ToolStatus,
        result: impl Into<SharedStr>,
    ) -> Self {
        Self {
            tool_id: tool_id.into(),
            name: Some(name.into()),
            args: None,
            status: Some(Word::Known(status)),
            result: Some(result.into()),
            timing_ms: None,
            error: None,
            error_type: None,
            raw_output: None,
            class: None,
            declined: None,
        }
    }

    /// Sets [`args`](Self::args).
    #[must_use]
    pub fn with_args(mut self, args: SharedJson) -> Self {
        self.args = Some(args);
        self
    }

    /// Sets [`timing_ms`](Self::timing_ms).
    #[must_use]
    pub fn with_timing_ms(mut self, milliseconds: impl Into<Number>) -> Self {
        self.timing_ms = Some(milliseconds.into());
        self
    }

    /// Sets [`error`](Self::error).
    #[must_use]
    pub fn with_error(mut self, error: impl Into<SharedStr>) -> Self {
        self.error = Some(error.into());
        self
    }
}

impl<'a> ToolResult<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tool_id: tool_id(body)?,
            name: body.text_of("name")?,
            args: body.raw("args")?,
            status: body.word("status")?,
            result: body.loose("result")?,
            timing_ms: body.number("timing_ms")?,
            error: body.loose("error")?,
            error_type: body.loose("error_type")?,
            raw_output: body.raw("raw_output")?,
            class: body.loose("class")?,
            declined: body.bool("declined")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ToolResult<K::Text, K::Json> {
        ToolResult {
            tool_id: how.text(&self.tool_id),
            name: how.texts(&self.name),
            args: how.jsons(&self.args),
            status: how.words(&self.status),
            result: how.texts(&self.result),
            timing_ms: self.timing_ms,
            error: how.texts(&self.error),
            error_type: how.texts(&self.error_type),
            raw_output: how.jsons(&self.raw_output),
            class: how.texts(&self.class),
            declined: self.declined,
        }
    }
}

/// A tool may not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolBlocked<S = SharedStr> {
    /// The tool.
    pub tool: S,
    /// Why: the host's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<S>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<S>,
    /// The command that it would have run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<S>,
}

impl ToolBlocked {
    /// This tool may not run, for this reason and in these words.
    pub fn new(
        tool: impl Into<SharedStr>,
        reason: impl Into<SharedStr>,
        message: impl Into<SharedStr>,
    ) -> Self {
        Self {
            tool: tool.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            command: None,
        }
    }
}

impl<'a> ToolBlocked<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tool: body.need("tool")?,
            reason: body.loose("reason")?,
            message: body.loose("message")?,
            command: body.loose("command")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ToolBlocked<K::Text> {
        ToolBlocked {
            tool: how.text(&self.tool),
            reason: how.texts(&self.reason),
            message: how.texts(&self.message),
            command: how.texts(&self.command),
        }
    }
}

/// An image of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentImage<S = SharedStr> {
    /// A data URL.
    pub image: S,
}

impl AgentImage {
    /// The image in this data URL.
    pub fn new(image: impl Into<SharedStr>) -> Self {
        Self {
            image: image.into(),
        }
    }
}

impl<'a> AgentImage<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let image = body.need("image")?;
        Ok(Self { image })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> AgentImage<K::Text> {
        AgentImage {
            image: how.text(&self.image),
        }
    }
}

/// What a tool would change in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiffPreview<S = SharedStr> {
    /// The file.
    pub path: S,
    /// The change, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<S>,
    /// Whether not all of it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Whether the file is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_exists: Option<bool>,
}

impl DiffPreview {
    /// The whole change of a file.
    pub fn new(
        path: impl Into<SharedStr>,
        preview: impl Into<SharedStr>,
        file_exists: bool,
    ) -> Self {
        Self {
            path: path.into(),
            preview: Some(preview.into()),
            truncated: Some(false),
            file_exists: Some(file_exists),
        }
    }
}

impl<'a> DiffPreview<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            path: body.need("path")?,
            preview: body.loose("preview")?,
            truncated: body.bool("truncated")?,
            file_exists: body.bool("file_exists")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> DiffPreview<K::Text> {
        DiffPreview {
            path: how.text(&self.path),
            preview: how.texts(&self.preview),
            truncated: self.truncated,
            file_exists: self.file_exists,
        }
    }
}

/// Files that came with the prompt were saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilesReceived<J = SharedJson> {
    /// An array of [`ReceivedFile`]s, as it was sent.
    pub files: J,
    /// The how manieth prompt of the session it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

impl FilesReceived {
    /// These files were saved.
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn new<S: Serialize>(
        files: &[ReceivedFile<S>],
        turn: u64,
    ) -> Result<Self, rpc_core::Refused> {
        Ok(Self {
            files: crate::codec::to_json(files)?,
            turn: Some(turn),
        })
    }
}

impl<J: Json> FilesReceived<J> {
    /// The files. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one has no name, or there are too many.
    pub fn files(&self, limits: &Limits) -> Result<Vec<ReceivedFile<Cow<'_, str>>>, DecodeError> {
        decode::parse_objects(self.files.json(), limits, FileMembers::file)
            .map_err(|error| error.under("files"))
    }
}

impl<'a> FilesReceived<RawJson<'a>> {
    pub(in super::super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let files = body.array("files")?;
        Ok(Self {
            files: files.ok_or_else(|| DecodeError::missing("files"))?,
            turn: body.count("turn")?,
        })
    }

    pub(in super::super) fn keep<K: Keep>(&self, how: &K) -> FilesReceived<K::Json> {
        FilesReceived {
            files: how.json(&self.files),
            turn: self.turn,
        }
    }
}

/// A file that was saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReceivedFile<S = SharedStr> {
    /// Its name there.
    pub name: S,
    /// Where it is, on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<S>,
}

impl<S> ReceivedFile<S> {
    /// A file.
    pub fn new(name: impl Into<S>, path: impl Into<S>) -> Self {
        Self {
            name: name.into(),
            path: Some(path.into()),
        }
    }
}

#[derive(Default)]
struct FileMembers<'a> {
    name: Slot<Cow<'a, str>>,
    path: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for FileMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "name" => field.str("name", &mut self.name),
            "path" => field.str("path", &mut self.path),
            _ => field.skip(),
        }
    }
}

impl<'a> FileMembers<'a> {
    fn file(self) -> Result<ReceivedFile<Cow<'a, str>>, DecodeError> {
        Ok(ReceivedFile {
            name: self.name.require("name")?,
            path: self.path.take(),
        })
    }
}
