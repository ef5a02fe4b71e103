//! Single frames: what is read strictly, what forgivingly, and how all of it is written.

mod answers;
mod forgiving;
mod requests;

use acolyte_proto::{ClientFrame, Event, FrameError, RpcId, ServerFrame, codec, limits};

fn request(text: &str) -> Result<ClientFrame<'_>, FrameError> {
    ClientFrame::decode(text, &limits::defaults())
}

fn answer(text: &str) -> ServerFrame<'_> {
    ServerFrame::decode(text, &limits::defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn event(text: &str) -> Event<'_> {
    Event::decode(text, &limits::defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn written(frame: &impl serde::Serialize) -> String {
    codec::encode(frame).unwrap().as_str().to_owned()
}

/// A `chat.start` with this JSON as its request.
fn start(request: &str) -> String {
    format!(r#"{{"id":"rpc_a","type":"chat.start","payload":{{"request":{request}}}}}"#)
}

fn id() -> RpcId {
    RpcId::parse("rpc_a").unwrap()
}
