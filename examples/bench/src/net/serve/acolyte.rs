//! Our Acolyte server; a chat is answered as many texts as its message says.

use acolyte_proto::error::AppError;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{Agent, ChatReply, Server, ServerOptions};

use super::{CHUNK, CONNECTIONS, OnListen};
use crate::text;

struct Chunks(String);

impl Agent for Chunks {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        for _ in 0..request.message.parse().unwrap_or(0) {
            if run.text(&self.0).await.is_err() {
                break;
            }
        }
        let mut reply = Reply::new("", "bench");
        reply.output_streamed = Some(true);
        Ok(reply)
    }

    async fn status(&self) -> Status {
        Status::new("bench", "")
    }
}

pub(super) async fn serve(on_listen: OnListen) {
    let mut options = ServerOptions::default();
    options.connection.limits.max_message_rate = None;
    options.http.limits.max_connections = CONNECTIONS;
    let server = Server::bind("127.0.0.1:0", Chunks(text::words(CHUNK)), options);
    let server = server.await.unwrap();
    on_listen(server.local_addr());
    server.run().await;
}
