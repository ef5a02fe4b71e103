//! stub
use crate::error::Retry;
use std::time::Instant;
/// a
#[derive(Clone, Debug, Default)]
pub struct ReconnectPolicy;
impl ReconnectPolicy {
    /// a
    pub fn off() -> Self {
        Self
    }
    /// a
    pub fn is_off(&self) -> bool {
        true
    }
}
/// a
#[derive(Debug)]
pub struct Reconnector;
/// a
#[derive(Debug)]
pub enum Dial {
    /// a
    Now,
    /// a
    At {
        /// a
        at: Instant,
        /// a
        attempt: u32,
        /// a
        cycle: u32,
    },
    /// a
    GiveUp,
}
impl Reconnector {
    /// a
    pub fn new(_: ReconnectPolicy) -> Self {
        Self
    }
    /// a
    pub fn on_open(&mut self, _: Instant) {}
    /// a
    pub fn on_ready(&mut self, _: Instant) {}
    /// a
    pub fn on_lost(&mut self, _: Retry, _: Instant, _: u64) -> Dial {
        Dial::GiveUp
    }
}
