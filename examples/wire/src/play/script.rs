//! A script: one step a line of a suite, or a frame of a recording.
//!
//! | Step | Meaning |
//! |---|---|
//! | `open [PATH] [NAME: VALUE; ...]` | opens a connection; without this step, the first one opens itself. In a check of a client: waits for its connection |
//! | `refuse STATUS PATH [NAME: VALUE; ...]` | the upgrade is answered with this status, such as `404`, `4xx`, or `!101` for any other |
//! | `http METHOD PATH [NAME: VALUE; ...] [\| BODY]` | makes an HTTP request; the answer's events, or its body, are frames |
//! | `status STATUS`, `header NAME REGEX` | what the last answer has (in a check of a client: the last request) |
//! | `path REGEX` | the path of the last request of a client |
//! | `> TEXT`, `>binary TEXT`, `>ping TEXT` | sends a message, as it stands |
//! | `>close CODE`, `>cut` | closes the connection, or drops it |
//! | `< PATTERN` | the next message matches the [pattern](crate::pattern) |
//! | `<* PATTERN [until PATTERN]` | a later message matches, and none that matches the second pattern comes first |
//! | `<pong TEXT`, `<ping`, `<close [CODE]`, `<*close [CODE]` | a pong; a ping; a Close as what comes next, or behind messages |
//! | `code CODE` | the last Close had this code |
//! | `! PATTERN` | no message that comes from here on matches |
//! | `~ PATTERN` | messages that match are passed over from here on |
//! | `silence` | nothing comes for a while |
//! | `wait TIME` | time passes in which nothing is read: pings are not answered |
//! | `end` | the client, or the connection, ends by itself |
//! | `exit CODE`, `output REGEX` | how the program of a client ended, and what it wrote |
//! | `signed` | the message that was expected last has a signature of now (ConnectOnion) |
//! | `ordered` | what has come so far keeps the order of the protocol |
//! | `alone` | the client opens no further connection for a while |
//!
//! In front of a step: a number for another connection than the first (`2> {}`); `?` if the row is not
//! applicable where the step fails; `if NAME` for a step that needs a variable, `without NAME` for one that does not;
//! `within 15s` for another time than the usual one; `at-least 2s` for one that may not succeed before.

use std::fmt;
use std::time::Duration;

use super::conn::Frame;
use super::variables::Variables;
use crate::frame::is_one;
use crate::head::Head;
use crate::pattern::{Pattern, short};

/// A step of a script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// The step as it was written, for messages.
    pub(crate) line: String,
    /// The line of the recording, from 1; 0 for a step of a suite.
    pub(crate) number: usize,
    pub(crate) connection: u32,
    /// Whether a failure means that the row is not applicable.
    pub(crate) soft: bool,
    /// A variable that has to be set, or not.
    pub(crate) only_if: Option<(String, bool)>,
    pub(crate) within: Option<Duration>,
    /// Whether it needs a connection, which opens itself.
    pub(crate) opens: bool,
    /// How long it takes at least.
    pub(crate) not_before: Option<Duration>,
    pub(crate) action: Action,
}

/// What a step does.
#[derive(Clone, Debug, Default)]
pub(crate) enum Action {
    Ask(Ask),
    Status(String),
    Header(String, String),
    Path(String),
    /// A frame to send; [`Frame::End`] drops the connection.
    Send(Frame),
    Expect {
        pattern: Expected,
        skip: bool,
        until: Option<String>,
    },
    /// Whether texts before it are passed over.
    Await(Awaited, bool),
    Code(u16),
    /// Whether what matches must not come; otherwise it is passed over.
    Watch(String, bool),
    #[default]
    Silence,
    Wait(String),
    Exit(String),
    Output(String),
    Alone,
    Ordered,
    Signed,
}

/// A request that opens a connection, and how it is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    /// Without a method, it is for a WebSocket.
    pub(crate) method: Option<String>,
    /// The path and the query; empty if it is not known.
    pub(crate) path: String,
    pub(crate) headers: Headers,
    pub(crate) body: String,
    /// The status of the answer, such as `101`, `4xx`, or `!101` for any other; empty for any.
    pub(crate) status: String,
    /// The head of the recorded answer; empty if it is not known. `None` in a suite.
    pub(crate) answer: Option<Head>,
}

/// What a text has to be.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// A pattern in which variables stand.
    Text(String),
    /// A pattern without any.
    Pattern(Pattern),
}

/// What is waited for, besides texts.
#[derive(Clone, Debug)]
pub(crate) enum Awaited {
    Ping,
    Pong(String),
    Close(Option<u16>),
    End,
    /// This, as it was recorded; of an end without a Close not the words.
    Recorded(Frame),
}

/// What is awaited, in words.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expect { pattern, .. } => f.write_str(&short(match pattern {
                Expected::Text(text) => text,
                Expected::Pattern(it) => it.text(),
            })),
            Self::Await(Awaited::Close(None), _) => f.write_str("a Close"),
            Self::Await(Awaited::Close(Some(code)), _) => write!(f, "Close {code}"),
            Self::Await(Awaited::End, _) => f.write_str("the end"),
            Self::Await(Awaited::Ping, _) => f.write_str("a ping"),
            Self::Await(Awaited::Pong(text), _) => write!(f, "a pong of {text:?}"),
            Self::Await(Awaited::Recorded(frame), _) | Self::Send(frame) => frame.fmt(f),
            _ => Ok(()),
        }
    }
}

pub(crate) type Headers = Vec<(String, String)>;

/// Reads a line of a script.
///
/// # Errors
/// Why it is not a step.
pub(crate) fn read(line: &str, variables: &Variables) -> Result<Step, String> {
    step(line, variables).map_err(|why| format!("{line}: {why}"))
}

fn step(line: &str, variables: &Variables) -> Result<Step, String> {
    let mut rest = line;
    let mut step = Step {
        line: line.to_owned(),
        connection: 1,
        ..Step::default()
    };
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        // A word of a condition has another one behind it.
        let named = || behind.split_once(' ').ok_or("a step is missing");
        rest = match word {
            "if" | "without" => {
                let (name, behind) = named()?;
                step.only_if = Some((name.to_owned(), word == "if"));
                behind
            }
            "at-least" | "within" => {
                let (time, behind) = named()?;
                let time = Some(crate::cli::duration(time)?);
                match word {
                    "within" => step.within = time,
                    _ => step.not_before = time,
                }
                behind
            }
            _ if rest.starts_with('?') => {
                step.soft = true;
                rest.get(1..).unwrap_or_default()
            }
            _ if digits > 0 => {
                let (number, behind) = rest.split_at(digits);
                let number = number.parse();
                step.connection =
                    number.map_err(|_| "the number of the connection is too large")?;
                behind
            }
            _ => break,
        };
        rest = rest.trim_start();
    }
    let (word, argument) = rest.split_once(' ').unwrap_or((rest, ""));
    step.opens = word.starts_with(['<', '>']) && word != ">cut" || is_one(word, "silence wait");
    step.action = action(word, argument.trim(), variables)?;
    Ok(step)
}

fn action(word: &str, argument: &str, variables: &Variables) -> Result<Action, String> {
    let text = || argument.to_owned();
    let code = || match argument {
        "" => Ok(None),
        code => code
            .parse()
            .map(Some)
            .map_err(|_| format!("{code} is not a close code")),
    };
    let required = || code()?.ok_or_else(|| "the close code is missing".to_owned());
    Ok(match word {
        "open" => ask(None, argument, "101", "")?,
        "refuse" => {
            let parts = argument.split_once(' ');
            let (status, rest) = parts.ok_or("status and path are missing")?;
            ask(None, rest, status, "")?
        }
        "http" => {
            let (head, body) = argument.split_once(" | ").unwrap_or((argument, ""));
            let (method, rest) = head.split_once(' ').ok_or("method and path are missing")?;
            ask(Some(method), rest, "", body)?
        }
        "status" => Action::Status(text()),
        "header" => {
            let (name, regex) = argument.split_once(' ').unwrap_or((argument, ""));
            Action::Header(name.to_owned(), regex.to_owned())
        }
        "path" => Action::Path(text()),
        ">" => Action::Send(Frame::Text(text())),
        ">binary" => Action::Send(Frame::Binary(text().into_bytes())),
        ">ping" => Action::Send(Frame::Ping(text().into_bytes())),
        ">close" => Action::Send(Frame::Close(required()?, String::new())),
        ">cut" => Action::Send(Frame::End("cut".to_owned())),
        "<" => Action::Expect {
            pattern: Expected::Text(is_pattern(argument, variables)?),
            skip: false,
            until: None,
        },
        "<*" => {
            let (wanted, until) = match argument.split_once(" until ") {
                Some((wanted, until)) => (wanted, Some(is_pattern(until, variables)?)),
                None => (argument, None),
            };
            Action::Expect {
                pattern: Expected::Text(is_pattern(wanted, variables)?),
                skip: true,
                until,
            }
        }
        "<pong" => Action::Await(Awaited::Pong(text()), true),
        "<ping" => Action::Await(Awaited::Ping, true),
        "<close" | "<*close" => Action::Await(Awaited::Close(code()?), word == "<*close"),
        "end" => Action::Await(Awaited::End, true),
        "code" => Action::Code(required()?),
        "!" | "~" => Action::Watch(is_pattern(argument, variables)?, word == "!"),
        "silence" => Action::Silence,
        "wait" => Action::Wait(text()),
        "exit" => Action::Exit(text()),
        "output" => Action::Output(text()),
        "alone" => Action::Alone,
        "ordered" => Action::Ordered,
        "signed" => Action::Signed,
        _ => return Err("unknown step".to_owned()),
    })
}

/// Reads a request from its path, and headers behind it.
fn ask(method: Option<&str>, text: &str, status: &str, body: &str) -> Result<Action, String> {
    let (path, headers) = text.split_once(' ').unwrap_or((text, ""));
    let lines = headers.split(';').map(str::trim);
    let headers = lines.filter(|line| !line.is_empty()).map(|line| {
        let header = line.split_once(':');
        let (name, value) = header.ok_or_else(|| format!("{line} is not a header"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    });
    Ok(Action::Ask(Ask {
        method: method.map(str::to_owned),
        path: path.to_owned(),
        headers: headers.collect::<Result<_, String>>()?,
        body: body.to_owned(),
        status: status.to_owned(),
        answer: None,
    }))
}

fn is_pattern(text: &str, variables: &Variables) -> Result<String, String> {
    parse(text, variables)?;
    Ok(text.to_owned())
}

/// Reads a pattern in which variables stand.
pub(crate) fn parse(text: &str, variables: &Variables) -> Result<Pattern, String> {
    let value = serde_json::from_str(&variables.expand(text)?);
    Pattern::new(&value.map_err(|error| error.to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_a_connection_a_time_and_a_condition() {
        let step = read("if token within 15s 2?<*close 4001", &Variables::default()).unwrap();
        assert_eq!(
            (step.connection, step.soft, step.only_if),
            (2, true, Some(("token".to_owned(), true)))
        );
        assert_eq!(step.within, Some(Duration::from_secs(15)));
        assert!(matches!(
            step.action,
            Action::Await(Awaited::Close(Some(4001)), true)
        ));
    }

    #[test]
    fn an_invalid_step_is_reported() {
        for (line, why) in [
            ("hello", "hello: unknown step"),
            ("< {", "< {: EOF"),
            (r#"< {"id":"$nothing"}"#, "$nothing is not a pattern"),
            ("<close x", "x is not a close code"),
            (">close", "the close code is missing"),
            ("open / host", "host is not a header"),
        ] {
            let error = read(line, &Variables::default()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn variables_may_replace_any_value() {
        let line = r#"< {"id":"${id}","n":${n}}"#;
        assert!(read(line, &Variables::lenient()).is_ok());
        assert!(read(line, &Variables::default()).is_err());
    }
}
