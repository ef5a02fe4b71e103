//! Answers as providers send them, and some that they should not send: each is what the table says, however it is cut.

pub(crate) mod cases;
pub(crate) mod testing;

use proptest::prelude::*;
use serde_json::Value;

use self::testing::{cut, joined, read, read_chunks};
use super::*;

/// What is read of an answer, a line each.
fn lines(deltas: &[Delta], outcome: Result<(), ModelError>) -> Vec<String> {
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
    for case in cases::read(include_str!("cases.txt")) {
        let [provider] = case.providers[..] else {
            panic!("{}", case.name);
        };
        let stream: String = case.given.iter().map(|it| piece(provider, it)).collect();
        for size in [1, 7, stream.len().max(1)] {
            let (deltas, outcome) = read(provider, stream.as_bytes(), size);
            let lines = lines(&deltas, outcome);
            let is_same = lines.len() == case.expected.len()
                && lines.iter().zip(&case.expected).all(|(line, expected)| {
                    line == expected.trim_end() || expected == "bad" && line.starts_with("bad ")
                });
            if !is_same {
                wrong.push(format!("{}, in pieces of {size}: {lines:#?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The whole answer of a provider.
fn whole(provider: Provider) -> String {
    let mut cases = cases::read(include_str!("cases.txt")).into_iter();
    let is_whole = |case: &cases::Case| {
        case.name.starts_with("# A whole answer.") && case.providers == [provider]
    };
    let given = cases.find(is_whole).unwrap().given;
    given.iter().map(|it| piece(provider, it)).collect()
}

const DIALECTS: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Ollama];

#[test]
fn an_answer_is_cut_up_to_the_reason_of_its_end_and_then_complete() {
    for (provider, end) in DIALECTS.into_iter().zip([
        "\"finish_reason\":\"tool_calls\"}]}",
        "\"usage\":{\"output_tokens\":42}}",
        "\"eval_count\":5}",
    ]) {
        let stream = whole(provider);
        let complete = stream.find(end).unwrap() + end.len();
        for end in 0..stream.len() {
            let (_, outcome) = read(provider, &stream.as_bytes()[..end], usize::MAX);
            assert_eq!(
                outcome.is_ok(),
                end >= complete,
                "{provider} {end}: {outcome:?}"
            );
            assert!(matches!(outcome, Ok(()) | Err(ModelError::Cut)));
        }
    }
}

#[test]
fn the_bill_of_anthropic_is_known_before_the_first_word() {
    let (deltas, _) = read(
        Provider::Anthropic,
        whole(Provider::Anthropic).as_bytes(),
        99,
    );
    let (prompt, completion) = (33, 1);
    assert_eq!(deltas[0], Delta::Usage(Usage { prompt, completion }));
}

#[test]
fn an_endless_answer_is_an_error() {
    let max = 1024 * 1024;
    for (provider, endless, max) in [
        (Provider::OpenAi, "data: x", max),
        (Provider::OpenAi, "data: \n", max),
        (Provider::OpenAi, "{\"a\":\"", max),
        (Provider::OpenAi, ": x\n\n", 16 * max),
        (Provider::Anthropic, "data: x", max),
        (Provider::Anthropic, ": comment\n", 16 * max),
        (Provider::Ollama, "x", max),
    ] {
        let endless = endless.repeat(17 * 1024 * 1024 / endless.len());
        let (_, outcome) = read(provider, endless.as_bytes(), 8192);
        assert_eq!(outcome, Err(ModelError::TooLarge { max }));
    }
}

proptest! {
    #[test]
    fn what_is_read_does_not_depend_on_the_cuts_and_ends_of_lines(
        provider in prop::sample::select(&DIALECTS[..]),
        places in prop::collection::vec(0usize..10_000, 0..16),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let stream = whole(provider);
        let expected = read(provider, stream.as_bytes(), usize::MAX);
        prop_assert_eq!(&expected.1, &Ok(()));
        let end = if provider == Provider::Ollama { "\n" } else { end };
        let stream = stream.replace("\r\n", "\n").replace('\n', end);
        prop_assert_eq!(read_chunks(provider, cut(stream.as_bytes(), &places)), expected);
    }

    #[test]
    fn no_bytes_panic(
        provider in prop::sample::select(&DIALECTS[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        size in 1usize..40,
        at in 0usize..10_000,
        byte: u8,
    ) {
        let _ = read(provider, &bytes, size);
        let mut bytes = whole(provider).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read(provider, &bytes, 100);
    }
}
