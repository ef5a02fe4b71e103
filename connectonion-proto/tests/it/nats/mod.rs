//! Several hosts on a real NATS server.

mod faults;
mod hosts;
mod served;
mod takeover;
