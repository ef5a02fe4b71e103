//! [`Question`]: what the agent asks, in words, and what a line answers.

use std::collections::VecDeque;

use connectonion_proto::client::Step;
use connectonion_proto::frame::{
    Approval, ApprovalNeeded, AskUser, PlanReview, Rejection, Scope, UlwTurnsReached,
};
use connectonion_proto::net::Ask;
use examples::screen::{printable, printable_lines};
use rpc_core::decode::SharedJson;
use rpc_core::{Limits, Refused};
use serde_json::{Map, Value};

const YES_OR_NO: &str = "y: yes, s: yes for this session, n: no, n and why: not like this";
const TURNS: &str = "a number of turns to go on, a mode, or nothing to stop";
/// What is said when nobody is there to answer.
const NOBODY: &str = "Nobody is here to answer. This is not an approval.";

/// A question that waits for an answer.
#[derive(Debug)]
pub(crate) enum Question {
    /// In words, or one of several options.
    Ask(Ask<AskUser>, Fields),
    /// Whether a tool may run.
    Approval(Ask<ApprovalNeeded>),
    /// What to say to a plan.
    Plan(Ask<PlanReview>),
    /// Whether to go on.
    Turns(Ask<UlwTurnsReached>),
}

/// What is to be filled in, one line for each.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// The names, and what people call them.
    open: VecDeque<(String, String)>,
    filled: Map<String, Value>,
}

impl Fields {
    fn of(question: &AskUser) -> Self {
        let fields = question.fields(&Limits::default()).unwrap_or_default();
        let fields = fields.into_iter().map(|field| {
            let label = field.label.as_deref().unwrap_or(&field.name).to_owned();
            (field.name.into_owned(), label)
        });
        Self {
            open: fields.collect(),
            filled: Map::new(),
        }
    }

    /// Takes a line; `false` if more of them are wanted.
    fn fill(&mut self, text: &str) -> bool {
        if let Some((name, _)) = self.open.pop_front() {
            self.filled.insert(name, text.into());
        }
        self.open.is_empty()
    }

    fn next(&self) -> Option<String> {
        let (_, label) = self.open.front()?;
        Some(format!("  {}:", printable(label)))
    }
}

/// What became of a line that was meant as an answer.
pub(crate) enum Answered {
    /// It was sent.
    Sent,
    /// This is wanted now.
    More(String),
}

impl Question {
    pub(crate) fn ask(ask: Ask<AskUser>) -> Self {
        let fields = Fields::of(ask.question());
        Self::Ask(ask, fields)
    }

    /// The event that asks.
    pub(crate) const fn step(&self) -> &Step {
        match self {
            Self::Ask(ask, _) => ask.step(),
            Self::Approval(ask) => ask.step(),
            Self::Plan(ask) => ask.step(),
            Self::Turns(ask) => ask.step(),
        }
    }

    /// What the user reads.
    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Self::Ask(ask, fields) => {
                let question = ask.question();
                let mut lines = vec![format!("? {}", printable_lines(&question.question))];
                let options = options(question);
                let numbered = (1..).zip(&options);
                lines.extend(numbered.map(|(n, option)| format!("  {n}. {}", printable(option))));
                if question.multi_select && !options.is_empty() {
                    lines.push("  several may be chosen: 1,2".to_owned());
                }
                lines.extend(fields.next());
                lines
            }
            Self::Approval(ask) => {
                let needed = ask.question();
                let arguments = needed.arguments.as_ref().map_or("", SharedJson::get);
                let mut line = format!("? may {} run", printable(&needed.tool));
                if !arguments.is_empty() {
                    line.push_str(&format!(" with {}", printable(arguments)));
                }
                vec![line, format!("  {YES_OR_NO}")]
            }
            Self::Plan(ask) => {
                let plan = printable_lines(&ask.question().plan_content);
                vec![
                    "? the agent's plan:".to_owned(),
                    plan,
                    "  what do you say to it?".to_owned(),
                ]
            }
            Self::Turns(ask) => {
                let turns = ask.question();
                let count = |turns: Option<u64>| turns.map_or("?".to_owned(), |it| it.to_string());
                let (used, max) = (count(turns.turns_used), count(turns.max_turns));
                vec![
                    format!("? {used} of {max} turns are used up"),
                    format!("  {TURNS}"),
                ]
            }
        }
    }

    /// Takes a line as the answer.
    pub(crate) async fn answer(&mut self, text: &str) -> Result<Answered, Refused> {
        match self {
            Self::Ask(ask, fields) if !fields.open.is_empty() => {
                if !fields.fill(text) {
                    return Ok(Answered::More(fields.next().unwrap_or_default()));
                }
                let filled = std::mem::take(&mut fields.filled);
                ask.answer_json(json(&Value::Object(filled))?).await?;
            }
            Self::Ask(ask, _) => {
                let question = ask.question();
                let chosen = choose(text, &options(question), question.multi_select);
                ask.answer_json(json(&chosen)?).await?;
            }
            Self::Approval(ask) => match approval(text) {
                Some(approval) => ask.decide(approval).await?,
                None => return Ok(Answered::More(format!("  {YES_OR_NO}"))),
            },
            Self::Plan(ask) => ask.reply(text).await?,
            Self::Turns(ask) => match (text.parse(), super::line::parse_mode(text)) {
                (Ok(turns), _) => ask.go_on(turns).await?,
                (_, Ok(mode)) => ask.switch_mode(mode).await?,
                _ if text.is_empty() => ask.stop().await?,
                _ => return Ok(Answered::More(format!("  {TURNS}"))),
            },
        }
        Ok(Answered::Sent)
    }

    /// Allows a tool; `false` if it is another question.
    pub(crate) async fn allow(&self) -> Result<bool, Refused> {
        let Self::Approval(ask) = self else {
            return Ok(false);
        };
        ask.approve(Scope::Once).await?;
        Ok(true)
    }

    /// Says that nobody is here.
    pub(crate) async fn decline(&self) -> Result<(), Refused> {
        match self {
            Self::Ask(ask, _) => ask.answer(NOBODY).await,
            Self::Approval(ask) => {
                let refused = Approval::refused(Rejection::Hard).with_feedback(NOBODY);
                ask.decide(refused).await
            }
            Self::Plan(ask) => ask.reply(NOBODY).await,
            Self::Turns(ask) => ask.stop().await,
        }
    }
}

fn options(question: &AskUser) -> Vec<String> {
    let options = question.options(&Limits::default()).unwrap_or_default();
    options.into_iter().map(Into::into).collect()
}

fn json(value: &Value) -> Result<SharedJson, Refused> {
    connectonion_proto::codec::to_json(value)
}

/// The answer that a line means: an option by its number, several of them, or the words themselves.
fn choose(text: &str, options: &[String], several: bool) -> Value {
    let by_number = |number: &str| {
        let number: usize = number.trim().parse().ok()?;
        options.get(number.checked_sub(1)?).cloned()
    };
    if several && !options.is_empty() {
        let chosen: Option<Vec<String>> = text.split(',').map(by_number).collect();
        return chosen.map_or_else(|| text.into(), Value::from);
    }
    by_number(text).map_or_else(|| text.into(), Value::from)
}

/// The decision that a line means; `None` if it is none.
fn approval(text: &str) -> Option<Approval> {
    let (word, why) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let why = why.trim();
    match (
        word.to_lowercase().trim_end_matches([',', ':', '.', '!']),
        why,
    ) {
        ("y" | "yes", "") => Some(Approval::granted(Scope::Once)),
        ("s" | "session" | "always", "") => Some(Approval::granted(Scope::Session)),
        ("n" | "no", "") => Some(Approval::refused(Rejection::Hard)),
        ("n" | "no", why) => Some(Approval::refused(Rejection::Soft).with_feedback(why)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_option_is_chosen_by_number_or_in_words() {
        let options = ["red".to_owned(), "green".to_owned()];
        for (text, several, chosen) in [
            ("2", false, json!("green")),
            ("green", false, json!("green")),
            ("3", false, json!("3")),
            ("0", false, json!("0")),
            ("blue", false, json!("blue")),
            ("1, 2", true, json!(["red", "green"])),
            ("2", true, json!(["green"])),
            ("1,9", true, json!("1,9")),
        ] {
            assert_eq!(choose(text, &options, several), chosen, "{text}");
        }
        assert_eq!(choose("1", &[], true), json!("1"));
    }

    #[test]
    fn leave_is_given_only_by_a_clear_yes() {
        let granted = |text| approval(text).filter(|it| it.approved);
        assert_eq!(granted("Yes"), Some(Approval::granted(Scope::Once)));
        assert_eq!(granted("s"), Some(Approval::granted(Scope::Session)));
        for text in ["", "maybe", "yes but not now", "1", "ye"] {
            assert_eq!(approval(text), None, "{text}");
        }
        assert_eq!(approval("n"), Some(Approval::refused(Rejection::Hard)));
        let why = Approval::refused(Rejection::Soft).with_feedback("use another name");
        assert_eq!(approval("no, use another name"), Some(why));
    }

    #[test]
    fn fields_are_filled_one_by_one() {
        let mut fields = Fields::default();
        for name in ["a", "b"] {
            fields
                .open
                .push_back((name.to_owned(), name.to_uppercase()));
        }
        assert_eq!(fields.next().as_deref(), Some("  A:"));
        assert!(!fields.fill("1"));
        assert!(fields.fill("2"));
        assert_eq!(Value::Object(fields.filled), json!({ "a": "1", "b": "2" }));
    }
}
