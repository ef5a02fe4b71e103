//! [`words`]: what the model is told of the place that it works in.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use rpc_core::text::beginning;
use rpc_core::timestamp;

use crate::bounded;
use crate::daemon::workspace::{MAX_FILE, Range, Stop};
use crate::daemon::{Toolbox, Workspace, git};
use crate::text::printable;

/// The file with a project's instructions for agents.
const AGENTS: &str = "AGENTS.md";
/// Most bytes of each that are read.
const MAX_AGENTS: usize = 64 * 1024;

/// Returns what the model is told of the `place` of a chat, which is in the workspace that is served, `here`.
pub(super) fn words(here: &Workspace, place: &Workspace, toolbox: &Toolbox) -> String {
    let path = place.path();
    let date = timestamp::format(SystemTime::now());
    let date = date.split('T').next().unwrap_or_default();
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let mut words = format!(
        "\n\nThe workspace: {}\nThe system: {system}, {machine}\nThe date: {date}\n",
        path.display()
    );
    words.push_str(&toolbox.words());
    let root = path
        .ancestors()
        .find(|folder| folder.join(git::NAME).exists());
    if let Some(branch) = root.and_then(branch) {
        let _ = write!(words, "\nThe branch: {branch}");
    }
    let mut folders: Vec<_> = path.ancestors().collect();
    let outer = folders.iter().position(|folder| Some(*folder) == root);
    folders.truncate(outer.map_or(1, |outer| outer + 1));
    // The nearest one comes last, and counts most.
    for folder in folders.into_iter().rev() {
        let file = folder.join(AGENTS);
        // What commands can write is read without leaving the workspace.
        let text = match folder.starts_with(here.path()) {
            true => here
                .read(&file.to_string_lossy(), Range::default(), &Stop::default())
                .ok()
                .map(|it| it.text),
            false => bounded::text(&file, MAX_FILE).ok(),
        };
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            let (file, text) = (file.display(), beginning(text.trim(), MAX_AGENTS));
            let _ = write!(words, "\n\nThe project's instructions, in {file}:\n{text}");
        }
    }
    words
}

/// Returns the branch that a repository is on, without running Git, which its settings may make run anything.
fn branch(repository: &Path) -> Option<String> {
    let git = repository.join(git::NAME);
    let folder = match fs::read_to_string(&git) {
        // A worktree's or a submodule's.
        Ok(text) => repository.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => git,
    };
    let head = bounded::text(&folder.join("HEAD"), 4096).ok()?;
    let branch = head.strip_prefix("ref: refs/heads/")?.trim();
    Some(printable(branch).into_owned())
}
