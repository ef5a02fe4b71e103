//! [`Suite`]: the rows of a protocol and a role, as they are written in `suites/`.
//!
//! A file has these lines, besides empty ones and comments, which begin with `#` and a space:
//!
//! | Line | Meaning |
//! |---|---|
//! | `path /ws` | the path of WebSockets, if the URL has none |
//! | `get /info TEXT` | what a played server answers to this request over HTTP |
//! | `let NAME = TEXT` | what `${NAME}` stands for, unless the user sets it |
//! | `script NAME` | begins a script with a name: lines in which `$1`, `$2`.. may stand; the one named `ready` is in front of every row |
//! | `do NAME [A \| B..]` | the lines of a script, with these texts for `$1`, `$2`.. |
//! | `## SECTION` | the section of the specification for the rows from here on |
//! | `MUST ID[, CONDITION..]: TEXT`, `SHOULD ..` | begins a row, with lines of conditions in its head, and says what holds |
//! | `needs NAME`, `unless NAME` | a condition: the row is for users that have set this variable, or have not |
//! | `bare`, `after NAME` | a condition: no script, or another script than `ready` is in front of this row |
//! | anything else | a [step](crate::play::script) |

use std::collections::{BTreeMap, BTreeSet};

use rpc_core::testing::Side;
use serde::Serialize;

use crate::play::{Step, Variables, script};
use crate::{Protocol, side};

rpc_core::words! {
    /// How much a row weighs.
    #[derive(Default)]
    pub enum Level {
        /// The specification demands it.
        #[default]
        "MUST" => Must,
        /// The specification suggests it, or leaves it open and the known programs agree.
        "SHOULD" => Should,
    }
}

/// The rows for one protocol and role.
#[derive(Debug, Default)]
pub(crate) struct Suite {
    /// The rows, in the order of the specification.
    pub rows: Vec<Row>,
    /// The protocol, if its shapes and its order are judged.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) path: String,
    /// The paths and bodies of what a played server answers over HTTP.
    pub(crate) gets: Vec<(String, String)>,
    pub(crate) lets: Vec<(String, String)>,
}

/// One thing to check.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Row {
    /// The id, such as `exoclaw.server.chat.done-last`. It never changes.
    pub id: String,
    /// The section of the specification.
    pub section: String,
    /// How much it weighs.
    pub level: Level,
    /// What holds.
    pub says: String,
    #[serde(skip)]
    pub(crate) needs: Vec<String>,
    #[serde(skip)]
    pub(crate) unless: Vec<String>,
    /// The steps of the script in front.
    #[serde(skip)]
    pub(crate) before: Vec<Step>,
    #[serde(skip)]
    pub(crate) steps: Vec<Step>,
}

/// The script in front of every row.
const READY: &str = "ready";

impl Suite {
    /// Returns the suite of a protocol and role.
    ///
    /// # Errors
    /// What is wrong in its file.
    pub(crate) fn load(protocol: Protocol, role: Side) -> Result<Self, String> {
        use Protocol::{Acolyte, ConnectOnion, Exoclaw, SmartHole, Snek};
        use Side::{Client, Server};
        let text = match (protocol, role) {
            (Snek, Server) => include_str!("suites/snek-server.txt"),
            (Exoclaw, Server) => include_str!("suites/exoclaw-server.txt"),
            (SmartHole, Server) => include_str!("suites/smarthole-server.txt"),
            (ConnectOnion, Server) => include_str!("suites/connectonion-server.txt"),
            (Acolyte, Server) => include_str!("suites/acolyte-server.txt"),
            (Exoclaw, Client) => include_str!("suites/exoclaw-client.txt"),
            (Snek, Client) => include_str!("suites/snek-client.txt"),
            (SmartHole, Client) => include_str!("suites/smarthole-client.txt"),
            (ConnectOnion, Client) => include_str!("suites/connectonion-client.txt"),
            (Acolyte, Client) => include_str!("suites/acolyte-client.txt"),
        };
        let mut suite = Self::read(
            text,
            protocol,
            &format!("{}.{}", protocol.name(), side(role)),
        )?;
        // It has no steps: it judges the frames of all others.
        suite.rows.push(Row {
            id: format!("{}.{}.order", protocol.name(), side(role)),
            section: "All of it".to_owned(),
            says: "In all rows, frames have the shapes, the limits and the order of the protocol."
                .to_owned(),
            ..Row::default()
        });
        Ok(suite)
    }

    /// Returns the variables that rows need, and those with a default, which stands behind it.
    pub(crate) fn variables(&self) -> (Vec<&str>, &[(String, String)]) {
        let needed = self.rows.iter().flat_map(|row| &row.needs);
        let needed: BTreeSet<_> = needed.map(String::as_str).collect();
        (needed.into_iter().collect(), &self.lets)
    }

    fn read(text: &str, protocol: Protocol, prefix: &str) -> Result<Self, String> {
        let mut reader = Reader::new(protocol, prefix);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with("# ") {
                reader
                    .line(line)
                    .map_err(|why| format!("{prefix}, line {}: {why}", number + 1))?;
            }
        }
        reader.suite.check()?;
        Ok(reader.suite)
    }

    fn check(&self) -> Result<(), String> {
        for row in &self.rows {
            if row.steps.is_empty() {
                return Err(format!("{}: it has no steps", row.id));
            }
            if self.rows.iter().filter(|other| other.id == row.id).count() > 1 {
                return Err(format!("{}: there are two of them", row.id));
            }
        }
        Ok(())
    }
}

/// A file that is being read.
#[derive(Default)]
struct Reader {
    suite: Suite,
    prefix: String,
    section: String,
    scripts: BTreeMap<String, Vec<String>>,
    /// The named script that is being read, if it is not a row.
    script: Option<String>,
    /// What is known of the variables.
    variables: Variables,
}

impl Reader {
    fn new(protocol: Protocol, prefix: &str) -> Self {
        let mut reader = Self {
            prefix: prefix.to_owned(),
            variables: Variables::lenient(),
            ..Self::default()
        };
        reader.suite.protocol = Some(protocol);
        reader
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        if let Some(name) = &self.script
            && !["script", "##", "MUST", "SHOULD"].contains(&word)
        {
            let script = self.scripts.entry(name.clone()).or_default();
            script.push(line.to_owned());
            return Ok(());
        }
        if let Some(level) = Level::parse(word) {
            return self.row(level, rest);
        }
        match word {
            "path" if self.suite.rows.is_empty() => {
                rest.clone_into(&mut self.suite.path);
            }
            "get" => {
                let (path, body) = rest.split_once(' ').ok_or("a body is missing")?;
                script::parse(body, &self.variables)?;
                self.suite.gets.push((path.to_owned(), body.to_owned()));
            }
            "let" => {
                let (name, value) = rest.split_once(" = ").ok_or("a value is missing")?;
                self.variables.set_part(name, value)?;
                self.suite.lets.push((name.to_owned(), value.to_owned()));
            }
            "script" => self.script = Some(rest.to_owned()),
            "##" => {
                self.script = None;
                rest.clone_into(&mut self.section);
            }
            "needs" => self.last()?.needs.push(rest.to_owned()),
            "unless" => self.last()?.unless.push(rest.to_owned()),
            "bare" => self.last()?.before.clear(),
            "after" => self.last()?.before = self.steps(rest)?,
            "do" => {
                for line in self.script(rest)? {
                    self.line(&line)?;
                }
            }
            _ => {
                let step = script::read(line, &self.variables)?;
                self.last()?.steps.push(step);
            }
        }
        Ok(())
    }

    /// Returns the lines of a script with the texts that stand behind its name.
    fn script(&self, call: &str) -> Result<Vec<String>, String> {
        let (name, texts) = call.split_once(' ').unwrap_or((call, ""));
        let lines = self.scripts.get(name).ok_or("there is no such script")?;
        let fill = |line: &String| {
            let texts = texts.split(" | ").enumerate();
            texts.fold(line.clone(), |line, (index, text)| {
                line.replace(&format!("${}", index + 1), text)
            })
        };
        Ok(lines.iter().map(fill).collect())
    }

    /// Returns the steps of a script.
    fn steps(&self, name: &str) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        for line in self.script(name)? {
            match line.strip_prefix("do ") {
                Some(call) => steps.extend(self.steps(call)?),
                None => steps.push(script::read(&line, &self.variables)?),
            }
        }
        Ok(steps)
    }

    fn row(&mut self, level: Level, rest: &str) -> Result<(), String> {
        let (id, says) = rest
            .split_once(": ")
            .ok_or("a row has an id, a colon and what holds")?;
        let mut conditions = id.split(", ");
        let id = conditions.next().unwrap_or(id);
        self.script = None;
        let before = match self.scripts.contains_key(READY) {
            true => self.steps(READY)?,
            false => Vec::new(),
        };
        self.suite.rows.push(Row {
            id: format!("{}.{id}", self.prefix),
            section: self.section.clone(),
            level,
            says: says.to_owned(),
            before,
            ..Row::default()
        });
        conditions.try_for_each(|condition| self.line(condition))
    }

    fn last(&mut self) -> Result<&mut Row, String> {
        self.suite
            .rows
            .last_mut()
            .ok_or_else(|| "there is no row yet".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_file_is_reported_with_the_place() {
        for (text, why) in [
            ("< {}", "p, line 1: there is no row yet"),
            ("MUST a: b\n\nhello", "p, line 3: hello: unknown step"),
            ("MUST a: b", "p.a: it has no steps"),
            (
                "MUST a: b\nsilence\nafter x",
                "p, line 3: there is no such script",
            ),
            ("MUST a", "p, line 1: a row has an id"),
            ("get /info", "p, line 1: a body is missing"),
        ] {
            let error = Suite::read(text, Protocol::Snek, "p").unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
        let row = "MUST a: b\nsilence\n";
        assert_eq!(Suite::read(row, Protocol::Snek, "p").unwrap().rows.len(), 1);
        assert!(
            Suite::read(&row.repeat(2), Protocol::Snek, "p")
                .unwrap_err()
                .contains("two of them")
        );
    }
}
