//! Chats over HTTP: bodies, and streams in any chunks.

use acolyte_proto::frame::{ChatRequest, ClientFrame, Request};
use acolyte_proto::http::{StreamDecoder, StreamError, StreamFrame, read_body};
use acolyte_proto::id::RpcId;
use rpc_core::Limits;

use crate::frames::{decoded, sizes_and_stream, written};

/// The first byte says how many of the next are sizes of chunks (at most 7); with its fourth bit
/// the rest is the body of a chat, else a stream.
pub fn sse(data: &[u8]) {
    let Some((first, sizes, stream)) = sizes_and_stream(data) else {
        return;
    };
    if first & 8 == 8 {
        return body(data.get(1..).unwrap_or_default());
    }
    let mut limits = Limits::default();
    for max in [limits.max_message_bytes, 64] {
        limits.max_message_bytes = max;
        let whole = run(stream, &[], &limits);
        assert_eq!(whole, run(stream, sizes, &limits), "chunks change nothing");
        for frame in whole.0.into_iter().flatten() {
            written_frame(frame);
        }
    }
}

/// Every frame, and whether a part of one was lost.
fn run(
    stream: &[u8],
    sizes: &[u8],
    limits: &Limits,
) -> (Vec<Result<StreamFrame, StreamError>>, bool) {
    let mut decoder = StreamDecoder::new(limits);
    let frames = decoded(stream, sizes, |chunk| decoder.decode(chunk));
    (frames, decoder.end())
}

/// What was read is written, and read again.
fn written_frame(mut frame: StreamFrame) {
    if let StreamFrame::Done(reply) = &mut frame {
        // Always written.
        reply.output_streamed.get_or_insert(false);
        if reply.model.is_empty() {
            reply.model = "unknown".into();
        }
    }
    let mut text = String::new();
    let result = frame.write(&mut text);
    assert!(result.is_ok(), "a decoded frame must encode");
    let (again, cut) = run(text.as_bytes(), &[], &Limits::default());
    assert!(!cut, "a frame is written whole");
    // White space of raw pieces becomes spaces.
    let is_exact = !written(&frame).as_str().contains(['\n', '\r']);
    match &*again {
        [Ok(_)] if !is_exact => {}
        again => assert_eq!(again, [Ok(frame)], "the round trip changed the frame"),
    }
}

/// What passes for a body can be sent again, as a body and, if it is valid, on a WebSocket.
fn body(body: &[u8]) {
    let limits = Limits::default();
    let Ok(request) = read_body(body, &limits) else {
        return;
    };
    let text = written(&request);
    let again = read_body(text.as_str().as_bytes(), &limits);
    let is_same = again.as_ref() == Ok(&request);
    assert!(is_same, "the round trip changed the body");
    let strict = ChatRequest::decode(text.as_str(), &limits);
    assert_eq!(strict.is_ok(), request.validate().is_ok(), "what is valid");
    let request = Request::ChatStart(Box::new(request));
    written(&ClientFrame::new(RpcId::random(1), request));
}
