//! Which option opens what a command failed for want of.

use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::scratch::Scratch;
use super::{CommandConfig, GitAccess, Output};

/// How many of the last lines of a command are looked at.
const LINES: usize = 40;

/// What a command can reach.
pub(super) struct Bounds<'a> {
    /// Where it started.
    pub(super) folder: &'a Path,
    /// What is its own.
    pub(super) scratch: &'a Scratch,
    pub(super) readable: &'a [PathBuf],
    pub(super) config: &'a CommandConfig,
}

/// What a program should know that seems to have tried to write what Git executes.
const GIT: &str =
    "(Git's settings and hooks are read-only for commands; 'daemon serve --git open' allows more)";

impl Bounds<'_> {
    /// Returns the remark on a failed command that has named something out of its reach.
    pub(super) fn remark(&self, line: &str, output: &Output) -> Option<String> {
        let lines = output.first.iter().chain(&output.last).rev();
        let lines = lines.take(LINES).map(|it| it.text.as_str());
        let is_git = words(line).any(|word| word == "git" || word.ends_with(".git"));
        if let Some(git) = self.config.git_remark.as_ref().filter(|_| is_git) {
            return Some(format!("({git})"));
        }
        for text in lines.chain([line]) {
            let is_read_only = names(text, Errno::ROFS);
            // Its files are mounted, and so cannot be replaced.
            let is_kept = is_read_only || names(text, Errno::BUSY);
            if is_kept && self.config.git != GitAccess::Open && text.contains(".git") {
                return Some(GIT.to_owned());
            }
            for path in words(text).filter_map(|word| self.path(word)) {
                if is_read_only {
                    let folder = path.ancestors().find(|it| it.is_dir()).unwrap_or(&path);
                    return Some(format!(
                        "(commands do not write there: 'daemon serve --writable {}' allows it)",
                        folder.display()
                    ));
                }
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                let mut readable = self.readable.iter();
                if path.symlink_metadata().is_ok() && !readable.any(|it| real.starts_with(it)) {
                    return Some(format!(
                        "(commands do not see {0}: 'daemon serve --readable {0}' allows it)",
                        path.display()
                    ));
                }
            }
        }
        None
    }

    /// Returns the path that a word is, if that is outside.
    fn path(&self, word: &str) -> Option<PathBuf> {
        let path = match word.strip_prefix("~/") {
            Some(below) => std::env::home_dir()?.join(below),
            None if word.contains('/') => self.folder.join(word),
            None => return None,
        };
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                part => plain.push(part),
            }
        }
        let mut writable = self.config.writable.iter();
        let is_inside = plain.starts_with(self.folder)
            || self.folder.starts_with(&plain)
            || writable.any(|it| plain.starts_with(it));
        let mut kernel = ["/dev", "/proc", "/sys"].iter();
        let is_own = [&self.scratch.home, &self.scratch.temporary].contains(&&plain);
        (!is_inside && !is_own && !kernel.any(|it| plain.starts_with(it))).then_some(plain)
    }
}

/// Returns whether a text names an error as the system does.
fn names(text: &str, error: Errno) -> bool {
    let error = io::Error::from(error).to_string().to_lowercase();
    let error = error.split(" (").next().unwrap_or_default();
    text.to_lowercase().contains(error)
}

/// Returns the words of a text, without what usually surrounds them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let between =
        |letter: char| letter.is_whitespace() || "'\"`‘’“”:;=()<>|&,[]{}".contains(letter);
    text.split(between).filter(|word| !word.is_empty())
}
