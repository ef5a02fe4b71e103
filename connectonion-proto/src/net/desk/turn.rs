//! [`Turn`]: one run, as its [`Agent`](super::Agent) sees it.
//!
//! The signatures below are what agents are written against.

use std::fmt;

use rpc_core::Refused;
use rpc_core::decode::{SharedJson, SharedStr};
use serde::Serialize;

use super::agent::Prompt;
use crate::frame::{
    Approval, ApprovalNeeded, AskUser, EventKind, Mode, PlanReview, Session, Ulw, UlwTurnsReached, Word,
};
use crate::session::{Owner, RunId, RunOver, SessionId};
