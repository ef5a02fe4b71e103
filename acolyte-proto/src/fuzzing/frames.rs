//! Frames: what is read is written, and read again.

use rpc_core::{Limits, Text};

use crate::event::Event;
use crate::frame::{Answer, ChatRequest, ClientFrame, Reply, Request, ServerFrame};
use crate::{codec, limits};

/// Decoding, encoding and decoding again gives the same frame; what is refused knows whom to tell.
pub fn client_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = limits::defaults();
    let frame = match ClientFrame::decode(text, &limits) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has words");
            let _ = ChatRequest::decode_lax(text, &limits);
            return;
        }
    };
    let again = written(&frame);
    match ClientFrame::decode(again.as_str(), &limits) {
        Ok(decoded) => assert!(decoded == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
    if let Request::ChatStart(request) = &frame.request {
        assert!(request.validate().is_ok(), "a decoded request is valid");
        let body = written(request);
        let lax = ChatRequest::decode_lax(body.as_str(), &limits);
        assert!(lax.as_ref() == Ok(&**request), "over HTTP it is the same");
    }
}

/// Decoding, encoding and decoding again gives the same frame, but for what is always written.
pub fn server_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = limits::defaults();
    event(text, &limits);
    let frame = match ServerFrame::decode(text, &limits) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has words");
            return;
        }
    };
    let first = written(&frame);
    let Ok(mut again) = ServerFrame::decode(first.as_str(), &limits) else {
        panic!("an encoded frame must decode");
    };
    if let (Answer::Done(reply), Answer::Done(read)) = (&frame.answer, &mut again.answer) {
        always_written(reply, read);
    }
    assert!(again == frame, "the round trip changed the frame");
}

/// `outputStreamed` and the model are written where a server did not tell them.
fn always_written(reply: &Reply, read: &mut Reply) {
    if reply.output_streamed.is_none() {
        assert_eq!(read.output_streamed, Some(false), "nothing is lost");
        read.output_streamed = None;
    }
    if reply.model.is_empty() {
        assert!(!read.model.is_empty(), "known clients want a name");
        read.model = reply.model.clone();
    }
}

/// An event that stands for itself.
fn event(text: &str, limits: &Limits) {
    let Ok(event) = Event::decode(text, limits) else {
        return;
    };
    let again = written(&event);
    match Event::decode(again.as_str(), limits) {
        Ok(decoded) => assert!(decoded == event, "the round trip changed the event"),
        Err(error) => panic!("an encoded event must decode: {error}"),
    }
}

fn written(frame: &impl serde::Serialize) -> Text {
    match codec::encode(frame) {
        Ok(text) => text,
        Err(error) => panic!("a decoded frame must encode: {error}"),
    }
}
