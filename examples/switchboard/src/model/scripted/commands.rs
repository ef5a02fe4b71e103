//! [`Command`]: the commands of the scripted model.

use std::time::Duration;

use crate::model::{Delta, ModelError};

use super::{calls, spoken};

const MAX_WORDS: usize = 10_000;
const MAX_PAUSE: Duration = Duration::from_secs(10);
const MAX_CALLS: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Call these tools once, or as long as tools are offered.
    Call {
        calls: Vec<(String, String)>,
        again: bool,
    },
    /// Say so many words, with this pause between them.
    Slow { words: usize, pause: Duration },
    /// Fail.
    Fail(String),
    /// Stream this as a thought before saying it.
    Think(String),
    /// Break off.
    Break,
}

/// Parses a text that begins with a command.
pub(super) fn parse(text: &str) -> Option<Command> {
    let text = text.trim();
    let (order, rest) = split_word(text);
    Some(match order {
        "!tool" | "!loop" => {
            let lines = text.lines().filter_map(|line| {
                let (first, call) = split_word(line.trim());
                let (name, arguments) = split_word(call);
                let arguments = if arguments.is_empty() {
                    "{}"
                } else {
                    arguments
                };
                let call = || (name.to_owned(), arguments.to_owned());
                (first == order && !name.is_empty()).then(call)
            });
            let calls: Vec<_> = lines.take(MAX_CALLS).collect();
            let again = order == "!loop";
            (!calls.is_empty()).then_some(Command::Call { calls, again })?
        }
        "!slow" => {
            let (words, pause) = split_word(rest);
            let pause = pause.parse().unwrap_or(100);
            Command::Slow {
                words: words.parse().unwrap_or(10).clamp(1, MAX_WORDS),
                pause: Duration::from_millis(pause).min(MAX_PAUSE),
            }
        }
        "!fail" => {
            let text = if rest.is_empty() {
                "told to fail"
            } else {
                rest
            };
            Command::Fail(text.to_owned())
        }
        "!think" if !rest.is_empty() => Command::Think(rest.to_owned()),
        "!break" => Command::Break,
        _ => return None,
    })
}

impl Command {
    /// Returns the answer, or `None` to follow the rules. `offered`: whether there are tools;
    /// `results`: the results of tools so far.
    pub(super) fn answer(
        &self,
        offered: bool,
        results: &[String],
    ) -> Option<Vec<Result<Delta, ModelError>>> {
        let deltas = match self {
            Self::Call {
                calls: wanted,
                again,
            } => {
                let once_more = *again && offered;
                if !results.is_empty() && !once_more {
                    return None;
                }
                // Ids that differ from round to round.
                calls(wanted, results.len())
            }
            Self::Slow { words, .. } => {
                let words: Vec<_> = (1..=*words).map(|word| word.to_string()).collect();
                spoken(&words.join(" "))
            }
            Self::Think(text) => {
                let mut deltas = vec![Delta::Thought(format!("shall I say {text:?}?"))];
                deltas.extend(spoken(text));
                deltas
            }
            Self::Fail(_) => return None,
            Self::Break => {
                let said = Delta::Text("so far so good".to_owned());
                return Some(vec![Ok(said), Err(ModelError::Cut)]);
            }
        };
        Some(deltas.into_iter().map(Ok).collect())
    }
}

/// Returns the first word and the text after it.
fn split_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};
    use snek_proto::llm::chat::ChatMessage;

    use super::*;
    use crate::assistant::tools::Tools;
    use crate::model::scripted::{HELP, Scripted};
    use crate::model::{Assembler, ChatModel as _, ChatRequest, Finish};

    fn call(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    /// The answer, as far as it came at once.
    fn told(
        model: &Scripted,
        messages: &[ChatMessage],
        tools: bool,
    ) -> (Assembler, Result<(), ModelError>) {
        let all = Tools::new();
        let request = ChatRequest::new(messages.iter().collect());
        let request = request.with_tools(if tools { all.definitions() } else { &[] });
        let mut answer = Assembler::default();
        let mut deltas = match model.stream(request).now_or_never().unwrap() {
            Ok(deltas) => deltas,
            Err(error) => return (answer, Err(error)),
        };
        while let Some(delta) = deltas.next().now_or_never().unwrap() {
            match delta {
                Ok(delta) => answer.push(&delta).unwrap(),
                Err(error) => return (answer, Err(error)),
            }
        }
        (answer, Ok(()))
    }

    fn commanded() -> Scripted {
        Scripted::default().with_commands(true)
    }

    #[test]
    fn orders_are_read_leniently() {
        let slow = |words, pause| Command::Slow {
            words,
            pause: Duration::from_millis(pause),
        };
        let calls = vec![
            call("a", "{\"x\": 1}"),
            call("b", "{}"),
            call("c", "not json"),
        ];
        for (text, expected) in [
            (
                " !tool a {\"x\": 1}\nwords\n !tool b\n!tool c  not json",
                Some(Command::Call {
                    calls,
                    again: false,
                }),
            ),
            ("!tool", None),
            ("!tools a", None),
            ("tool a", None),
            ("!slow", Some(slow(10, 100))),
            ("!slow 3 5", Some(slow(3, 5))),
            ("!slow 99999999 99999999", Some(slow(10_000, 10_000))),
            ("!fail", Some(Command::Fail("told to fail".to_owned()))),
            ("!fail it hurts", Some(Command::Fail("it hurts".to_owned()))),
            ("!break", Some(Command::Break)),
            ("", None),
            ("!", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_tool_is_called_and_its_result_repeated() {
        let question = ChatMessage::user("!tool echo {\"message\": \"hi: there\"}");
        for tools in [true, false] {
            let (answer, outcome) = told(&commanded(), std::slice::from_ref(&question), tools);
            assert_eq!(
                (answer.finish(), outcome),
                (Some(&Finish::ToolCalls), Ok(()))
            );
            let calls = answer.into_message().tool_calls;
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].name, "echo");
            assert_eq!(calls[0].arguments, "{\"message\": \"hi: there\"}");
        }
        let result = ChatMessage::tool("call_0", "hi: there");
        let (answer, outcome) = told(&commanded(), &[question, result], true);
        assert_eq!((answer.text(), outcome), ("hi: there", Ok(())));
    }

    #[test]
    fn a_loop_continues_while_tools_are_offered() {
        let mut messages = vec![ChatMessage::user("!loop time")];
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (answer, _) = told(&commanded(), &messages, true);
            let message = answer.into_message();
            let id = message.tool_calls[0].id.clone();
            messages.extend([message, ChatMessage::tool(&id, "late")]);
            assert!(!ids.contains(&id), "{id}");
            ids.push(id);
        }
        let (answer, _) = told(&commanded(), &messages, false);
        assert_eq!(answer.text(), "late; late; late");
    }

    #[test]
    fn fails_as_ordered() {
        let question = |text: &str| [ChatMessage::user(text)];
        let (_, outcome) = told(&commanded(), &question("!fail it hurts"), true);
        let message = "it hurts".to_owned();
        assert_eq!(outcome, Err(ModelError::broken(message)));
        let (answer, outcome) = told(&commanded(), &question("!break"), true);
        assert_eq!(
            (answer.text(), outcome),
            ("so far so good", Err(ModelError::Cut))
        );
        assert!(answer.usage().is_some());
        let (answer, outcome) = told(&commanded(), &question("!slow 3 0"), true);
        assert_eq!((answer.text(), outcome), ("1 2 3", Ok(())));
    }

    #[test]
    fn separates_a_thought_from_the_answer() {
        let (answer, outcome) = told(&commanded(), &[ChatMessage::user("!think yes")], true);
        assert_eq!((answer.text(), outcome), ("yes", Ok(())));
    }

    #[test]
    fn orders_are_words_unless_the_model_follows_commands() {
        for text in ["!fail", "!tool time", "!slow 100 100"] {
            let question = [ChatMessage::user(text)];
            let (answer, outcome) = told(&Scripted::default(), &question, false);
            assert_eq!((answer.text(), outcome), (HELP, Ok(())));
        }
    }
}
