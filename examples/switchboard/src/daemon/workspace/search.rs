//! Searching for files, and for lines that contain a text.

use std::collections::BTreeMap;
use std::path::Path;

use ignore::WalkBuilder;
use regex::{Regex, RegexBuilder};
use strsim::jaro_winkler;

use super::glob::Glob;
use super::read::as_text;
use super::{Code, Stop, ToolError, Workspace, shown};
use crate::text::shortened;

/// Folders of version control, which a search skips.
const SKIPPED: [&str; 3] = [".git", ".hg", ".svn"];
/// What it leaves out.
const LONG: &str = "files with lines over 2 MiB";
const BINARY: &str = "files that are not text";
const LINKS: &str = "links";
const UNREADABLE: &str = "what cannot be read";
/// The name of a file with names that a search leaves out.
const IGNORE: &str = ".gitignore";
/// Most files and folders to visit.
const MAX_SEEN: usize = 50_000;
/// How much the names of two files are alike, from 0 to 1, if one may be meant by the other.
const ALIKE: f64 = 0.85;
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
    /// Whether to look also into what `.gitignore` names. Default no.
    pub has_ignored: bool,
    /// Most results. Default 100.
    pub limit: Option<usize>,
}

impl Query {
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
    /// Whether there is a `.gitignore`, and what it names was not looked into.
    pub is_without_ignored: bool,
    /// What else was not looked into, and how many of each.
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
        let ignored = "(left out: what .gitignore names; \"ignored\": true looks there, too)";
        let ignored = self.is_without_ignored.then(|| ignored.to_owned());
        more.into_iter().chain(ignored).chain(skipped).collect()
    }
}

impl Workspace {
    /// Returns the files that match the glob of the query. Skips what `.gitignore` names, and does not follow
    /// links.
    ///
    /// # Errors
    /// [`ToolError`]: a bad pattern, no such folder, or it was stopped. Trying again is safe.
    pub fn files(&self, query: &Query, stop: &Stop) -> Result<Found<String>, ToolError> {
        self.walk(query, stop, |path, found| {
            found.items.push(shown(path));
            Ok(())
        })
    }

    /// Returns the lines of those files that contain the text. Skips binary files.
    ///
    /// # Errors
    /// [`ToolError`]: a bad pattern, no such folder, or it was stopped. Trying again is safe.
    pub fn search(&self, query: &Query, stop: &Stop) -> Result<Found<Match>, ToolError> {
        let regex = regex(query)?;
        self.walk(query, stop, |path, found| {
            let (name, before, mut number) = (shown(path), found.items.len(), 0);
            let read = self.each_line(&name, path, stop, |line| {
                number += 1;
                let line = as_text(&name, line)?.trim_end_matches(['\n', '\r']);
                if regex.is_match(line) {
                    found.items.push(Match {
                        path: name.clone(),
                        line: number,
                        text: shortened(line, MAX_LINE).into_owned(),
                    });
                }
                Ok(found.items.len() <= query.most())
            });
            let why_not = match read {
                Ok(()) => return Ok(()),
                Err(why) if why.code == Code::Aborted => return Err(why),
                Err(why) if why.code == Code::TooLarge => LONG,
                Err(why) if why.code == Code::NotText => BINARY,
                Err(_) => UNREADABLE,
            };
            found.items.truncate(before);
            *found.skipped.entry(why_not).or_default() += 1;
            Ok(())
        })
    }

    /// Adds to an error that names no file of the workspace which ones have a name like that: models and people also
    /// write lines, marks and folders of other machines with a name.
    pub fn with_similar(&self, name: &str, error: ToolError) -> ToolError {
        if !matches!(error.code, Code::NotFound | Code::Sandbox) {
            return error;
        }
        let name = name.to_lowercase();
        let mut parts = name.rsplit(['/', '\\']).map(str::trim);
        let last = parts.find(|it| !it.is_empty()).unwrap_or_default();
        let is_like = |path: &Path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            jaro_winkler(&file.to_lowercase(), last) > ALIKE
        };
        let found = self.walk(&Query::default(), &Stop::default(), |path, found| {
            found.items.extend(is_like(path).then(|| shown(path)));
            Ok(())
        });
        let mut like = found.map_or_else(|_| Vec::new(), |found| found.items);
        let rank = |path: &String| jaro_winkler(&path.to_lowercase(), &name);
        like.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
        let like: Vec<_> = like.iter().take(3).map(|it| format!("{it:?}")).collect();
        match like.is_empty() {
            true => error,
            false => {
                let message = format!("{error}; did you mean {}?", like.join(" or "));
                ToolError::new(error.code, message)
            }
        }
    }

    /// Visits the files in the order of their names, until more was found than is wanted.
    fn walk<T>(
        &self,
        query: &Query,
        stop: &Stop,
        mut visit: impl FnMut(&Path, &mut Found<T>) -> Result<(), ToolError>,
    ) -> Result<Found<T>, ToolError> {
        let glob = query.glob.as_deref().map(|glob| {
            let root = self.root.to_string_lossy();
            Glob::new(glob.strip_prefix(&*root).unwrap_or(glob))
        });
        let glob = glob.transpose()?;
        let start = self.real(query.folder.as_deref().unwrap_or("."))?;
        let mut found = Found {
            items: Vec::new(),
            is_cut: false,
            is_without_ignored: false,
            skipped: BTreeMap::new(),
        };
        let walk = WalkBuilder::new(self.root.join(start))
            .standard_filters(false)
            .parents(!query.has_ignored)
            .git_ignore(!query.has_ignored)
            .git_exclude(!query.has_ignored)
            .require_git(false)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(|entry| {
                entry.depth() == 0 || SKIPPED.iter().all(|it| entry.file_name() != *it)
            })
            .build();
        for (seen, entry) in walk.enumerate() {
            stop.check()?;
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if seen == 0 => {
                    return Err(ToolError::new(Code::Other, error.to_string()));
                }
                // One that may not be read, or is not there any more.
                Err(_) => {
                    *found.skipped.entry(UNREADABLE).or_default() += 1;
                    continue;
                }
            };
            let path = entry
                .path()
                .strip_prefix(&self.root)
                .unwrap_or(entry.path());
            found.is_without_ignored |= !query.has_ignored && entry.file_name() == IGNORE;
            // Pipes, sockets and devices are nothing to read.
            let kind = entry.file_type();
            let is_link = kind.is_some_and(|it| it.is_symlink());
            let is_file = kind.is_some_and(|it| it.is_file());
            if !is_file && !is_link || glob.as_ref().is_some_and(|it| !it.matches(&shown(path))) {
                continue;
            }
            match is_link {
                true => *found.skipped.entry(LINKS).or_default() += 1,
                false => visit(path, &mut found)?,
            }
            found.is_cut = found.items.len() > query.most() || seen == MAX_SEEN;
            if found.is_cut {
                break;
            }
        }
        found.items.truncate(query.most());
        Ok(found)
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
