//! Both machines without IO: no socket, no runtime. The program hands the frames over, acts on the
//! events, and says what time it is.
//!
//! ```sh
//! cargo run -p exoclaw-proto --example machine
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent};
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::Call;
use exoclaw_proto::rpc_core::{Incoming, Machine, Outgoing};
use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let now = Instant::now();
    let seed = 7; // request ids begin here
    let config = ClientConfig::new("secret");
    let mut client = ClientConn::new(config.clone(), seed, now);
    let auth = Auth::token("secret")?;
    let mut server = ServerConn::new(ServerConfig::default(), auth, now);
    loop {
        deliver("client", &mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Request { id, call } => match call {
                    Call::ChatSend(chat) => {
                        server.text(id, &chat.content)?;
                        server.done(id)?;
                    }
                    other => server.fail(id, &RpcError::unknown_method(other.tag()))?,
                },
                other => println!("{other:?}"),
            }
        }
        deliver("server", &mut server, &mut client, now);
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Ready(_) => {
                    client.chat_send(&config.chat("hello"), now)?;
                }
                ClientEvent::ChatEnded { .. } => return Ok(()),
                other => println!("{other:?}"),
            }
        }
    }
}

fn deliver(name: &str, from: &mut impl Machine, to: &mut impl Machine, now: Instant) {
    while let Some(Outgoing::Text(text)) = from.poll_transmit() {
        println!("{name} sends {}", text.as_str());
        to.handle_message(Incoming::Text(text.as_str()), now);
    }
}
