//! Single frames: what is read strictly, what forgivingly, and how all of it is written.

mod answers;
mod forgiving;
mod requests;

use acolyte_proto::error::FrameError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ClientFrame, ServerFrame};
use acolyte_proto::id::RpcId;
use acolyte_proto::{codec, limits};

fn request(text: &str) -> Result<ClientFrame, FrameError> {
    ClientFrame::decode(text, &limits::defaults())
}

fn answer(text: &str) -> ServerFrame {
    ServerFrame::decode(text, &limits::defaults()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn event(text: &str) -> Event {
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
    "rpc_a".parse::<RpcId>().unwrap()
}
