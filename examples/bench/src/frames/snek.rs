//! Snek: what is said in a channel, calls and their answers.

use std::borrow::Cow;
use std::hint::black_box;

use rpc_core::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use snek_proto::codec::encode_request;
use snek_proto::frame::{Channel, ClientFrame, Event, Final, NoKwargs, ServerFrame};
use snek_proto::id::CallId;

use super::{kept, parse, raw, reading, write, writing};
use crate::goals;
use crate::text;
use crate::work::Work;

const SEND_MESSAGE: &str = r#"{"method":"send_message","args":["ch1","Hello, how are you?",true],"kwargs":{},"callId":"0f1e2d3c4b5a6978"}"#;

/// An event, as a user derives it.
#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Owned {
    Message {
        message: String,
        username: String,
        user_nick: String,
        channel_uid: String,
        is_final: bool,
    },
    SetTyping {
        data: Value,
    },
    Join {
        data: Value,
    },
    Leave {
        data: Value,
    },
}

/// The tag borrows, what is delivered does not.
#[derive(Debug, Serialize, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    message: String,
    username: String,
    user_nick: String,
    channel_uid: String,
    is_final: bool,
}

#[derive(Serialize, Deserialize)]
struct Request {
    method: String,
    args: (String, String, bool),
    kwargs: Empty,
    #[serde(rename = "callId")]
    call_id: String,
}

#[derive(Serialize, Deserialize)]
struct Empty {}

fn message(text: &str) -> String {
    let text = text::json(text);
    format!(
        r#"{{"event":"message","message":{text},"username":"ann","user_nick":"Ann","channel_uid":"ch1","is_final":false}}"#
    )
}

fn small() -> String {
    message("Hello world")
}

fn long() -> String {
    message(&text::words(890))
}

fn spoken() -> String {
    message(&text::words(20))
}

fn reply() -> String {
    let data = text::channels();
    format!(r#"{{"callId":"0f1e2d3c4b5a6978","success":true,"data":{data}}}"#)
}

fn event(frame: ServerFrame) -> Event {
    frame.into_event().unwrap().unwrap()
}

fn read(name: &str, bytes: u64, text: fn() -> String) -> Work {
    reading(
        name,
        bytes,
        text,
        |text, limits| event(ServerFrame::decode(text, limits).unwrap()),
        event,
    )
}

pub(super) fn works() -> Vec<Work> {
    let sonic = |text: &str| {
        black_box(sonic_rs::from_str::<Message<'_>>(text).unwrap());
    };
    vec![
        read("decode Snek message event, 120 B", 100, small)
            .hot::<Owned, Owned>(small, small, || text::logged(&small()), sonic)
            .allocating(0.0),
        read("decode Snek message event, 1 KB", 1_000, long).allocating(1.0),
        reading(
            "decode Snek send_message",
            100,
            || SEND_MESSAGE.to_owned(),
            |text, limits| ClientFrame::decode(text, limits).unwrap().call().unwrap(),
            |frame: ClientFrame| frame.call().unwrap(),
        )
        .allocating(1.0),
        reading(
            "decode Snek channels into owned structs, 200 KB",
            200_000,
            reply,
            |text, limits| -> Vec<Channel> {
                let answer = ServerFrame::decode(text, limits).unwrap().into_result();
                json::parse(answer.unwrap().data().get(), limits).unwrap()
            },
            |frame: ServerFrame| parse(frame.into_result().unwrap().data().get()),
        ),
        raw("Snek answer left raw, 200 KB", reply, |text, limits| {
            ServerFrame::decode(text, limits)
                .unwrap()
                .into_result()
                .unwrap()
        }),
        writing(
            "encode Snek message event, 120 B",
            120,
            goals::WRITE,
            spoken,
            |n, text, buffer| write(n, &event(parse(text)), buffer),
            kept::<Message<'_>>,
        ),
        writing(
            "encode Snek send_message, 100 B",
            100,
            goals::WRITER,
            || SEND_MESSAGE.to_owned(),
            |n, _, buffer| {
                for _ in 0..n {
                    buffer.clear();
                    let id = CallId::from_raw(0x0f1e_2d3c_4b5a_6978);
                    let args = black_box(("ch1", "Hello, how are you?", Final::Yes));
                    encode_request(buffer, "send_message", &args, &NoKwargs {}, id).unwrap();
                    black_box(&buffer[..]);
                }
            },
            kept::<Request>,
        ),
    ]
}
