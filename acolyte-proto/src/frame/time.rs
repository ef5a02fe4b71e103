//! Times as text: in UTC, in milliseconds, with `Z`.

use std::time::SystemTime;

use rpc_core::{Str, timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&timestamp::format(*time))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
    let time = timestamp::parse(&Str::deserialize(from)?);
    time.ok_or_else(|| D::Error::custom("must be a time in UTC"))
}
