//! A toy protocol in which the *server* asks: the core's second user.
//!
//! ```text
//! guest                         host
//! {"hello":"name"}      ->
//!                       <-      {"welcome":"name"}     or {"refused":"why"} and close
//!                       <-      {"ask":"<id>","text":".."}
//! {"part":"<id>","text":".."} ->                        any number
//! {"answer":"<id>","text":".."} ->                      or {"fail":"<id>","text":".."}
//!                       <-      {"cancel":"<id>"}
//!                       <-      {"tell":"text"}
//! ```

pub mod guest;
pub mod host;
pub mod house;
pub mod net;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// One frame; exactly one of the tag members is set.
#[derive(Serialize, Deserialize, Default, Debug, Clone, PartialEq)]
#[serde(default)]
pub struct Frame {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hello: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub welcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Frame {
    pub fn decode(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// How long a handshake may take.
pub const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long an answer may take.
pub const ANSWER: Duration = Duration::from_secs(10);

/// A connected pair whose handshake has finished.
pub fn pair(now: Instant, seed: u64) -> rpc_core::testing::Pair<guest::Guest, host::Host> {
    let guest = guest::Guest::new("ann", now);
    let host = host::Host::new(seed, now);
    let mut pair = rpc_core::testing::Pair::new(guest, host, now);
    pair.settle();
    pair
}
