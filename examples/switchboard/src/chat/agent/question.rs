//! [`Question`]: what the agent asks, in words, and what a line answers.

use std::collections::VecDeque;

use connectonion_proto::client::Step;
use connectonion_proto::frame::{
    Answer, Approval, ApprovalNeeded, AskField, AskUser, EventKind, PlanReview, Rejection,
    Response, Scope, Ulw, UlwTurnsReached,
};
use rpc_core::{Json, Refused};
use serde_json::{Map, Value};

use crate::chat::ALLOW;
use crate::text::{counted, printable, printable_lines};

const TURNS: &str = "Write a number of turns to go on, a mode, or nothing to stop";
/// The answer when no one is there to give one.
const NOBODY: &str = "No one is here to answer. This is not an approval.";

/// A question that waits for an answer.
#[derive(Debug)]
pub(crate) struct Question {
    step: Step,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// In words, or one of several options.
    Ask(AskUser, Fields),
    /// Whether a tool may run.
    Approval(ApprovalNeeded),
    /// What to say to a plan.
    Plan(PlanReview),
    /// Whether to go on.
    Turns(UlwTurnsReached),
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
        let fields = question.fields.as_ref().map(Json::parse::<Vec<AskField>>);
        let fields = fields.into_iter().flatten().flatten().map(|field| {
            let label = field.label.as_deref().unwrap_or(&field.name).to_owned();
            (field.name.into(), label)
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

/// What a line means.
#[derive(Debug)]
pub(crate) enum Meant {
    /// The answer.
    Answer(Response),
    /// This is wanted now.
    More(String),
}

impl Question {
    /// The question of a step, if it asks something.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let kind = match &step.event.kind {
            EventKind::AskUser(ask) => Kind::Ask(ask.clone(), Fields::of(ask)),
            EventKind::ApprovalNeeded(needed) => Kind::Approval(needed.clone()),
            EventKind::PlanReview(plan) => Kind::Plan(plan.clone()),
            EventKind::UlwTurnsReached(turns) => Kind::Turns(*turns),
            _ => return None,
        };
        let step = step.clone();
        Some(Self { step, kind })
    }

    /// The step that asks.
    pub(crate) const fn step(&self) -> &Step {
        &self.step
    }

    /// What the user reads.
    pub(crate) fn words(&self) -> Vec<String> {
        match &self.kind {
            Kind::Ask(ask, fields) => {
                let mut lines = vec![format!("? {}", printable_lines(&ask.question))];
                let options = options(ask);
                let numbered = (1..).zip(&options);
                lines.extend(numbered.map(|(n, option)| format!("  {n}. {}", printable(option))));
                if ask.multi_select && !options.is_empty() {
                    lines.push("  You may choose several: 1,2".to_owned());
                }
                lines.extend(fields.next());
                lines
            }
            Kind::Approval(needed) => {
                let line = format!("? The agent wants to {}.", wanted(needed));
                vec![line, format!("  {ALLOW}")]
            }
            Kind::Plan(plan) => vec![
                "? The agent's plan:".to_owned(),
                printable_lines(&plan.plan_content),
                "  What do you say to it?".to_owned(),
            ],
            Kind::Turns(turns) => {
                let count = |turns: Option<u64>| turns.map_or("?".to_owned(), |it| it.to_string());
                let (used, max) = (count(turns.turns_used), count(turns.max_turns));
                vec![
                    format!("? {used} of {max} turns are used up."),
                    format!("  {TURNS}"),
                ]
            }
        }
    }

    /// Takes a line as the answer, or as part of it.
    pub(crate) fn answer(&mut self, text: &str) -> Result<Meant, Refused> {
        let answer = match &mut self.kind {
            Kind::Ask(_, fields) if !fields.open.is_empty() => {
                if !fields.fill(text) {
                    return Ok(Meant::More(fields.next().unwrap_or_default()));
                }
                let filled = std::mem::take(&mut fields.filled);
                Answer::AskUser(Json::of(&Value::Object(filled))?)
            }
            Kind::Ask(ask, _) => {
                let chosen = choose(text, &options(ask), ask.multi_select);
                Answer::AskUser(Json::of(&chosen)?)
            }
            Kind::Approval(_) => Answer::Approval(approval(text)),
            Kind::Plan(_) => Answer::PlanReview(text.into()),
            Kind::Turns(_) => match (text.parse(), super::parse_mode(text)) {
                (Ok(turns), _) => Answer::Ulw(Ulw::go_on(turns)),
                (_, Ok(mode)) => Answer::Ulw(Ulw::switch_mode(mode)),
                _ if text.is_empty() => Answer::Ulw(Ulw::stop()),
                _ => return Ok(Meant::More(format!("  {TURNS}"))),
            },
        };
        Ok(Meant::Answer(self.response(answer)))
    }

    /// The answer that lets a tool run; `None` if it is another question.
    pub(crate) fn allow(&self) -> Option<Response> {
        let Kind::Approval(_) = self.kind else {
            return None;
        };
        let approval = Approval::granted(Scope::Once);
        Some(self.response(Answer::Approval(approval)))
    }

    /// The answer that no one is here.
    pub(crate) fn decline(&self) -> Result<Response, Refused> {
        let answer = match &self.kind {
            Kind::Ask(..) => Answer::AskUser(Json::string(NOBODY)),
            Kind::Approval(_) => {
                Answer::Approval(Approval::refused(Rejection::Hard).with_feedback(NOBODY))
            }
            Kind::Plan(_) => Answer::PlanReview(NOBODY.into()),
            Kind::Turns(_) => Answer::Ulw(Ulw::stop()),
        };
        Ok(self.response(answer))
    }

    /// An answer that names the question, so that it is taken for no other's.
    fn response(&self, answer: Answer) -> Response {
        let mut response = Response::new("", answer);
        response.request_id.clone_from(&self.step.event.id);
        response
    }
}

/// What a tool would do, in words: by the names that the arguments of such tools have.
fn wanted(needed: &ApprovalNeeded) -> String {
    let tool = printable(&needed.tool);
    let arguments = needed.arguments.as_ref().map_or("", Json::get);
    let named: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let text = |names: &[&str]| names.iter().find_map(|name| named.get(*name)?.as_str());
    let path = text(&["path", "file_path"]);
    match (path, text(&["text", "content"]), text(&["command"])) {
        (Some(path), Some(content), _) => {
            let lines = counted(content.lines().count(), "line");
            format!("write {} ({lines})", printable(path))
        }
        (None, None, Some(command)) => format!("run {}", printable(command)),
        _ if named.is_empty() => format!("use {tool}"),
        _ => format!("use {tool} with {}", printable(arguments)),
    }
}

fn options(question: &AskUser) -> Vec<String> {
    let options = question.options.as_ref().map(Json::parse::<Vec<String>>);
    options.into_iter().flatten().flatten().collect()
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

/// The decision that a line means. An empty one refuses.
fn approval(text: &str) -> Approval {
    let (word, why) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let why = why.trim();
    match (
        word.to_lowercase().trim_end_matches([',', ':', '.', '!']),
        why,
    ) {
        ("y" | "yes", "") => Approval::granted(Scope::Once),
        ("a" | "always" | "s" | "session", "") => Approval::granted(Scope::Session),
        ("n" | "no" | "", "") => Approval::refused(Rejection::Hard),
        ("n" | "no", why) => Approval::refused(Rejection::Soft).with_feedback(why),
        _ => Approval::refused(Rejection::Soft).with_feedback(text),
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
    fn only_a_clear_yes_approves() {
        assert_eq!(approval("Yes"), Approval::granted(Scope::Once));
        for word in ["a", "Always", "s"] {
            assert_eq!(approval(word), Approval::granted(Scope::Session));
        }
        for text in ["", " ", "n", "No."] {
            assert_eq!(
                approval(text),
                Approval::refused(Rejection::Hard),
                "{text:?}"
            );
        }
        for text in ["maybe", "yes but not now", "1", "ye"] {
            let why = Approval::refused(Rejection::Soft).with_feedback(text);
            assert_eq!(approval(text), why, "{text}");
        }
        let why = Approval::refused(Rejection::Soft).with_feedback("use another name");
        assert_eq!(approval("no, use another name"), why);
    }

    #[test]
    fn approvals_say_in_words_what_a_tool_does() {
        for (tool, arguments, expected) in [
            (
                "write_file",
                json!({"path": "a.txt", "text": "1\n2\n"}),
                "write a.txt (2 lines)",
            ),
            (
                "write",
                json!({"file_path": "a", "content": "x"}),
                "write a (1 line)",
            ),
            (
                "bash",
                json!({"command": "ls\u{1b}[2J"}),
                "run ls\\u{1b}[2J",
            ),
            ("rm", json!({"path": "a"}), r#"use rm with {"path":"a"}"#),
            ("go", json!({}), "use go"),
        ] {
            let needed = ApprovalNeeded::new(tool, Json::of(&arguments).unwrap(), "");
            assert_eq!(wanted(&needed), expected);
        }
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
