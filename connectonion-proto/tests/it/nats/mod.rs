//! Several hosts on a real NATS server.

mod cost;
mod faults;
mod hosts;
mod recovery;
mod served;
mod takeover;
