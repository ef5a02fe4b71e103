//! Frames, and events that stand for themselves.

use acolyte_proto::event::Event;
use acolyte_proto::frame::{Answer, ChatRequest, ClientFrame, Reply, Request, ServerFrame};
use acolyte_proto::limits;

use crate::frames::{frame, round_trip, written};

/// Decoding, encoding and decoding again gives the same frame, and over HTTP the same request.
pub fn client_frames(text: &str) {
    let limits = limits::defaults();
    let Ok((frame, _)) = frame(text, &limits, ClientFrame::decode) else {
        let _ = ChatRequest::decode_lax(text, &limits);
        return;
    };
    if let Request::ChatStart(request) = &frame.request {
        assert!(request.validate().is_ok(), "a decoded request is valid");
        let lax = ChatRequest::decode_lax(written(&**request).as_str(), &limits);
        assert!(lax.as_ref() == Ok(&**request), "over HTTP it is the same");
    }
}

/// Decoding, encoding and decoding again gives the same frame, except for what is always written.
pub fn server_frames(text: &str) {
    let limits = limits::defaults();
    let _ = round_trip(text, &limits, Event::decode);
    let frame = match ServerFrame::decode(text, &limits) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has words");
            return;
        }
    };
    let Ok(mut again) = ServerFrame::decode(written(&frame).as_str(), &limits) else {
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
