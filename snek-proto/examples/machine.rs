//! Both machines without IO: no socket, no runtime. The program hands the frames over, acts on the
//! events, and says what time it is.
//!
//! ```sh
//! cargo run -p snek-proto --example machine
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use snek_proto::client::{ClientConfig, ClientConn, ClientEvent};
use snek_proto::frame::{Call, Channel, Final, User};
use snek_proto::rpc_core::{Incoming, Machine, Outgoing};
use snek_proto::server::{ServerConfig, ServerConn, ServerEvent};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let now = Instant::now();
    let seed = 7; // call ids begin here
    let mut client = ClientConn::new(ClientConfig::new("ann", "secret"), seed, now);
    let mut server = ServerConn::new(ServerConfig::default(), now);
    let ann = User::new("ann", "Ann");
    loop {
        deliver("client", &mut client, &mut server, now);
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Login { id, .. } => server.accept_login(id, ann.clone())?,
                ServerEvent::Request { id, call } => match call {
                    Call::GetUser { .. } => server.reply(id, &ann)?,
                    Call::GetChannels => server.reply(id, &[Channel::new("1", "General", None)])?,
                    Call::SendMessage { .. } => server.reply(id, &"sent")?,
                    other => server.fail(id, other.method())?,
                },
                other => println!("{other:?}"),
            }
        }
        deliver("server", &mut server, &mut client, now);
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Ready(_) => {
                    client.send_message("1", "hello", Final::Yes, now)?;
                }
                ClientEvent::Reply { result, .. } => {
                    println!("the reply is {}", result?.data().get());
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
