//! What a person has agreed to once, for a workspace.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use crate::chat::terminal::history::state_folder;
use crate::cli::{self, complain};

/// Asks the person at the terminal whether commands in a workspace may have this folder, unless that was agreed to
/// before. Without a terminal, the answer is no.
pub(super) fn ask_once(workspace: &Path, folder: &str, question: &str) -> bool {
    let file = state_folder().map(|state| state.join("git-folders"));
    let line = format!("{workspace:?} {folder:?}");
    let kept = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
    if kept.is_some_and(|kept| kept.lines().any(|it| it == line)) {
        return true;
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    cli::ask(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    let agrees = io::stdin().read_line(&mut answer).is_ok()
        && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if let Some(file) = file.filter(|_| agrees)
        && let Err(error) = keep(&file, &line)
    {
        complain(format_args!(
            "warning: {}: {error}; you will be asked again",
            file.display()
        ));
    }
    agrees
}

fn keep(file: &PathBuf, line: &str) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    writeln!(file, "{line}")
}
