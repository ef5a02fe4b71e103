//! [`Toolbox`]: the tools of a model in a workspace.

#[cfg(test)]
mod tests;

use std::time::Duration;

use acolyte_proto::event::{Checklist, Part};
use acolyte_proto::limits::MAX_TOOL_RESULT_CHARS;
use serde_json::{Map, Value};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use super::ask_first::Step;
use super::command::{Commands, Confinement, News};
use super::workspace::{Change, Found, Query, Range, Stop, Workspace};
use super::{Code, ToolError, checklist, tool_output};
use crate::assistant::conversation::without_middle;

/// The tool that reads a file.
pub const FILE_READ: &str = "file-read";
/// The tool that finds lines.
pub const FILE_SEARCH: &str = "file-search";
/// The tool that finds files.
pub const FILE_FIND: &str = "file-find";
/// The tool that changes a file.
pub const FILE_EDIT: &str = "file-edit";
/// The tool that writes a file.
pub const FILE_CREATE: &str = "file-create";
/// The tool that runs a command.
pub const SHELL_RUN: &str = "shell-run";
/// The tool that shows a checklist.
pub const CHECKLIST: &str = "checklist";

/// What is said where a file was not read since a command has changed it.
pub(super) const OVER_COMMAND: &str = "; a command of this chat had changed it since it was read";

/// The tools of a model in a workspace.
#[derive(Clone)]
pub struct Toolbox {
    commands: Commands,
    definitions: Vec<ToolDefinition>,
}

/// The output of a tool while it works.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A piece of its output.
    Part(Part),
    /// The checklist.
    Checklist(Checklist),
    /// A file was changed. Not for clients, who have its parts.
    Change(Box<Change>),
}

impl Toolbox {
    /// Creates the tools, with the one for commands unless they are off.
    pub fn new(commands: Commands) -> Self {
        let mut definitions = files();
        if commands.confinement() != Confinement::Off {
            definitions.push(shell());
        }
        definitions.push(list());
        Self {
            commands,
            definitions,
        }
    }

    /// Returns what commands can do, for the model.
    pub fn words(&self) -> String {
        self.commands.words()
    }

    /// Returns the tools for a session, whose commands have a home of their own.
    #[must_use]
    pub fn of_session(&self, name: Option<&str>) -> Self {
        Self {
            commands: self.commands.of_session(name),
            definitions: self.definitions.clone(),
        }
    }

    /// Returns the definitions for the model.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Returns the header of a call that fails before it runs, for example because of invalid
    /// arguments. `None` for an unknown tool.
    pub fn header(&self, name: &str, arguments: &Map<String, Value>) -> Option<Shown> {
        let mut known = self.definitions.iter().map(ToolDefinition::name);
        let is_known = known.any(|known| known == name);
        let header = tool_output::header(name, arguments).filter(|_| is_known);
        header.map(Shown::Part)
    }

    /// Returns what a call would do, if it would change a file or run a command.
    ///
    /// # Errors
    /// [`ToolError`], for the model: the call would fail.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn preview(
        &self,
        workspace: &Workspace,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Option<Step>, ToolError> {
        match name {
            SHELL_RUN => Ok(Some(Step::command(required(arguments, "command")?))),
            FILE_EDIT | FILE_CREATE => {
                let (workspace, name, arguments) =
                    (workspace.clone(), name.to_owned(), arguments.clone());
                let look = move || change(&workspace, &name, &arguments, false);
                let change = tokio::task::spawn_blocking(look).await;
                let change = change.unwrap_or_else(|_| Err(panicked()))?;
                Ok((!change.is_nothing()).then(|| Step::edit(&change)))
            }
            _ => Ok(None),
        }
    }

    /// Runs a tool. Its output goes to `show`, in order, with a header even if it fails. The result
    /// is for the model.
    ///
    /// # Errors
    /// [`ToolError`], for the model too. Earlier effects remain.
    ///
    /// # Cancel safety
    /// Dropping the future kills a command and stops a search. An edit happens completely or not at
    /// all.
    pub async fn run(
        &self,
        workspace: &Workspace,
        name: &str,
        arguments: &Map<String, Value>,
        show: &mut (dyn FnMut(Shown) + Send),
    ) -> Result<String, ToolError> {
        let mut has_shown = false;
        let mut showing = |shown| {
            has_shown = true;
            show(shown);
        };
        let result = self.work(workspace, name, arguments, &mut showing).await;
        if result.is_err() && !has_shown {
            self.header(name, arguments).into_iter().for_each(show);
        }
        result
    }

    async fn work(
        &self,
        workspace: &Workspace,
        name: &str,
        arguments: &Map<String, Value>,
        show: &mut (dyn FnMut(Shown) + Send),
    ) -> Result<String, ToolError> {
        let text = match name {
            SHELL_RUN if self.commands.confinement() != Confinement::Off => {
                self.command(workspace, arguments, show).await?
            }
            CHECKLIST => {
                let title = optional(arguments, "title")?.unwrap_or_default();
                let items = required(arguments, "items")?;
                let list = checklist::parse(CHECKLIST, title, items);
                let text = format!("the list has {} items", list.items.len());
                show(Shown::Checklist(list));
                text
            }
            _ => {
                let (shown, text) = blocking(workspace, name, arguments).await?;
                shown.into_iter().for_each(&mut *show);
                text
            }
        };
        Ok(without_middle(&text, MAX_TOOL_RESULT_CHARS).into_owned())
    }

    async fn command(
        &self,
        workspace: &Workspace,
        arguments: &Map<String, Value>,
        show: &mut (dyn FnMut(Shown) + Send),
    ) -> Result<String, ToolError> {
        let line = required(arguments, "command")?;
        let timeout = number(arguments, "timeout")?;
        let timeout = timeout.map(|seconds| Duration::from_secs(seconds.max(1) as u64));
        show(Shown::Part(tool_output::command(line)));
        let mut is_silent = true;
        let mut news = |news: News| {
            for part in tool_output::output(&news) {
                is_silent = false;
                show(Shown::Part(part));
            }
        };
        let since = workspace.before_command();
        let output = self.commands.run(workspace, line, timeout, &mut news).await;
        workspace.after_command(since);
        let output = output?;
        news(output.news.clone());
        if let Some(remark) = output.remark() {
            is_silent = false;
            show(Shown::Part(Part::text(remark)));
        }
        if is_silent {
            show(Shown::Part(Part::NoOutput));
        }
        match output.code {
            Some(0) => Ok(or_say(output.text(), "(it said nothing)")),
            _ => {
                let text = output.text();
                let text = without_middle(&text, MAX_TOOL_RESULT_CHARS);
                Err(ToolError::new(Code::Failed, text.into_owned()))
            }
        }
    }
}

rpc_core::debug_fields!([] Toolbox, this => { definitions: this.definitions });

fn files() -> Vec<ToolDefinition> {
    let text = |name, what| Param::new(name, ParamType::String).with_description(what);
    let number = |name, what| Param::new(name, ParamType::Integer).with_description(what);
    let flag = |name, what| {
        let flag = Param::new(name, ParamType::Boolean).with_description(what);
        flag.with_default(false)
    };
    let path = || text("path", "The file, as seen from the workspace.");
    let folder = || text("folder", "The folder to look in.").with_default(".");
    let glob = || text("glob", "Only files like this: src/**/*.rs").with_default("*");
    let limit = || number("limit", "Most matches.").with_default(100);
    let ignored = || {
        let what = "Whether to look also into what .gitignore names, which is left out otherwise.";
        flag("ignored", what)
    };
    vec![
        ToolDefinition::new(FILE_READ, "Reads a text file, or some of its lines.")
            .param(path())
            .param(number("from", "The first line, from 1.").with_default(1))
            .param(number("lines", "How many lines.").with_default(2_000)),
        ToolDefinition::new(FILE_SEARCH, "Finds lines that hold a text.")
            .param(text("query", "The text."))
            .param(flag("regex", "Whether the text is a regular expression."))
            .param(glob())
            .param(folder())
            .param(ignored())
            .param(limit()),
        ToolDefinition::new(FILE_FIND, "Finds files by their names.")
            .param(glob())
            .param(folder())
            .param(ignored())
            .param(limit()),
        ToolDefinition::new(
            FILE_EDIT,
            "Replaces a text in a file. It must be there exactly, and once unless all are meant.",
        )
        .param(path())
        .param(text("find", "The text to be replaced."))
        .param(text("replace", "What takes its place."))
        .param(flag("all", "Replace it wherever it stands.")),
        ToolDefinition::new(
            FILE_CREATE,
            "Writes a whole file, in place of the one of that name, which must have been read before. Makes folders where needed.",
        )
        .param(path())
        .param(text("content", "What is written.")),
    ]
}

fn shell() -> ToolDefinition {
    ToolDefinition::new(
        SHELL_RUN,
        "Runs a shell command in the workspace and returns its output.",
    )
    .param(Param::new("command", ParamType::String).with_description("The line."))
    .param(
        Param::new("timeout", ParamType::Integer)
            .with_description("Seconds until it is killed.")
            .with_default(120),
    )
}

fn list() -> ToolDefinition {
    ToolDefinition::new(
        CHECKLIST,
        "Shows the user what is to be done, and how far it is. Give the whole list each time.",
    )
    .param(Param::new("title", ParamType::String).with_default("Plan"))
    .param(Param::new("items", ParamType::String).with_description(
        "A line for each: [ ] to do, [~] under way, [x] done, [!] failed, and what it is.",
    ))
}

/// Runs a blocking tool on a thread for blocking work.
async fn blocking(
    workspace: &Workspace,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<(Vec<Shown>, String), ToolError> {
    let stop = Stop::default();
    let _stops = Stops(stop.clone());
    let (workspace, name, arguments) = (workspace.clone(), name.to_owned(), arguments.clone());
    let work = move || {
        // No one may want it any more when there is a thread for it.
        stop.check()?;
        on_files(&workspace, &name, &arguments, &stop)
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> ToolError {
    ToolError::new(Code::Other, "the tool has panicked")
}

/// Returns the change that a call makes, or would make.
fn change(
    workspace: &Workspace,
    name: &str,
    arguments: &Map<String, Value>,
    is_made: bool,
) -> Result<Change, ToolError> {
    let text = |name| required(arguments, name);
    let path = text("path")?;
    let change = if name == FILE_CREATE {
        let content = text("content")?;
        match is_made {
            true => workspace.write(path, content),
            false => workspace.preview_write(path, content),
        }
    } else {
        let (find, put, all) = (text("find")?, text("replace")?, flag(arguments, "all")?);
        match is_made {
            true => workspace.edit(path, find, put, all),
            false => workspace.preview_edit(path, find, put, all),
        }
    };
    change.map_err(|it| workspace.with_similar(path, it))
}

/// Stops blocking work when it is dropped.
struct Stops(Stop);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn on_files(
    workspace: &Workspace,
    name: &str,
    arguments: &Map<String, Value>,
    stop: &Stop,
) -> Result<(Vec<Shown>, String), ToolError> {
    let (parts, text) = match name {
        FILE_READ => {
            let all = Range::default();
            let range = Range {
                first: number(arguments, "from")?.unwrap_or(all.first),
                count: number(arguments, "lines")?.unwrap_or(all.count),
            };
            let path = required(arguments, "path")?;
            let excerpt = workspace.read(path, range, stop);
            let excerpt = excerpt.map_err(|it| workspace.with_similar(path, it))?;
            (tool_output::read(&excerpt), read(&excerpt))
        }
        FILE_SEARCH => {
            let query = Query {
                text: required(arguments, "query")?.to_owned(),
                is_regex: flag(arguments, "regex")?,
                ..places(arguments)?
            };
            let found = workspace.search(&query, stop)?;
            let lines: Vec<_> = found.items.iter().map(tool_output::match_line).collect();
            (tool_output::search(&query, &found), listed(&lines, &found))
        }
        FILE_FIND => {
            let query = places(arguments)?;
            let found = workspace.files(&query, stop)?;
            (
                tool_output::files(&query, &found),
                listed(&found.items, &found),
            )
        }
        FILE_EDIT | FILE_CREATE => {
            let change = change(workspace, name, arguments, true)?;
            let (parts, text) = (tool_output::change(&change), changed(&change));
            let shown = parts.into_iter().map(Shown::Part);
            return Ok((
                shown.chain([Shown::Change(Box::new(change))]).collect(),
                text,
            ));
        }
        _ => return Err(ToolError::call(format!("there is no tool {name:?}"))),
    };
    Ok((parts.into_iter().map(Shown::Part).collect(), text))
}

/// Reads the parts of a query that all searches have.
fn places(arguments: &Map<String, Value>) -> Result<Query, ToolError> {
    let glob = optional(arguments, "glob")?.filter(|glob| !["", "*"].contains(glob));
    let folder = optional(arguments, "folder")?.filter(|folder| !["", "."].contains(folder));
    Ok(Query {
        glob: glob.map(str::to_owned),
        folder: folder.map(str::to_owned),
        has_ignored: flag(arguments, "ignored")?,
        limit: number(arguments, "limit")?,
        ..Query::default()
    })
}

fn read(excerpt: &super::workspace::Excerpt) -> String {
    let last = excerpt.first + excerpt.lines.saturating_sub(1);
    if excerpt.lines == excerpt.total {
        return or_say(excerpt.text.clone(), "(the file is empty)");
    }
    let (text, total) = (excerpt.text.trim_end_matches('\n'), excerpt.total);
    format!("{text}\n(lines {} to {last} of {total})\n", excerpt.first)
}

fn listed<T>(lines: &[String], found: &Found<T>) -> String {
    let mut text = or_say(lines.join("\n"), "nothing was found");
    for remark in found.remarks() {
        text = text + "\n" + &remark;
    }
    text
}

fn changed(change: &Change) -> String {
    let done = if change.is_new() { "wrote" } else { "changed" };
    let (added, removed) = (change.diff.added, change.diff.removed);
    let remark = change.is_over_command.then_some(OVER_COMMAND);
    let remark = remark.unwrap_or_default();
    format!("{done} {} (+{added} -{removed}){remark}", change.path)
}

/// Returns a text, or `words` if it is empty: some models treat an empty result as an error.
fn or_say(text: String, words: &str) -> String {
    match text.trim() {
        "" => words.to_owned(),
        _ => text,
    }
}

fn optional<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, ToolError> {
    argument(arguments, name, "a string", Value::as_str)
}

fn required<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolError> {
    let text = optional(arguments, name)?;
    text.ok_or_else(|| ToolError::call(format!("the argument {name:?} is missing")))
}

fn flag(arguments: &Map<String, Value>, name: &str) -> Result<bool, ToolError> {
    let flag = argument(arguments, name, "true or false", Value::as_bool)?;
    Ok(flag.unwrap_or_default())
}

fn number(arguments: &Map<String, Value>, name: &str) -> Result<Option<usize>, ToolError> {
    let number = argument(arguments, name, "a whole number", Value::as_u64)?;
    Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

/// Returns an argument, which may be missing, of the kind that `read` takes.
fn argument<'a, T>(
    arguments: &'a Map<String, Value>,
    name: &str,
    kind: &str,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<Option<T>, ToolError> {
    let value = arguments.get(name).filter(|value| !value.is_null());
    let wrong = || ToolError::call(format!("{name:?} has to be {kind}"));
    value.map(|it| read(it).ok_or_else(wrong)).transpose()
}
