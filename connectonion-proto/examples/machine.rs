//! Both machines without IO: no socket, no runtime. The program hands the frames over, acts on the
//! events, and says what time it is.
//!
//! ```sh
//! cargo run -p connectonion-proto --example machine
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent};
use connectonion_proto::codec::encode;
use connectonion_proto::frame::{Connect, Connected, Input, Output, SessionState, Signed};
use connectonion_proto::rpc_core::{Incoming, Machine, Outgoing};
use connectonion_proto::server::{ServerConfig, ServerConn, ServerEvent};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let now = Instant::now();
    let seed = 7; // ids begin here
    let connect = Connect::new(Signed::none()); // auth::Signer signs it
    let mut client = ClientConn::new(ClientConfig::default(), &connect, seed, now);
    let mut server = ServerConn::new(ServerConfig::default(), now);
    loop {
        deliver("client", &mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Connect(..) => {
                    server.accept(&Connected::new("session-1", SessionState::New))?;
                }
                ServerEvent::Input(..) => {
                    server.begun()?;
                    server.send(encode(&Output::new("session-1", "hi", 3))?)?;
                }
                other => println!("{other:?}"),
            }
        }
        deliver("server", &mut server, &mut client, now);
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Connected(_) => {
                    client.input(&Input::new("hello"), now)?;
                }
                ClientEvent::RunEnded(_) => return Ok(()),
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
