//! Searching for files, and for lines that contain a text.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};

use super::glob::Glob;
use super::{Problem, Stop, Workspace, or_here, shown};

/// Large folders that a search skips.
const SKIPPED: [&str; 5] = [".git", ".hg", ".svn", "node_modules", "target"];
/// Most files and folders to visit.
const MAX_SEEN: usize = 50_000;
/// The longest line in a result, in characters.
const MAX_LINE: usize = 300;
/// The largest compiled expression, in bytes.
const MAX_REGEX: usize = 1024 * 1024;

/// A search.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Query {
    /// The text that lines must contain; empty to find only the names of files.
    pub text: String,
    /// Whether the text is a regular expression. Default no.
    pub is_regex: bool,
    /// Only files with a matching path, such as `src/**/*.rs`.
    pub glob: Option<String>,
    /// The folder. Default this one.
    pub folder: Option<String>,
    /// Most results. Default 100.
    pub limit: Option<usize>,
}

impl Query {
    /// Creates a search for lines with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Sets [`is_regex`](Self::is_regex).
    #[must_use]
    pub const fn with_regex(mut self, is_regex: bool) -> Self {
        self.is_regex = is_regex;
        self
    }

    /// Sets [`glob`](Self::glob).
    #[must_use]
    pub fn with_glob(mut self, glob: Option<String>) -> Self {
        self.glob = glob;
        self
    }

    /// Sets [`folder`](Self::folder).
    #[must_use]
    pub fn with_folder(mut self, folder: Option<String>) -> Self {
        self.folder = folder;
        self
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub const fn with_limit(mut self, limit: Option<usize>) -> Self {
        self.limit = limit;
        self
    }

    fn most(&self) -> usize {
        self.limit.unwrap_or(100).clamp(1, 1_000)
    }
}

/// A found line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The file, seen from the folder.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// Its text, cut to a length.
    pub text: String,
}

/// The results, in the order of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// The results.
    pub items: Vec<T>,
    /// Whether there are, or may be, more.
    pub is_cut: bool,
}

impl Workspace {
    /// Returns the files that match the glob of the query. Skips folders such as `.git` and
    /// `target`, and does not follow links.
    ///
    /// # Errors
    /// [`Problem`]: a bad pattern, no such folder, or it was stopped. Trying again is safe.
    pub fn files(&self, query: &Query, stop: &Stop) -> Result<Found<String>, Problem> {
        let mut items = Vec::new();
        let is_cut = self.walk(query, stop, |path| {
            items.push(shown(path));
            Ok(items.len() > query.most())
        })?;
        items.truncate(query.most());
        Ok(Found { items, is_cut })
    }

    /// Returns the lines of those files that contain the text. Skips binary and large files.
    ///
    /// # Errors
    /// [`Problem`]: a bad pattern, no such folder, or it was stopped. Trying again is safe.
    pub fn search(&self, query: &Query, stop: &Stop) -> Result<Found<Match>, Problem> {
        let regex = regex(query)?;
        let mut items = Vec::new();
        let is_cut = self.walk(query, stop, |path| {
            let path_shown = shown(path);
            let Ok(text) = self.load(&path_shown, path) else {
                return Ok(false);
            };
            let lines = text.lines().zip(1..);
            for (line, number) in lines.filter(|(line, _)| regex.is_match(line)) {
                if items.len() == query.most() {
                    return Ok(true);
                }
                items.push(Match {
                    path: path_shown.clone(),
                    line: number,
                    text: line.chars().take(MAX_LINE).collect(),
                });
            }
            Ok(false)
        })?;
        Ok(Found { items, is_cut })
    }

    /// Visits the files, sorted within each folder, until a visit ends the search. Returns whether
    /// there were more.
    fn walk(
        &self,
        query: &Query,
        stop: &Stop,
        mut visit: impl FnMut(&Path) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        let glob = query.glob.as_deref().map(Glob::new).transpose()?;
        let start = match query.folder.as_deref() {
            Some(folder) => self.real(folder)?,
            None => PathBuf::new(),
        };
        let mut seen = 0_usize;
        let mut folders = VecDeque::from([start]);
        while let Some(folder) = folders.pop_front() {
            let entries = match self.dir.read_dir(or_here(folder.clone())) {
                Ok(entries) => entries,
                Err(error) if seen == 0 => return Err(Problem::io(&shown(&folder), &error)),
                // One that may not be read, or is not there any more.
                Err(_) => continue,
            };
            let mut names = Vec::new();
            for entry in entries.flatten() {
                seen += 1;
                if seen > MAX_SEEN {
                    return Ok(true);
                }
                names.push((entry.file_name(), entry.file_type()));
            }
            names.sort_by(|(one, _), (other, _)| one.cmp(other));
            let mut inner = Vec::new();
            for (name, kind) in names {
                stop.check()?;
                let path = folder.join(&name);
                match kind {
                    Ok(kind) if kind.is_dir() && SKIPPED.iter().all(|skipped| name != *skipped) => {
                        inner.push(path);
                    }
                    Ok(kind) if kind.is_file() => {
                        let fits = glob.as_ref().is_none_or(|it| it.matches(&shown(&path)));
                        if fits && visit(&path)? {
                            return Ok(true);
                        }
                    }
                    _ => {}
                }
            }
            // Depth first, so that what belongs together is told together.
            for folder in inner.into_iter().rev() {
                folders.push_front(folder);
            }
        }
        Ok(false)
    }
}

fn regex(query: &Query) -> Result<Regex, Problem> {
    if query.text.is_empty() {
        return Err(Problem::call("the text to be searched is empty"));
    }
    let pattern = match query.is_regex {
        true => query.text.clone(),
        false => regex::escape(&query.text),
    };
    let built = RegexBuilder::new(&pattern).size_limit(MAX_REGEX).build();
    built.map_err(|error| Problem::call(format!("this is no regular expression: {error}")))
}
