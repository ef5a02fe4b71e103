//! What serde cannot say of a value: the range of a number, and the form of a text.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::store::Fsync;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Value;

use super::{AgentConfig, DataDir, GatewayConfig, PluginSource};
use crate::cli;
use crate::model::options::{ModelArgs, temperature};
use crate::model::provider::Provider;

/// `[agent]` as it is written.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct AgentKeys {
    #[serde(deserialize_with = "filled")]
    id: Option<String>,
    #[serde(deserialize_with = "provider")]
    provider: Option<Provider>,
    #[serde(deserialize_with = "filled")]
    model: Option<String>,
    #[serde(deserialize_with = "filled")]
    base_url: Option<String>,
    #[serde(deserialize_with = "secret")]
    api_key: Option<Secret>,
    key_file: Option<PathBuf>,
    model_header: Vec<String>,
    #[serde(deserialize_with = "within::<_, u32, _, 1, { u32::MAX as i64 }>")]
    max_tokens: Option<u32>,
    #[serde(deserialize_with = "heat")]
    temperature: Option<f64>,
    #[serde(deserialize_with = "within::<_, usize, _, 1, { i64::MAX }>")]
    context_tokens: Option<usize>,
    #[serde(deserialize_with = "time::<_, 1, { i64::MAX }>")]
    model_timeout: Option<Duration>,
    system_prompt: Option<String>,
    soul_path: Option<PathBuf>,
    tools: Vec<String>,
    catch_all: Option<bool>,
    #[serde(deserialize_with = "within::<_, usize, _, 1, 1000>")]
    max_tool_rounds: Option<usize>,
}

impl From<AgentKeys> for AgentConfig {
    fn from(keys: AgentKeys) -> Self {
        let defaults = Self::default();
        Self {
            id: keys.id.unwrap_or(defaults.id),
            model: ModelArgs {
                provider: keys.provider,
                model: keys.model,
                base_url: keys.base_url,
                key: keys.api_key,
                key_file: keys.key_file,
                model_header: keys.model_header.into_iter().map(Secret::new).collect(),
                max_tokens: keys.max_tokens,
                temperature: keys.temperature,
                context_tokens: keys.context_tokens,
                model_timeout: keys.model_timeout,
                ..ModelArgs::default()
            },
            system_prompt: keys.system_prompt,
            soul_path: keys.soul_path,
            tools: keys.tools,
            catch_all: keys.catch_all.unwrap_or(defaults.catch_all),
            max_tool_rounds: keys.max_tool_rounds.unwrap_or(defaults.max_tool_rounds),
        }
    }
}

impl<'de> Deserialize<'de> for DataDir {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: String = filled(deserializer)?;
        Ok(match &*text {
            ":memory:" => Self::Memory,
            _ => Self::Folder(text.into()),
        })
    }
}

impl<'de> Deserialize<'de> for PluginSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: String = filled(deserializer)?;
        Ok(match text.strip_prefix("builtin:") {
            Some(name) => Self::Builtin(name.to_owned()),
            None => Self::File(text.into()),
        })
    }
}

/// The folder of the file, where data is kept if the file names no other.
pub(super) fn own_folder() -> DataDir {
    DataDir::Folder(PathBuf::from("."))
}

/// `[gateway]` of a file that leaves it out.
pub(super) fn no_gateway() -> GatewayConfig {
    GatewayConfig {
        data: own_folder(),
        ..GatewayConfig::default()
    }
}

/// A text that is not blank.
pub(super) fn filled<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    let text = String::deserialize(from)?;
    match text.trim() {
        "" => Err(D::Error::custom("is empty")),
        _ => Ok(text.into()),
    }
}

pub(super) fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    filled(from).map(Some)
}

/// A host name or an address, without a port.
pub(super) fn host<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let host: String = filled(from)?;
    let has_port = host.matches(':').count() == 1;
    match has_port || host.contains(['/', ' ', '\t', '\n']) {
        true => Err(D::Error::custom(
            "must be a host name or an address, without a port",
        )),
        false => Ok(host),
    }
}

/// A whole number in a range.
pub(super) fn within<'de, D, N, T, const MIN: i64, const MAX: i64>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64>,
    T: From<N>,
{
    let number = Value::deserialize(from)?.as_integer();
    let number = number.filter(|it| (MIN..=MAX).contains(it));
    let number = number.and_then(|it| N::try_from(it).ok()).map(T::from);
    number
        .ok_or_else(|| D::Error::custom(format_args!("must be a whole number from {MIN} to {MAX}")))
}

/// A number or a text in the form that options have on the command line.
fn parsed<'de, D, T, E>(
    from: D,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    E: Display,
{
    let text = match Value::deserialize(from)? {
        Value::String(text) => text,
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => String::new(),
    };
    parse(&text).map(Some).map_err(D::Error::custom)
}

fn provider<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Provider>, D::Error> {
    parsed(from, Provider::read)
}

fn heat<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    parsed(from, temperature)
}

/// When a file is on the disk.
pub(super) fn fsync<'de, D: Deserializer<'de>>(from: D) -> Result<Fsync, D::Error> {
    let text = String::deserialize(from)?;
    crate::fsync::fsync(&text).map_err(D::Error::custom)
}

/// A time within a range of milliseconds.
pub(super) fn time<'de, D, const MIN: i64, const MAX: i64>(
    from: D,
) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    parsed(from, |text| {
        let time = cli::duration(text)?;
        let (min, max) = (MIN.unsigned_abs(), MAX.unsigned_abs());
        let (min, max) = (Duration::from_millis(min), Duration::from_millis(max));
        match (min..=max).contains(&time) {
            true => Ok(time),
            false => Err(format!("must be from {min:?} to {max:?}")),
        }
    })
}
