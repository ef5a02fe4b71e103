//! Scenarios that were recorded of real hosts of two versions (`tests/vectors/recorded`): how they are
//! read. The tests play them from both sides.

mod client;
mod deviations;
mod host;
mod remote;
mod script;

use std::path::Path;

use serde_json::Value;

/// The versions of the recorded hosts.
pub const VERSIONS: [&str; 2] = ["1.2.1", "1.9.2"];

/// One line of a recording.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct Line {
    pub conn: u64,
    /// `c2s` or `s2c`, or nothing for an `event`.
    pub dir: String,
    pub frame: Value,
    /// What was sent where it was not a frame.
    pub raw: Option<String>,
    pub binary: Option<String>,
    /// What happened to the connection.
    pub event: String,
    /// Whose key signed, and what was odd about it.
    pub by: String,
    pub how: Value,
    /// The trust level of the host from here on.
    pub trust: String,
    /// How the host closed.
    pub code: u16,
    /// The whole line.
    #[serde(skip)]
    pub text: String,
}

impl Line {
    pub fn kind(&self) -> &str {
        self.frame["type"].as_str().unwrap_or_default()
    }

    pub fn is_from_host(&self) -> bool {
        self.dir == "s2c"
    }

    pub fn is_from_client(&self) -> bool {
        self.dir == "c2s"
    }
}

pub struct Recording {
    pub version: &'static str,
    /// The number and the name.
    pub name: String,
    pub lines: Vec<Line>,
}

impl Recording {
    /// For messages of tests: which line of which file this is.
    pub fn place(&self, line: usize) -> String {
        // The header is the first line, and lines are counted from one.
        format!("{}/{}.jsonl:{}", self.version, self.name, line + 2)
    }
}

/// All recordings of a version, in order.
pub fn recordings(version: &'static str) -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/recorded");
    let files = std::fs::read_dir(folder.join(version)).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().skip(1);
        let lines = lines.map(|line| {
            let text = line.to_owned();
            let mut line: Line = serde_json::from_str(line).unwrap();
            expand(&mut line.frame);
            Line { text, ..line }
        });
        Recording {
            version,
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            lines: lines.collect(),
        }
    };
    files.iter().map(read).collect()
}

/// The connections of a recording, each with its lines.
pub fn connections(recording: &Recording) -> Vec<Vec<(usize, &Line)>> {
    let mut connections: Vec<Vec<(usize, &Line)>> = Vec::new();
    for (at, line) in recording.lines.iter().enumerate() {
        let place = usize::try_from(line.conn).unwrap() - 1;
        if connections.len() <= place {
            connections.resize_with(place + 1, Vec::new);
        }
        connections[place].push((at, line));
    }
    connections
}

/// Writes characters out again that the recording only counts: `<x*1500>`.
fn expand(value: &mut Value) {
    match value {
        Value::String(text) => {
            let counted = text.find('<').and_then(|at| {
                let (one, times) = text[at + 1..].strip_suffix('>')?.split_once('*')?;
                let times = times.parse().ok()?;
                Some(format!("{}{}", &text[..at], one.repeat(times)))
            });
            if let Some(whole) = counted {
                *text = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Object(members) => members.values_mut().for_each(expand),
        _ => {}
    }
}

#[test]
fn every_scenario_is_recorded_from_both_hosts() {
    for version in VERSIONS {
        let numbers: Vec<_> = recordings(version)
            .iter()
            .map(|it| it.name[..2].to_owned())
            .collect();
        let expected: Vec<_> = (1..=35).map(|number| format!("{number:02}")).collect();
        assert_eq!(numbers, expected, "{version}");
    }
}
