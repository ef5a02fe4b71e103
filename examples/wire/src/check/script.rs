//! The script of a row: one step a line.
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
//! | `< PATTERN` | the next message matches the [pattern](super::pattern) |
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

use std::time::Duration;

use serde_json::Value;

use super::pattern::{self, Variables};
use crate::secrets::is_one;

/// A step of a script.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The step as it was written, for messages.
    pub(super) line: String,
    pub(super) connection: u8,
    /// Whether a failure means that the row is not applicable.
    pub(super) soft: bool,
    /// A variable that has to be set, or not.
    pub(super) only_if: Option<(String, bool)>,
    pub(super) within: Option<Duration>,
    /// How long it takes at least.
    pub(super) not_before: Option<Duration>,
    /// What it does, and with what.
    pub(super) word: String,
    pub(super) argument: String,
}

/// The words that need no more than their argument as it stands.
const WORDS: &str = "status header path > >binary >ping >cut <pong <ping silence wait end exit output alone ordered \
    signed open";

pub(super) type Headers = Vec<(String, String)>;

/// Reads a line of a script.
///
/// # Errors
/// Why it is not a step.
pub(super) fn read(line: &str, variables: &Variables) -> Result<Step, String> {
    step(line, variables).map_err(|why| format!("{line}: {why}"))
}

fn step(line: &str, variables: &Variables) -> Result<Step, String> {
    let mut rest = line;
    let mut step = Step {
        line: line.to_owned(),
        connection: 1,
        soft: false,
        only_if: None,
        within: None,
        not_before: None,
        word: String::new(),
        argument: String::new(),
    };
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let condition = rest.strip_prefix("if ").map(|behind| (behind, true));
        let condition = condition.or_else(|| Some((rest.strip_prefix("without ")?, false)));
        if let Some((behind, is_set)) = condition {
            let (name, behind) = behind
                .split_once(' ')
                .ok_or("the name of a variable and a step are missing")?;
            step.only_if = Some((name.to_owned(), is_set));
            rest = behind;
        } else if let ("at-least" | "within", behind) = pair(rest) {
            let (time, behind) = behind
                .split_once(' ')
                .ok_or("a time and a step are missing")?;
            let time = Some(crate::cli::duration(time)?);
            match rest.starts_with("within") {
                true => step.within = time,
                false => step.not_before = time,
            }
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix('?') {
            step.soft = true;
            rest = behind;
        } else if digits > 0 {
            let (number, behind) = rest.split_at(digits);
            let number = number.parse();
            step.connection = number.map_err(|_| "the number of the connection is too large")?;
            rest = behind;
        } else {
            break;
        }
        rest = rest.trim_start();
    }
    let (word, argument) = pair(rest);
    check(word, argument.trim(), variables)?;
    (step.word, step.argument) = (word.to_owned(), argument.trim().to_owned());
    Ok(step)
}

/// Splits a text at its first space.
pub(super) fn pair(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Returns a close code, if there is one.
pub(super) fn code(text: &str) -> Result<Option<u16>, String> {
    let code = (!text.is_empty()).then(|| text.parse());
    code.transpose()
        .map_err(|_| format!("{text} is not a close code"))
}

fn check(word: &str, argument: &str, variables: &Variables) -> Result<(), String> {
    let (first, rest) = pair(argument);
    match word {
        "open" => read_headers(rest).map(drop),
        "refuse" if !rest.is_empty() => read_headers(pair(rest).1).map(drop),
        "http" if !rest.is_empty() => {
            let head = rest.split(" | ").next().unwrap_or_default();
            read_headers(pair(head).1).map(drop)
        }
        "refuse" | "http" => Err(format!("a path is missing behind {first}")),
        ">close" | "code" => {
            let code = code(argument)?.map(drop);
            code.ok_or_else(|| "the close code is missing".to_owned())
        }
        "<close" | "<*close" => code(argument).map(drop),
        "<" | "<*" | "!" | "~" => argument
            .split(" until ")
            .try_for_each(|text| pattern::check(&parse(text, variables)?)),
        word if is_one(word, WORDS) => Ok(()),
        _ => Err("unknown step".to_owned()),
    }
}

/// Reads `NAME: VALUE; ...`.
pub(super) fn read_headers(list: &str) -> Result<Headers, String> {
    let lines = list
        .split(';')
        .map(str::trim)
        .filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| format!("{line} is not a header"))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// Reads a pattern in which variables stand.
pub(super) fn parse(text: &str, variables: &Variables) -> Result<Value, String> {
    serde_json::from_str(&variables.expand(text)?).map_err(|error| error.to_string())
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
        assert_eq!((&*step.word, &*step.argument), ("<*close", "4001"));
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
