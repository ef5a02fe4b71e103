//! Both machines without IO: no socket, no runtime. The program hands the frames over, acts on the
//! events, and says what time it is.
//!
//! ```sh
//! cargo run -p acolyte-proto --example machine
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use acolyte_proto::client::{ChatUpdate, ClientConfig, ClientConn, ClientEvent};
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply};
use acolyte_proto::rpc_core::{Incoming, Machine, Outgoing};
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let now = Instant::now();
    let (seed, entropy) = (7, 8); // ids of requests and of tasks begin here
    let mut client = ClientConn::new(ClientConfig::default(), seed, now);
    let mut server = ServerConn::new(ServerConfig::default(), entropy, now);
    client.chat(&ChatRequest::new("hi", "echo"), now)?;
    loop {
        deliver("client", &mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Start { id, request, .. } => {
                    server.event(&id, &Event::text(request.message.clone()))?;
                    server.done(&id, &Reply::new(request.message, "echo"))?;
                }
                other => println!("{other:?}"),
            }
        }
        deliver("server", &mut server, &mut client, now);
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Chat {
                    update: ChatUpdate::Ended(outcome),
                    ..
                } => {
                    println!("{outcome}");
                    return Ok(());
                }
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
