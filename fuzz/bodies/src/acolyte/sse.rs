//! Chats over HTTP: bodies, and streams in any chunks.

use acolyte_proto::frame::{ChatRequest, ClientFrame, Request};
use acolyte_proto::http::{StreamDecoder, StreamError, StreamFrame, read_body};
use acolyte_proto::id::RpcId;
use rpc_core::Limits;

use crate::frames::{chunks, sizes_and_stream, written};

/// The first byte says how many of the next are sizes of chunks (at most 7); with its fourth bit
/// the rest is the body of a chat, else a stream.
pub fn sse(data: &[u8]) {
    let Some((count, rest)) = data.split_first() else {
        return;
    };
    if count & 8 == 8 {
        return body(rest);
    }
    let (sizes, stream) = sizes_and_stream(*count, rest);
    let mut limits = Limits::default();
    for max in [limits.max_message_bytes, 64] {
        limits.max_message_bytes = max;
        let whole = decoded(stream, &[], &limits);
        let pieces = decoded(stream, sizes, &limits);
        assert_eq!(whole, pieces, "chunks change nothing");
        for frame in whole.0.into_iter().flatten() {
            written_frame(frame);
        }
    }
}

type Frames = Vec<Result<StreamFrame, StreamError>>;

/// Every frame, and whether a part of one was lost.
fn decoded(stream: &[u8], sizes: &[u8], limits: &Limits) -> (Frames, bool) {
    let mut decoder = StreamDecoder::new(limits);
    let mut frames = Vec::new();
    for mut chunk in chunks(stream, sizes) {
        while let Some(frame) = decoder.decode(&mut chunk) {
            frames.push(frame);
        }
        assert!(chunk.is_empty(), "`None` takes all bytes");
    }
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
    assert!(
        frame.write(&mut text).is_ok(),
        "a decoded frame must encode"
    );
    let (again, cut) = decoded(text.as_bytes(), &[], &Limits::default());
    assert!(!cut, "a frame is written whole");
    let json = written(&frame);
    match &*again {
        // White space of raw pieces becomes spaces.
        [Ok(_)] if json.as_str().contains(['\n', '\r']) => {}
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
    assert!(
        again.as_ref() == Ok(&request),
        "the round trip changed the body"
    );
    let strict = ChatRequest::decode(text.as_str(), &limits);
    assert_eq!(strict.is_ok(), request.validate().is_ok(), "what is valid");
    let frame = ClientFrame::new(RpcId::random(1), Request::ChatStart(Box::new(request)));
    written(&frame);
}
