//! Both machines without IO: no socket, no runtime. The program hands the frames over, acts on the
//! events, and says what time it is.
//!
//! ```sh
//! cargo run -p smarthole-proto --example machine
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use smarthole_proto::client::{ClientConfig, ClientConn, ClientEvent, Received};
use smarthole_proto::codec::encode;
use smarthole_proto::frame::{Answer, Message, Registration, ServerFrame};
use smarthole_proto::id::client_id;
use smarthole_proto::rpc_core::{Incoming, Machine, Outgoing};
use smarthole_proto::server::{ServerConfig, ServerConn, ServerEvent};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let now = Instant::now();
    let config = ClientConfig::new(Registration::new("notes", "I keep notes."))?;
    let mut client = ClientConn::new(config, now);
    let mut server = ServerConn::new(ServerConfig::default(), now);
    loop {
        deliver("client", &mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Registration { .. } => {
                    server.accept(&client_id(7))?;
                    let message = Message::new("msg-1", "buy milk", "2024-01-15T10:30:00.000Z");
                    server.send(encode(&ServerFrame::Message(message))?)?;
                }
                ServerEvent::Response { .. } => return Ok(()),
                other => println!("{other:?}"),
            }
        }
        deliver("server", &mut server, &mut client, now);
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Message(Received { message, .. }) => {
                    client.respond(&message.id, Answer::Ack)?;
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
