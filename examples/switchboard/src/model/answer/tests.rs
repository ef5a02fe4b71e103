//! Answers as providers send them, and some that they should not send: each is what the table says, however it is cut.

use serde_json::Value;

use super::testing::{joined, read};
use super::*;

/// What is told of an answer, a line each.
fn told(deltas: &[Delta], outcome: Result<(), ModelError>) -> Vec<String> {
    let thoughts = deltas.iter().filter_map(|delta| match delta {
        Delta::Thought(text) => Some(text.as_str()),
        _ => None,
    });
    let thoughts: String = thoughts.collect();
    let answer = joined(deltas);
    let (usage, finish) = (answer.usage(), answer.finish().cloned());
    let message = answer.into_message();
    let text = message.content.text();
    let mut lines = Vec::new();
    for (kind, text) in [("thought", &*thoughts), ("text", &*text)] {
        lines.extend((!text.is_empty()).then(|| format!("{kind} {text:?}")));
    }
    for call in &message.tool_calls {
        let id = if call.id.is_empty() { "-" } else { &call.id };
        lines.push(format!("call {id} {} {}", call.name, call.arguments));
        let extra = (!call.extra.is_empty()).then(|| Value::from(call.extra.clone()));
        lines.extend(extra.map(|extra| format!("of-call {extra}")));
    }
    let extra = (!message.extra.is_empty()).then(|| Value::from(message.extra.clone()));
    lines.extend(extra.map(|extra| format!("extra {extra}")));
    lines.extend(deltas.iter().filter_map(|delta| match delta {
        Delta::Notice(Notice::Lost { parts }) => Some(format!("lost {parts}")),
        _ => None,
    }));
    lines.extend(usage.map(|it| format!("usage {} {}", it.prompt, it.completion)));
    let finish = finish.filter(|_| outcome.is_ok());
    lines.extend(finish.map(|finish| format!("finish {finish:?}")));
    lines.extend(outcome.err().map(|error| match error {
        ModelError::Refused {
            refusal, message, ..
        } => format!("refused {refusal:?} {message}"),
        ModelError::BadAnswer { message } => format!("bad {message}"),
        ModelError::Cut => "cut".to_owned(),
        other => other.to_string(),
    }));
    lines.iter().map(|it| it.trim_end().to_owned()).collect()
}

/// Returns a piece of a stream as it is on the wire.
fn piece(provider: Provider, line: &str) -> String {
    if line.starts_with('"') {
        return serde_json::from_str(line).unwrap();
    }
    let event = line
        .strip_prefix("event ")
        .and_then(|it| it.split_once(' '));
    match event {
        Some((name, data)) => format!("event: {name}\ndata: {data}\n\n"),
        None if provider == Provider::Ollama => format!("{line}\n"),
        None => format!("data: {line}\n\n"),
    }
}

#[test]
fn answers_are_read_as_the_table_says_however_they_are_cut() {
    let mut wrong = Vec::new();
    for case in include_str!("cases.txt").split("\n\n").skip(1) {
        let mut lines = case.lines().filter(|line| !line.starts_with('#'));
        let provider = Provider::read(lines.next().unwrap()).unwrap();
        let of = |mark: &str| {
            let lines = case.lines().skip(2);
            let of = lines.filter_map(|line| line.strip_prefix(mark));
            of.map(str::trim_start).collect::<Vec<_>>()
        };
        let is_piece = |line: &&str| *line == "%" || !line.starts_with(['%', '=']);
        let pieces: Vec<&str> = lines.filter(is_piece).collect();
        let mut variants = of("% ");
        if variants.is_empty() {
            variants.push("");
        }
        for variant in variants {
            let (one, other) = variant.split_once(" | ").unwrap_or((variant, ""));
            let one = if one == "(nothing)" { "" } else { one };
            let filled = |line: &&str| line.replace("%2", other).replace('%', one);
            let stream = pieces.iter().map(|it| piece(provider, &filled(it)));
            let stream: String = stream.collect();
            let expected: Vec<_> = of("= ").iter().map(filled).collect();
            for size in [1, 7, stream.len().max(1)] {
                let (deltas, outcome) = read(provider, stream.as_bytes(), size);
                let told = told(&deltas, outcome);
                let is_same = told.len() == expected.len()
                    && told.iter().zip(&expected).all(|(told, expected)| {
                        told == expected.trim_end() || expected == "bad" && told.starts_with("bad ")
                    });
                if !is_same {
                    wrong.push(format!("{case}\n{variant}, in pieces of {size}: {told:#?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
