//! sonic-rs as fast as it goes to something that another task can have: the envelope borrows and its
//! payload is lazy, what is delivered is copied.

use std::borrow::Cow;
use std::hint::black_box;

use serde::Deserialize;
use sonic_rs::LazyValue;

use super::derive::Channel;
use crate::text;

#[derive(Debug, Deserialize)]
struct Frame<'a> {
    id: String,
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    data: LazyValue<'a>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Debug, Deserialize)]
struct Request<'a> {
    id: String,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: LazyValue<'a>,
}

#[derive(Debug, Deserialize)]
struct ChatSend {
    channel: String,
    account: String,
    #[serde(default)]
    peer: String,
    content: String,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    message: String,
    username: String,
    user_nick: String,
    channel_uid: String,
    is_final: bool,
}

#[derive(Debug, Deserialize)]
struct SnekRequest<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    args: LazyValue<'a>,
    #[serde(borrow)]
    kwargs: LazyValue<'a>,
    #[serde(borrow, rename = "callId")]
    call_id: LazyValue<'a>,
}

#[derive(Debug, Deserialize)]
struct SendMessage(String, String, bool);

#[derive(Debug, Deserialize)]
struct Reply<'a> {
    #[serde(borrow, rename = "callId")]
    call_id: LazyValue<'a>,
    success: bool,
    #[serde(borrow)]
    data: LazyValue<'a>,
}

fn text(n: u64, text: &str) {
    for _ in 0..n {
        let frame: Frame<'_> = sonic_rs::from_str(black_box(text)).unwrap();
        assert!(frame.event == "text");
        black_box(sonic_rs::from_str::<String>(frame.data.as_raw_str()).unwrap());
        black_box(frame);
    }
}

pub(crate) fn text_small(n: u64) {
    text(n, &text::exoclaw_text(&text::words(45)));
}

pub(crate) fn text_1k(n: u64) {
    text(n, &text::exoclaw_text(&text::words(970)));
}

pub(crate) fn text_code(n: u64) {
    text(n, &text::exoclaw_text(&text::code(970)));
}

pub(crate) fn text_200k(n: u64) {
    text(n, &text::exoclaw_text(&text::words(200_000)));
}

pub(crate) fn usage(n: u64) {
    for _ in 0..n {
        let frame: Frame<'_> = sonic_rs::from_str(black_box(text::USAGE)).unwrap();
        assert!(frame.event == "usage");
        black_box(sonic_rs::from_str::<Usage>(frame.data.as_raw_str()).unwrap());
        black_box(frame);
    }
}

pub(crate) fn chat_send(n: u64) {
    for _ in 0..n {
        let request: Request<'_> = sonic_rs::from_str(black_box(text::CHAT_SEND)).unwrap();
        assert!(request.method == "chat.send");
        black_box(sonic_rs::from_str::<ChatSend>(request.params.as_raw_str()).unwrap());
        black_box(request);
    }
}

fn message(n: u64, text: &str) {
    for _ in 0..n {
        black_box(sonic_rs::from_str::<Message<'_>>(black_box(text)).unwrap());
    }
}

pub(crate) fn message_small(n: u64) {
    message(n, &text::snek_message("Hello world"));
}

pub(crate) fn message_1k(n: u64) {
    message(n, &text::snek_message(&text::words(890)));
}

pub(crate) fn send_message(n: u64) {
    for _ in 0..n {
        let request: SnekRequest<'_> = sonic_rs::from_str(black_box(text::SEND_MESSAGE)).unwrap();
        assert!(request.method == "send_message");
        black_box(sonic_rs::from_str::<SendMessage>(request.args.as_raw_str()).unwrap());
        black_box(request);
    }
}

pub(crate) fn channels(n: u64) {
    let text = text::snek_reply(&text::channels());
    for _ in 0..n {
        let reply: Reply<'_> = sonic_rs::from_str(black_box(&text)).unwrap();
        black_box(sonic_rs::from_str::<Vec<Channel>>(reply.data.as_raw_str()).unwrap());
        black_box(reply);
    }
}
