//! Searching for files, and for lines that contain a text.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};

use super::glob::Glob;
use super::{Code, Stop, ToolError, Workspace, or_here, shown};
use crate::text::shortened;

/// Large folders that a search skips, and what it says of them.
const SKIPPED: [(&str, &str); 5] = [
    (".git", ".git folders"),
    (".hg", ".hg folders"),
    (".svn", ".svn folders"),
    ("node_modules", "node_modules folders"),
    ("target", "target folders"),
];
/// What else it skips.
const LARGE: &str = "files over 2 MiB";
const BINARY: &str = "files that are not text";
const LINKS: &str = "links";
const UNREADABLE: &str = "what cannot be read";
/// Most files and folders to visit.
const MAX_SEEN: usize = 50_000;
/// The longest line in a result, in characters.
const MAX_LINE: usize = 300;
/// The largest compiled expression, in bytes.
const MAX_REGEX: usize = 1024 * 1024;

/// A search.
#[derive(Clone, Debug, Default)]
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
    /// What was not looked into, and how many of each.
    pub skipped: BTreeMap<&'static str, usize>,
}

impl<T> Found<T> {
    /// Returns remarks about what is not among the results, for people and models.
    pub fn remarks(&self) -> Vec<String> {
        let kinds = self.skipped.iter();
        let kinds: Vec<_> = kinds
            .map(|(what, count)| format!("{what} ({count})"))
            .collect();
        let more = self.is_cut.then(|| "(there may be more)".to_owned());
        let skipped = (!kinds.is_empty()).then(|| format!("(left out: {})", kinds.join(", ")));
        more.into_iter().chain(skipped).collect()
    }
}

type Skipped = BTreeMap<&'static str, usize>;

const fn why_not(code: Code) -> &'static str {
    match code {
        Code::TooLarge => LARGE,
        Code::Other => BINARY,
        _ => UNREADABLE,
    }
}

impl Workspace {
    /// Returns the files that match the glob of the query. Skips folders such as `.git` and
    /// `target`, and does not follow links.
    ///
    /// # Errors
    /// [`ToolError`]: a bad pattern, no such folder, or it was stopped. Trying again is safe.
    pub fn files(&self, query: &Query, stop: &Stop) -> Result<Found<String>, ToolError> {
        let mut items = Vec::new();
        let mut skipped = BTreeMap::new();
        let is_cut = self.walk(query, stop, &mut skipped, |path, _| {
            items.push(shown(path));
            Ok(items.len() > query.most())
        })?;
        items.truncate(query.most());
        Ok(Found {
            items,
            is_cut,
            skipped,
        })
    }

    /// Returns the lines of those files that contain the text. Skips binary and large files.
    ///
    /// # Errors
    /// [`ToolError`]: a bad pattern, no such folder, or it was stopped. Trying again is safe.
    pub fn search(&self, query: &Query, stop: &Stop) -> Result<Found<Match>, ToolError> {
        let regex = regex(query)?;
        let mut items = Vec::new();
        let mut skipped = BTreeMap::new();
        let is_cut = self.walk(query, stop, &mut skipped, |path, skipped| {
            let path_shown = shown(path);
            let text = match self.load(&path_shown, path) {
                Ok(text) => text,
                Err(problem) => {
                    *skipped.entry(why_not(problem.code)).or_default() += 1;
                    return Ok(false);
                }
            };
            let lines = text.lines().zip(1..);
            for (line, number) in lines.filter(|(line, _)| regex.is_match(line)) {
                if items.len() == query.most() {
                    return Ok(true);
                }
                items.push(Match {
                    path: path_shown.clone(),
                    line: number,
                    text: shortened(line, MAX_LINE).into_owned(),
                });
            }
            Ok(false)
        })?;
        Ok(Found {
            items,
            is_cut,
            skipped,
        })
    }

    /// Visits the files, sorted within each folder, until a visit ends the search. Returns whether
    /// there were more.
    fn walk(
        &self,
        query: &Query,
        stop: &Stop,
        skipped: &mut Skipped,
        mut visit: impl FnMut(&Path, &mut Skipped) -> Result<bool, ToolError>,
    ) -> Result<bool, ToolError> {
        let glob = query.glob.as_deref().map(|glob| {
            let root = self.root.to_string_lossy();
            Glob::new(glob.strip_prefix(&*root).unwrap_or(glob))
        });
        let glob = glob.transpose()?;
        let start = match query.folder.as_deref() {
            Some(folder) => self.real(folder)?,
            None => PathBuf::new(),
        };
        let mut seen = 0_usize;
        let mut folders = VecDeque::from([start]);
        while let Some(folder) = folders.pop_front() {
            let entries = match self.dir.read_dir(or_here(folder.clone())) {
                Ok(entries) => entries,
                Err(error) if seen == 0 => return Err(ToolError::io(&shown(&folder), &error)),
                // One that may not be read, or is not there any more.
                Err(_) => {
                    *skipped.entry(UNREADABLE).or_default() += 1;
                    continue;
                }
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
                let is_large = |(large, _): &&(&str, &str)| name == *large;
                let what = match kind {
                    Ok(kind) if kind.is_dir() => match SKIPPED.iter().find(is_large) {
                        Some((_, what)) => what,
                        None => {
                            inner.push(path);
                            continue;
                        }
                    },
                    _ if glob.as_ref().is_some_and(|it| !it.matches(&shown(&path))) => continue,
                    Ok(kind) if kind.is_file() => match visit(&path, skipped)? {
                        true => return Ok(true),
                        false => continue,
                    },
                    Ok(kind) if kind.is_symlink() => LINKS,
                    // A pipe, a socket, a device: nothing to read.
                    Ok(_) => continue,
                    Err(_) => UNREADABLE,
                };
                *skipped.entry(what).or_default() += 1;
            }
            // Depth first, so that what belongs together is listed together.
            for folder in inner.into_iter().rev() {
                folders.push_front(folder);
            }
        }
        Ok(false)
    }
}

fn regex(query: &Query) -> Result<Regex, ToolError> {
    if query.text.is_empty() {
        return Err(ToolError::call("the text to be searched is empty"));
    }
    let pattern = match query.is_regex {
        true => query.text.clone(),
        false => regex::escape(&query.text),
    };
    let built = RegexBuilder::new(&pattern).size_limit(MAX_REGEX).build();
    built.map_err(|error| ToolError::call(format!("this is not a regular expression: {error}")))
}
