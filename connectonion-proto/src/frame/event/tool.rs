//! What tools do: calls, results, files and images.

use rpc_core::json::lenient::{array, optional_id, optional_loose};
use rpc_core::{DecodeError, Json, Limits, Refused, Str};
use serde::{Deserialize, Serialize};

use super::super::json::list;
use super::super::number::Number;
use super::super::word::{ToolStatus, Word};

/// A tool starts. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that its result will carry.
    /// Hosts that send none name the event's own, which is here then: an event that was read has one.
    #[serde(
        default,
        deserialize_with = "optional_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_id: Option<Str>,
    /// The tool.
    pub name: Str,
    /// What the tool gets, as it was sent: an object as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// How it stands. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<ToolStatus>>,
}

impl ToolCall {
    /// This tool starts, with this object.
    pub fn new(tool_id: impl Into<Str>, name: impl Into<Str>, args: Json) -> Self {
        Self {
            tool_id: Some(tool_id.into()),
            name: name.into(),
            args: Some(args),
            status: None,
        }
    }
}

/// A tool has ended. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of its [`ToolCall`].
    /// Hosts that send none name the event's own, which is here then: an event that was read has one.
    #[serde(
        default,
        deserialize_with = "optional_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_id: Option<Str>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// What the tool got, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<ToolStatus>>,
    /// What the tool says; of another value than a text its JSON.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Str>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing_ms: Option<Number>,
    /// What went wrong, for people.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub error: Option<Str>,
    /// What kind of thing went wrong: the host's own word.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub error_type: Option<Str>,
    /// What the tool returned before it was made a text, as it was sent. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Json>,
    /// What kind of tool it is: the host's own word. Newer hosts only.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub class: Option<Str>,
    /// Whether the user did not let it run. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declined: Option<bool>,
}

impl ToolResult {
    /// The tool has ended like this.
    pub fn new(
        tool_id: impl Into<Str>,
        name: impl Into<Str>,
        status: ToolStatus,
        result: impl Into<Str>,
    ) -> Self {
        Self {
            tool_id: Some(tool_id.into()),
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
    pub fn with_args(mut self, args: Json) -> Self {
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
    pub fn with_error(mut self, error: impl Into<Str>) -> Self {
        self.error = Some(error.into());
        self
    }
}

/// A tool may not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolBlocked {
    /// The tool.
    pub tool: Str,
    /// Why: the host's own word.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub reason: Option<Str>,
    /// For people.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub message: Option<Str>,
    /// The command that it would have run.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub command: Option<Str>,
}

impl ToolBlocked {
    /// This tool may not run, for this reason and in these words.
    pub fn new(tool: impl Into<Str>, reason: impl Into<Str>, message: impl Into<Str>) -> Self {
        Self {
            tool: tool.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            command: None,
        }
    }
}

/// An image of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentImage {
    /// A data URL.
    pub image: Str,
}

impl AgentImage {
    /// The image in this data URL.
    pub fn new(image: impl Into<Str>) -> Self {
        Self {
            image: image.into(),
        }
    }
}

/// What a tool would change in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DiffPreview {
    /// The file.
    pub path: Str,
    /// The change, for people.
    #[serde(
        default,
        deserialize_with = "optional_loose",
        skip_serializing_if = "Option::is_none"
    )]
    pub preview: Option<Str>,
    /// Whether not all of it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Whether the file is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_exists: Option<bool>,
}

impl DiffPreview {
    /// The whole change of a file.
    pub fn new(path: impl Into<Str>, preview: impl Into<Str>, file_exists: bool) -> Self {
        Self {
            path: path.into(),
            preview: Some(preview.into()),
            truncated: Some(false),
            file_exists: Some(file_exists),
        }
    }
}

/// Files that came with the prompt were saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FilesReceived {
    /// An array of [`ReceivedFile`]s, as it was sent.
    #[serde(deserialize_with = "array")]
    pub files: Json,
    /// The how manieth prompt of the session it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

impl FilesReceived {
    /// These files were saved.
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn new(files: &[ReceivedFile], turn: u64) -> Result<Self, Refused> {
        Ok(Self {
            files: Json::of(files)?,
            turn: Some(turn),
        })
    }

    /// The files. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one has no name, or there are too many.
    pub fn files(&self, limits: &Limits) -> Result<Vec<ReceivedFile>, DecodeError> {
        list(Some(&self.files), limits).map_err(|error| error.under("files"))
    }
}

/// A file that was saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceivedFile {
    /// Its name there.
    pub name: Str,
    /// Where it is, on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Str>,
}

impl ReceivedFile {
    /// A file.
    pub fn new(name: impl Into<Str>, path: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            path: Some(path.into()),
        }
    }
}
