//! [`tools`]: the tools of the agent's model.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use crate::assistant::tools::{Function, Tools, text};
use crate::daemon::workspace::{Query, Range, Stop};
use crate::daemon::{ToolError, Workspace};

/// The tool that asks the user a question.
pub const ASK_USER: &str = "ask_user";
/// The tool that writes a file, after the user's approval.
pub const WRITE_FILE: &str = "write_file";
/// The longest text of a file that the model gets, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// Most files in a list.
const MAX_LISTED: usize = 200;

/// Returns the tools of a model, `ask_user`, and with a folder its files.
pub fn tools(folder: Option<&Workspace>) -> Tools {
    let mut tools = Tools::new().with(
        ToolDefinition::new(
            ASK_USER,
            "Asks the user a question, if the task cannot be done without the answer.",
        )
        .param(Param::new("question", ParamType::String))
        .param(
            Param::new("options", ParamType::Array)
                .with_items(ParamType::String)
                .with_default(Value::Array(Vec::new())),
        ),
        // The caller of the tools asks instead.
        Arc::new(|_, _| Err("no one can be asked".to_owned())),
    );
    if let Some(folder) = folder {
        tools = with_files(tools, folder);
    }
    tools
}

fn with_files(tools: Tools, folder: &Workspace) -> Tools {
    type Run = fn(&Workspace, &Map<String, Value>) -> Result<Value, ToolError>;
    let in_folder = |run: Run| -> Function {
        let folder = folder.clone();
        Arc::new(move |arguments, _| run(&folder, arguments).map_err(|it| it.to_string()))
    };
    let path = || Param::new("path", ParamType::String);
    tools
        .with(
            ToolDefinition::new("list_files", "Lists the files that can be read."),
            in_folder(|folder, _| {
                let query = Query {
                    limit: Some(MAX_LISTED),
                    ..Query::default()
                };
                let found = folder.files(&query, &Stop::default())?;
                let mut matches = json!({ "found": found.items });
                for remark in found.remarks() {
                    matches["remark"] = remark.into();
                }
                Ok(matches)
            }),
        )
        .with(
            ToolDefinition::new("read_file", "The text of a file.").param(path()),
            in_folder(|folder, arguments| {
                let path = argument(arguments, "path")?;
                let text = folder.read(path, Range::default(), &Stop::default())?.text;
                match text.len() > MAX_TEXT {
                    true => Err(ToolError::call(format!(
                        "{path:?} has over {MAX_TEXT} bytes"
                    ))),
                    false => Ok(text.into()),
                }
            }),
        )
        .with(
            ToolDefinition::new(
                WRITE_FILE,
                "Writes a file, in place of the one of that name, which must have been read before.",
            )
            .param(path())
            .param(Param::new("text", ParamType::String)),
            in_folder(|folder, arguments| {
                let (path, text) = (argument(arguments, "path")?, argument(arguments, "text")?);
                folder.write(path, text)?;
                Ok(format!("wrote {} bytes to {path}", text.len()).into())
            }),
        )
}

fn argument<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolError> {
    text(arguments, name).map_err(ToolError::call)
}

/// Returns whether a tool changes something, and needs the user's approval.
pub fn needs_approval(tool: &str) -> bool {
    tool == WRITE_FILE
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::assistant::tools::ToolContext;
    use crate::scratch::Folder;

    fn run(tools: &Tools, name: &str, arguments: &Value) -> Result<Value, String> {
        let cx = ToolContext {
            past: Vec::new(),
            now: UNIX_EPOCH,
        };
        let arguments = arguments.as_object().unwrap();
        let result = tools.run(name, arguments, &cx);
        result.map_err(|failure| failure.to_string())
    }

    #[test]
    fn files_are_there_only_with_a_folder() {
        let none = tools(None);
        for name in ["list_files", "read_file", WRITE_FILE] {
            assert!(
                run(&none, name, &json!({}))
                    .unwrap_err()
                    .contains("no tool")
            );
        }
    }

    #[test]
    fn a_file_that_was_written_is_found_and_read() {
        let place = Folder::new();
        let folder = Workspace::open(&place).unwrap();
        let tools = tools(Some(&folder));
        let note = json!({ "path": "a.txt", "text": "hi" });
        assert_eq!(
            run(&tools, WRITE_FILE, &note),
            Ok(json!("wrote 2 bytes to a.txt"))
        );
        assert_eq!(
            run(&tools, "list_files", &json!({})),
            Ok(json!({ "found": ["a.txt"] }))
        );
        assert_eq!(
            run(&tools, "read_file", &json!({ "path": "a.txt" })),
            Ok(json!("hi"))
        );
        let long = json!({ "path": "a.txt", "text": "x".repeat(MAX_TEXT + 1) });
        run(&tools, WRITE_FILE, &long).unwrap();
        let why = run(&tools, "read_file", &json!({ "path": "a.txt" })).unwrap_err();
        assert!(why.contains("over 65536 bytes"), "{why}");
    }

    #[test]
    fn only_what_changes_something_needs_an_approval() {
        let needing: Vec<_> = ["time", "read_file", "list_files", ASK_USER, WRITE_FILE]
            .into_iter()
            .filter(|tool| needs_approval(tool))
            .collect();
        assert_eq!(needing, [WRITE_FILE]);
    }
}
