//! Asks for a stream on each connection at once and reads them all to their ends.

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use super::kind::Kind;
use super::{phase, raw};

pub(crate) async fn listen(kind: Kind<'_>, address: &str, connections: usize, frames: usize) {
    let mut sockets = Vec::with_capacity(connections);
    for number in 0..connections {
        sockets.push(raw::open(kind, address, number).await);
    }
    phase("open").await;
    let request = request(kind.end, frames);
    let mut readers = tokio::task::JoinSet::new();
    for mut socket in sockets {
        socket.send(Message::text(request.clone())).await.unwrap();
        readers.spawn(async move {
            let mut left = frames;
            while left > 0 {
                let message = socket.next().await.expect("a frame").unwrap();
                if let Message::Text(text) = &message {
                    // An answer to the request itself is no frame of the stream.
                    left -= usize::from(text.contains("The quick"));
                }
            }
            socket
        });
    }
    while let Some(socket) = readers.join_next().await {
        // Kept until all have ended: closing is not measured.
        std::mem::forget(socket.unwrap());
    }
    phase("done").await;
}

fn request(end: &str, frames: usize) -> String {
    match end {
        "exoclaw" => format!(
            r#"{{"id":"0f1e2d3c4b5a6978","method":"chat.send","params":{{"channel":"c","account":"a","content":"{frames}"}}}}"#
        ),
        "jsonrpsee" => {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscribe","params":[{frames}]}}"#)
        }
        _ => frames.to_string(),
    }
}
