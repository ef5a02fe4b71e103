//! What tools do: calls, results, files and images.

use rpc_core::json::lenient::array;
use rpc_core::{DecodeError, Json, Limits, Refused, Str};
use serde::{Deserialize, Serialize};

use super::super::json::{list, opt};
use super::super::number::Number;
use super::super::words::ToolStatus;

/// A tool starts. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that its result will carry.
    /// Hosts that send none name the event's own, which is here then: an event that was read has one.
    #[serde(default, with = "opt::id", skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Str>,
    /// The tool.
    pub name: Str,
    /// What the tool gets, as it was sent: an object as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// How it stands. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of its [`ToolCall`].
    /// Hosts that send none name the event's own, which is here then: an event that was read has one.
    #[serde(default, with = "opt::id", skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Str>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// What the tool got, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// What the tool says; of another value than a text its JSON.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub result: Option<Str>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing_ms: Option<Number>,
    /// What went wrong, for people.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
    /// What kind of thing went wrong: the host's own word.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Str>,
    /// What the tool returned before it was made a text, as it was sent. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Json>,
    /// What kind of tool it is: the host's own word. Newer hosts only.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
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
            status: Some(status),
            result: Some(result.into()),
            ..Self::default()
        }
    }
}

/// A tool may not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolBlocked {
    /// The tool.
    pub tool: Str,
    /// Why: the host's own word.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub reason: Option<Str>,
    /// For people.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
    /// The command that it would have run.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub command: Option<Str>,
}

/// What a tool would change in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DiffPreview {
    /// The file.
    pub path: Str,
    /// The change, for people.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub preview: Option<Str>,
    /// Whether not all of it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Whether the file is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_exists: Option<bool>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReceivedFile {
    /// Its name there.
    pub name: Str,
    /// Where it is, on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Str>,
}
