//! [`Assembler`]: joins the pieces of an answer to a message.

use serde_json::{Map, Value, json as value};
use snek_proto::llm::chat::{ChatMessage, ToolCall};

use super::answer::arguments;
use super::request::{is_object, object};
use super::{CallPiece, Delta, Finish, ModelError, Notice, Usage, extra};

/// Most tool calls and most bytes of one answer, in case a model does not stop.
pub(super) const MAX_CALLS: usize = 128;
const MAX_BYTES: usize = 1024 * 1024;

/// A collector that joins the pieces of one answer.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    text: String,
    calls: Vec<(usize, ToolCall)>,
    /// The place of the call that is being streamed.
    current: Option<usize>,
    argument_bytes: usize,
    extra: Map<String, Value>,
    /// Blocks of other kinds, by their indexes: how many bytes of text and how many calls come before each.
    blocks: Vec<(usize, [usize; 2], Map<String, Value>)>,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

impl Assembler {
    /// Takes the next piece.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`], or [`ModelError::BadAnswer`] for too many calls. The piece was not taken then.
    pub fn push(&mut self, delta: &Delta) -> Result<(), ModelError> {
        match delta {
            Delta::Text(text) => {
                self.room(text.len())?;
                self.text.push_str(text);
            }
            Delta::ToolCall(piece) => self.call(piece)?,
            Delta::Extra(None, members) => extra::merge(&mut self.extra, members),
            Delta::Extra(Some(block), members) => {
                let known = self.blocks.iter_mut().rfind(|(index, ..)| index == block);
                match known {
                    Some((_, _, known)) => extra::merge(known, members),
                    // Others are more of a text or a call.
                    None if members.contains_key("type") => {
                        let at = [self.text.len(), self.calls.len()];
                        self.blocks.push((*block, at, members.clone()));
                    }
                    None => {}
                }
            }
            Delta::Finish(finish) => self.finish = Some(finish.clone()),
            Delta::Usage(usage) => self.usage = Some(*usage),
            Delta::Notice(Notice::Thoughts) => {
                self.text.clear();
                self.blocks.iter_mut().for_each(|(_, at, _)| at[0] = 0);
            }
            Delta::Thought(_) | Delta::Notice(_) => {}
        }
        Ok(())
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns why the answer has ended, if it has.
    pub const fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Returns the usage, if the provider reported it.
    pub const fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns the whole message, with tool calls in the order of their indexes. A placeholder,
    /// which names no tool, is left out, and so is what has more than 1 MiB beside text and calls.
    pub fn into_message(mut self) -> ChatMessage {
        self.calls.sort_by_key(|(index, _)| *index);
        let calls = self.calls.into_iter().map(|(_, mut call)| {
            call.arguments = arguments(&call.arguments).into_owned();
            call
        });
        let calls = calls.filter(|call| !call.name.trim().is_empty()).collect();
        let mut message = ChatMessage::assistant(self.text).with_tool_calls(calls);
        message.extra = self.extra;
        if !self.blocks.is_empty() {
            let blocks = self.blocks.into_iter();
            let blocks = blocks.map(|(_, at, mut block)| {
                if let Some(Value::String(input)) = block.remove("partial_json") {
                    block.insert("input".to_owned(), object(&input));
                }
                value!({ "at": at, "block": block })
            });
            let blocks = blocks.collect::<Value>();
            message.extra.insert(extra::BLOCKS.to_owned(), blocks);
        }
        let bytes = extra::size(&message);
        if bytes > extra::MAX_BYTES {
            tracing::warn!(
                bytes,
                "what the model gave beside its answer is too long to be kept"
            );
            extra::clear(&mut message);
        }
        message
    }

    fn room(&self, more: usize) -> Result<(), ModelError> {
        let max = MAX_BYTES;
        if self.text.len() + self.argument_bytes + more > max {
            return Err(ModelError::TooLarge { max });
        }
        Ok(())
    }

    fn call(&mut self, piece: &CallPiece) -> Result<(), ModelError> {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let name = piece.name.as_deref().unwrap_or_default();
        self.room(piece.arguments.len() + name.len() + id.map_or(0, str::len))?;
        let mut at = match piece.index {
            Some(index) => self.calls.iter().rposition(|(known, _)| *known == index),
            None => match id {
                Some(id) => self.calls.iter().rposition(|(_, call)| call.id == id),
                None => self.current,
            },
        };
        // Some providers count the calls in one way and their pieces in another.
        let is_open = |at: &usize| {
            let call = self.calls.get(*at);
            call.is_some_and(|(_, call)| !is_object(&call.arguments))
        };
        if id.is_none() && name.is_empty() && !at.as_ref().is_some_and(is_open) {
            at = self.current.filter(is_open).or(at);
        }
        // A name begins another call once the last one is whole, unless it is just repeated: some providers
        // give all calls one id.
        let is_repeated = piece.index.is_some() || id.is_some();
        let is_more = is_repeated && piece.arguments.trim().is_empty();
        let is_new = !name.is_empty() && !is_more;
        let at = at.filter(|at| {
            let last = self.calls.get(*at).map_or("", |(_, call)| &call.arguments);
            let is_said_twice = id.is_some() && last == piece.arguments;
            !is_new || is_said_twice || !is_object(last)
        });
        // Some providers count every call as the first one; the id tells them apart.
        let at = at.filter(|at| {
            let known = self.calls.get(*at).map_or("", |(_, call)| &call.id);
            id.is_none_or(|id| known.is_empty() || known == id)
        });
        let at = at.unwrap_or(self.calls.len());
        if at >= MAX_CALLS {
            return Err(ModelError::bad(format_args!(
                "it calls more than {MAX_CALLS} tools"
            )));
        }
        if at == self.calls.len() {
            let next = self.calls.iter().map(|(index, _)| index + 1).max();
            let index = piece.index.or(next).unwrap_or(0);
            self.calls.push((index, ToolCall::new("", "", "")));
        }
        self.current = Some(at);
        let Some((_, call)) = self.calls.get_mut(at) else {
            return Ok(());
        };
        let is_said_twice = id.is_some() && call.arguments == piece.arguments;
        if is_said_twice && is_object(&call.arguments) {
            return Ok(());
        }
        if call.id.is_empty() {
            call.id = id.unwrap_or_default().into();
        }
        // Whole names come again with some providers, pieces of names with others.
        if call.name != name {
            call.name.push_str(name);
        }
        // What is whole and begins again was not meant to be added to.
        if piece.arguments.trim_start().starts_with('{') && is_object(&call.arguments) {
            call.arguments.clear();
        }
        call.arguments.push_str(&piece.arguments);
        extra::merge(&mut call.extra, &piece.extra);
        self.argument_bytes += piece.arguments.len() + name.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: Option<usize>, id: &str, name: &str, arguments: &str) -> Delta {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Delta::ToolCall(CallPiece {
            index,
            id: given(id),
            name: given(name),
            arguments: arguments.to_owned(),
            ..CallPiece::default()
        })
    }

    fn calls(deltas: &[Delta]) -> Vec<(String, String, String)> {
        let mut assembler = Assembler::default();
        for delta in deltas {
            assembler.push(delta).unwrap();
        }
        let calls = assembler.into_message().tool_calls.into_iter();
        calls
            .map(|call| (call.id.to_string(), call.name, call.arguments))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn interleaved_calls_are_distinguished_by_their_index() {
        let got = calls(&[
            piece(Some(1), "b", "dice", "{\"si"),
            piece(Some(0), "a", "time", ""),
            piece(Some(1), "", "", "des\":6}"),
            piece(Some(0), "", "", "{}"),
        ]);
        let expected = [call("a", "time", "{}"), call("b", "dice", "{\"sides\":6}")];
        assert_eq!(got, expected);
    }

    #[test]
    fn a_piece_without_a_name_belongs_to_the_call_that_is_not_whole() {
        let expected = [call("a", "time", "{}"), call("b", "dice", "{\"x\":1}")];
        // The index of each head and of the pieces behind it.
        for [first, first_tail, second, tail, last] in [
            [0, 0, 0, 1, 1],
            [0, 0, 0, 0, 0],
            [0, 0, 1, 1, 1],
            [0, 0, 1, 0, 0],
            [0, 3, 0, 7, 7],
            [0, 0, 0, 1, 2],
        ] {
            let got = calls(&[
                piece(Some(first), "a", "time", ""),
                piece(Some(first_tail), "", "", "{}"),
                piece(Some(second), "b", "dice", ""),
                piece(Some(tail), "", "", "{\"x\""),
                piece(Some(last), "", "", ":1}"),
            ]);
            assert_eq!(got, expected, "{second} {tail} {last}");
        }
    }

    #[test]
    fn members_that_only_the_provider_knows_are_kept_up_to_a_size() {
        let mut assembler = Assembler::default();
        let members = |value: Value| value.as_object().unwrap().clone();
        let of_call = |id: &str, extra: Value| {
            let Delta::ToolCall(mut piece) = piece(Some(0), id, "", "") else {
                unreachable!()
            };
            piece.extra = members(extra);
            Delta::ToolCall(piece)
        };
        for delta in [
            Delta::Extra(None, members(value!({ "r": "one " }))),
            Delta::Extra(
                Some(0),
                members(value!({ "type": "thinking", "thinking": "" })),
            ),
            Delta::Extra(Some(0), members(value!({ "thinking": "hm" }))),
            Delta::Extra(Some(1), members(value!({ "citation": {} }))),
            Delta::Text("hey".to_owned()),
            piece(Some(0), "a", "time", "{}"),
            of_call("", value!({ "x": { "s": "S" } })),
            Delta::Extra(None, members(value!({ "r": "two" }))),
        ] {
            assembler.push(&delta).unwrap();
        }
        let message = assembler.clone().into_message();
        let block = value!({ "type": "thinking", "thinking": "hm" });
        let expected =
            value!({ "r": "one two", extra::BLOCKS: [{ "at": [0, 0], "block": block }] });
        assert_eq!(Value::from(message.extra), expected);
        assert_eq!(
            Value::from(message.tool_calls[0].extra.clone()),
            value!({ "x": { "s": "S" } })
        );
        let long = "x".repeat(extra::MAX_BYTES);
        assembler
            .push(&Delta::Extra(None, members(value!({ "r": long }))))
            .unwrap();
        let message = assembler.into_message();
        assert!(message.extra.is_empty() && message.tool_calls[0].extra.is_empty());
    }

    #[test]
    fn calls_without_a_true_index_are_distinguished_by_their_id() {
        for index in [None, Some(0)] {
            let got = calls(&[
                piece(index, "a", "time", "{"),
                piece(index, "", "", "}"),
                piece(index, "b", "time", ""),
                piece(index, "b", "time", "{}"),
            ]);
            assert_eq!(got, [call("a", "time", "{}"), call("b", "time", "{}")]);
        }
    }

    #[test]
    fn calls_with_one_id_are_all_there() {
        for (first, second) in [(None, None), (Some(0), Some(0)), (Some(0), Some(1))] {
            let got = calls(&[
                piece(first, "a", "time", "{\"x\":"),
                piece(first, "a", "", "1}"),
                piece(second, "a", "dice", "{\"x\""),
                piece(second, "a", "", ":2}"),
                piece(second, "a", "dice", ""),
            ]);
            let expected = [
                call("a", "time", r#"{"x":1}"#),
                call("a", "dice", r#"{"x":2}"#),
            ];
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_name_may_come_in_pieces_or_again_and_again() {
        let got = calls(&[
            piece(Some(0), "a", "se", ""),
            piece(Some(0), "", "arch", ""),
        ]);
        assert_eq!(got, [call("a", "search", "")]);
        let got = calls(&[
            piece(Some(0), "a", "time", "{"),
            piece(Some(0), "a", "time", "}"),
        ]);
        assert_eq!(got, [call("a", "time", "{}")]);
    }

    #[test]
    fn text_finish_and_usage_are_kept() {
        let mut assembler = Assembler::default();
        let usage = Usage {
            prompt: 3,
            completion: 2,
        };
        for delta in [
            Delta::Text("he".to_owned()),
            Delta::Text("y".to_owned()),
            Delta::Finish(Finish::from("length")),
            Delta::Usage(usage),
        ] {
            assembler.push(&delta).unwrap();
        }
        assert_eq!(assembler.text(), "hey");
        assert_eq!(assembler.finish(), Some(&Finish::Length));
        assert_eq!(assembler.usage(), Some(usage));
        assert_eq!(assembler.into_message(), ChatMessage::assistant("hey"));
    }

    #[test]
    fn refuses_an_answer_without_an_end() {
        let mut assembler = Assembler::default();
        let long = Delta::Text("x".repeat(MAX_BYTES / 2));
        assert_eq!(assembler.push(&long), Ok(()));
        assert_eq!(assembler.push(&long), Ok(()));
        let error = Err(ModelError::TooLarge { max: MAX_BYTES });
        assert_eq!(assembler.push(&long), error);
        let mut assembler = Assembler::default();
        for index in 0..MAX_CALLS {
            assembler
                .push(&piece(Some(index * 7), "i", "n", ""))
                .unwrap();
        }
        let error = Err(ModelError::bad("it calls more than 128 tools"));
        assert_eq!(assembler.push(&piece(Some(1), "i", "n", "")), error);
    }
}
