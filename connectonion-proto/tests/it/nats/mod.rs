//! Several hosts on a real NATS server.

mod faults;
mod hosts;
mod recovery;
mod served;
mod takeover;
