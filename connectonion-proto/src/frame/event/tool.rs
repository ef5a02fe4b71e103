//! Events of tools: calls, results, files and images.

use rpc_core::json::lenient::{array, optional_id, optional_loose};
use rpc_core::{Json, Refused, Str, members};
use serde::{Deserialize, Serialize};

use super::super::number::Number;
use super::super::words::ToolStatus;

use crate::id::ToolCallId;

members! {
    /// A tool starts. ConnectOnion specification, *Stream Events*.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ToolCall {
        /// The id that its result refers to. If the host sends none, a received event has its own id
        /// here.
        pub tool_id: Option<ToolCallId> as "optional_id",
        /// The tool.
        pub name: Str,
        /// The tool's arguments, as they were sent, usually an object.
        pub args: Option<Json>,
        /// The status. Newer hosts only.
        pub status: Option<ToolStatus>,
    }

    /// A tool has ended. ConnectOnion specification, *Stream Events*. Also a tool in a list of chat items.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct ToolResult {
        /// The id of its [`ToolCall`]. If the host sends none, a received event has its own id here.
        pub tool_id: Option<ToolCallId> as "optional_id",
        /// The tool.
        pub name: Option<Str>,
        /// The tool's arguments, as they were sent.
        pub args: Option<Json>,
        /// The final status.
        pub status: Option<ToolStatus>,
        /// The result; a value other than a text as JSON.
        pub result: Option<Str> as "optional_loose",
        /// How long it took, in milliseconds.
        pub timing_ms: Option<Number>,
        /// The error message, for people.
        pub error: Option<Str> as "optional_loose",
        /// The kind of failure, in the host's own words.
        pub error_type: Option<Str> as "optional_loose",
        /// The result before it was converted to a text, as it was sent. Newer hosts only.
        pub raw_output: Option<Json>,
        /// The kind of tool, in the host's own words. Newer hosts only.
        pub class: Option<Str> as "optional_loose",
        /// Whether the user declined the call. Newer hosts only.
        pub declined: Option<bool>,
    }

    /// A tool was not allowed to run.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ToolBlocked {
        /// The tool.
        pub tool: Str,
        /// The reason, in the host's own words.
        pub reason: Option<Str> as "optional_loose",
        /// A message for people.
        pub message: Option<Str> as "optional_loose",
        /// The blocked command.
        pub command: Option<Str> as "optional_loose",
    }

    /// The change that a tool would make to a file.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct DiffPreview {
        /// The file.
        pub path: Str,
        /// The change, for people.
        pub preview: Option<Str> as "optional_loose",
        /// Whether the preview is incomplete.
        pub truncated: Option<bool>,
        /// Whether the file already exists.
        pub file_exists: Option<bool>,
    }

    /// Files that came with the prompt were saved.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct FilesReceived {
        /// An array of [`ReceivedFile`]s, as it was sent.
        pub files: Json as "array",
        /// The number of the prompt within the session.
        pub turn: Option<u64>,
    }

    /// A file that was saved.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ReceivedFile {
        /// Its name on the disk of the server.
        pub name: Str,
        /// Its absolute path there. Hosts of this crate always say it.
        pub path: Option<Str>,
    }
}

impl ToolCall {
    /// Creates a call of this tool, with an object of arguments.
    pub fn new(
        tool_id: impl Into<ToolCallId>,
        name: impl Into<Str>,
        args: impl Into<Json>,
    ) -> Self {
        Self {
            tool_id: Some(tool_id.into()),
            name: name.into(),
            args: Some(args.into()),
            status: None,
        }
    }
}

impl ToolResult {
    /// Creates a result with this status.
    pub fn new(
        tool_id: impl Into<ToolCallId>,
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

impl DiffPreview {
    /// Creates an event with a whole change, for people, to a file.
    pub fn new(path: impl Into<Str>, preview: impl Into<Str>, file_exists: bool) -> Self {
        Self {
            path: path.into(),
            preview: Some(preview.into()),
            truncated: Some(false),
            file_exists: Some(file_exists),
        }
    }
}

impl FilesReceived {
    /// Creates an event for these saved files.
    pub(crate) fn new(files: &[ReceivedFile], turn: u64) -> Result<Self, Refused> {
        Ok(Self {
            files: Json::of(files)?,
            turn: Some(turn),
        })
    }
}
