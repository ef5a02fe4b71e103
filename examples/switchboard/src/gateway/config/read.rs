//! Reading the file: serde checks the types, and [`Checks`] what they cannot say.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::net::server::Guards;
use rpc_core::store::Fsync;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use strsim::damerau_levenshtein;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{ConfigError, quoted, sorted};
use super::load::{Loaded, Origin};
use super::{AgentConfig, Config, DataDir, PluginSource};
use crate::cli;
use crate::model::options::{ModelArgs, temperature};
use crate::model::provider::Provider;

/// A configuration with every key.
const SAMPLE: &str = include_str!("../../../gateway.toml");

/// `[agent]` as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AgentKeys {
    #[serde(deserialize_with = "filled")]
    id: Option<String>,
    #[serde(deserialize_with = "provider")]
    provider: Option<Provider>,
    #[serde(deserialize_with = "filled")]
    model: Option<String>,
    #[serde(deserialize_with = "filled")]
    base_url: Option<String>,
    #[serde(deserialize_with = "filled")]
    api_key: Option<String>,
    key_file: Option<PathBuf>,
    model_header: Vec<String>,
    max_tokens: Option<u32>,
    #[serde(deserialize_with = "heat")]
    temperature: Option<f64>,
    context_tokens: Option<usize>,
    #[serde(deserialize_with = "timeout")]
    model_timeout: Option<Duration>,
    system_prompt: Option<String>,
    soul_path: Option<PathBuf>,
    tools: Vec<String>,
    catch_all: Option<bool>,
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
                key: keys.api_key.map(Secret::new),
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
        let text = filled(deserializer)?.unwrap_or_default();
        Ok(match &*text {
            ":memory:" => Self::Memory,
            _ => Self::Folder(text.into()),
        })
    }
}

impl<'de> Deserialize<'de> for PluginSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = filled(deserializer)?.unwrap_or_default();
        Ok(match text.strip_prefix("builtin:") {
            Some(name) => Self::Builtin(name.to_owned()),
            None => Self::File(text.into()),
        })
    }
}

/// A text that is not blank.
pub(crate) fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    match text.trim() {
        "" => Err(D::Error::custom("is empty")),
        _ => Ok(Some(text)),
    }
}

pub(crate) fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Ok(filled(from)?.map(Secret::new))
}

fn provider<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Provider>, D::Error> {
    let text = String::deserialize(from)?;
    Provider::read(&text).map(Some).map_err(D::Error::custom)
}

fn heat<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(from)?.to_string();
    temperature(&number).map(Some).map_err(D::Error::custom)
}

/// A time as people write it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a time is a number or a text")]
enum Time {
    Seconds(f64),
    Text(String),
}

/// A time with its unit.
fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let time = match Time::deserialize(from)? {
        Time::Text(text) => cli::timeout(&text),
        Time::Seconds(number) => Err(format!("write it with its unit: \"{number}s\"")),
    };
    time.map(Some).map_err(D::Error::custom)
}

/// When a file is on the disk.
pub(crate) fn fsync<'de, D: Deserializer<'de>>(from: D) -> Result<Fsync, D::Error> {
    let text = String::deserialize(from)?;
    crate::fsync::fsync(&text).map_err(D::Error::custom)
}

/// Seconds, with or without a fraction.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let seconds = match Time::deserialize(from)? {
        Time::Seconds(number) => Duration::try_from_secs_f64(number)
            .map_err(|_| "must be a number of seconds from 0 upwards".to_owned()),
        Time::Text(text) => Err(match cli::duration(&text) {
            Ok(time) => format!("write it as a number of seconds: {}", time.as_secs_f64()),
            Err(_) => "write a number of seconds".to_owned(),
        }),
    };
    seconds.map(Some).map_err(D::Error::custom)
}

/// The places of all keys and values of a file, by paths like `plugins.0.name`.
struct KeySpans(Vec<KeySpan>);

struct KeySpan {
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

impl KeySpans {
    fn add(&mut self, path: String, key: Range<usize>, value: &toml::Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.table(&format!("{path}."), table),
            DeValue::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    self.add(format!("{path}.{number}"), item.span(), item);
                }
            }
            _ => {}
        }
        let value = value.span();
        self.0.push(KeySpan { path, key, value });
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            self.add(format!("{prefix}{}", key.get_ref()), key.span(), value);
        }
    }

    fn get(&self, path: &str) -> Option<&KeySpan> {
        self.0.iter().find(|place| place.path == path)
    }

    /// The path of the value at this place.
    fn path_at(&self, at: &Range<usize>) -> Option<&str> {
        let found = self.0.iter().find(|place| place.value == *at);
        found.map(|place| &*place.path)
    }
}

/// The message of a wrong type, without names of Rust's.
fn in_words(message: &str) -> String {
    let Some((what, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 upwards",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" => "a text between quotes",
        "a sequence" => "a list, such as [\"a\"]",
        it if it.starts_with("struct ") || it == "a map" => "a table",
        other => other,
    };
    format!("{what}, expected {expected}")
}

/// The message about a key that does not exist, with the nearest one that does. The sample has them all.
fn unknown_key(path: &str) -> String {
    let parts = path.split('.');
    let plain: Vec<_> = parts.filter(|it| it.parse::<usize>().is_err()).collect();
    let plain = plain.join(".");
    let mut known = Vec::new();
    let mut table = "";
    for line in SAMPLE.lines().map(|line| line.trim_start_matches('#')) {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_matches(['[', ']']);
            known.push(table.to_owned());
        } else if let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| !key.contains(' '))
        {
            known.push(format!("{table}.{key}"));
        }
    }
    let known = known.iter().map(|it| (damerau_levenshtein(it, &plain), it));
    let message = format!("unknown key {}", quoted(path));
    let name = plain.rsplit('.').next().unwrap_or_default().chars().count();
    let nearest = known.min().filter(|(far, _)| *far <= name.min(9) / 3);
    match nearest {
        Some((_, nearest)) => format!("{message}; did you mean `{nearest}`?"),
        None => message,
    }
}

/// What is wrong with a configuration whose types are right, with the byte of each mistake.
struct Checks<'a> {
    places: &'a KeySpans,
    origin: &'a Origin,
    errors: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
}

impl Checks<'_> {
    /// The byte of a value, or of a part of the file that it would be in.
    fn at(&self, path: &str) -> usize {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return place.value.start;
            }
            match path.rsplit_once('.') {
                Some((table, _)) => path = table,
                None => return 0,
            }
        }
    }

    fn error(&mut self, path: &str, why: impl Display) {
        self.errors.push((self.at(path), format!("{path}: {why}")));
    }

    fn within(&mut self, path: &str, value: Option<u64>, range: RangeInclusive<u64>) {
        if let Some(is) = value.filter(|value| !range.contains(value)) {
            let (from, to) = (range.start(), range.end());
            self.error(path, format_args!("must be from {from} to {to}, is `{is}`"));
        }
    }

    /// A path of a file, which starts at the folder of the configuration.
    fn file(&mut self, path: &str, file: Option<&mut PathBuf>) {
        let Some(file) = file else { return };
        match file.to_str().and_then(|text| self.origin.resolve(text)) {
            Some(resolved) => *file = resolved,
            None => self.error(path, "`~` is unknown, since HOME is not set"),
        }
    }

    fn gateway(&mut self, config: &mut Config) {
        let gateway = &mut config.gateway;
        let has_port = gateway.bind.matches(':').count() == 1;
        let is_odd = gateway.bind.contains([' ', '\t', '\n', '/']);
        if gateway.bind.trim().is_empty() || is_odd || has_port {
            let is = quoted(&gateway.bind);
            self.error(
                "gateway.bind",
                format_args!("{is} is not an address to listen on"),
            );
        }
        for (number, origin) in gateway.allowed_origins.iter().enumerate() {
            if let Err(error) = Guards::default().with_allowed_origin(origin) {
                self.error(&format!("gateway.allowed_origins.{number}"), error);
            }
        }
        for (number, host) in gateway.allowed_hosts.iter().enumerate() {
            if let Err(error) = Guards::default().with_allowed_host(host) {
                self.error(&format!("gateway.allowed_hosts.{number}"), error);
            }
        }
        let most = Some(gateway.max_connections as u64);
        self.within("gateway.max_connections", most, 1..=1_000_000);
        if self.places.get("gateway.data_dir").is_none() {
            gateway.data = self.origin.default_data();
        } else if let DataDir::Folder(folder) = &mut gateway.data {
            self.file("gateway.data_dir", Some(folder));
        }
    }

    fn agent(&mut self, agent: &mut AgentConfig) {
        let rounds = agent.max_tool_rounds as u64;
        let model = &mut agent.model;
        for (path, value, most) in [
            ("agent.max_tool_rounds", Some(rounds), 1000),
            (
                "agent.max_tokens",
                model.max_tokens.map(u64::from),
                u32::MAX.into(),
            ),
            (
                "agent.context_tokens",
                model.context_tokens.map(|it| it as u64),
                u64::MAX,
            ),
        ] {
            self.within(path, value, 1..=most);
        }
        if let Some(provider) = model.provider
            && model.model_name().is_empty()
        {
            let why = format!("is missing, `{provider}` needs it");
            self.error("agent.model", why);
        }
        self.file("agent.key_file", model.key_file.as_mut());
        for header in &mut model.model_header {
            let mut file = header.expose().strip_prefix('@').map(PathBuf::from);
            self.file("agent.model_header", file.as_mut());
            if let Some(file) = file {
                *header = format!("@{}", file.display()).into();
            }
        }
        self.file("agent.soul_path", agent.soul_path.as_mut());
    }

    fn plugins(&mut self, config: &mut Config) {
        let mut names = HashSet::new();
        for (number, plugin) in config.plugins.iter_mut().enumerate() {
            let path = |key: &str| format!("plugins.{number}.{key}");
            if plugin.name.trim().is_empty() {
                self.error(&path("name"), "is empty");
            } else if !names.insert(plugin.name.clone()) {
                let is = quoted(&plugin.name);
                self.error(&path("name"), format_args!("another plugin is called {is}"));
            }
            if let PluginSource::File(file) = &mut plugin.source {
                self.file(&path("path"), Some(file));
            }
            let hour = Duration::from_secs(3600);
            if plugin.timeout.is_some_and(|it| it.is_zero() || it > hour) {
                self.error(
                    &path("timeout_seconds"),
                    "must be more than 0 and at most 3600",
                );
            }
            self.within(
                &path("memory_mb"),
                plugin.memory_mb.map(u64::from),
                1..=4096,
            );
        }
    }

    fn bindings(&mut self, config: &Config) {
        let mut seen = HashMap::new();
        for (number, binding) in config.bindings.iter().enumerate() {
            let path = format!("bindings.{number}");
            let it = binding;
            let named = [
                &it.channel,
                &it.account_id,
                &it.peer_id,
                &it.guild_id,
                &it.team_id,
            ];
            if it.agent_id.trim().is_empty() {
                self.error(&format!("{path}.agent_id"), "is empty");
            }
            if named.iter().all(|name| name.is_none()) {
                let keys = "channel, account_id, peer_id, guild_id, team_id";
                self.error(&path, format_args!("names none of {keys}"));
                continue;
            }
            match seen.entry(named) {
                Entry::Occupied(first) => {
                    let first = first.get();
                    let why =
                        format!("{path}: is never used, bindings.{first} names the same chats");
                    self.warnings.push((self.at(&path), why));
                }
                Entry::Vacant(place) => {
                    place.insert(number);
                }
            }
        }
    }
}

/// Reads a whole file.
pub(super) fn read(text: &str, origin: &Origin) -> Result<Loaded, ConfigError> {
    let invalid = |errors| ConfigError::Invalid(sorted(errors, text, origin.file()));
    let whole = |at: Option<Range<usize>>| at.map_or(0, |at| at.start);
    let document = DeTable::parse(text)
        .map_err(|error| invalid(vec![(whole(error.span()), error.message().to_owned())]))?;
    let mut places = KeySpans(Vec::new());
    places.table("", document.get_ref());
    let mut unknown = Vec::new();
    let reader = toml::Deserializer::from(document);
    let config = serde_ignored::deserialize(reader, |path| unknown.push(path.to_string()));
    let mut config: Config = config.map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        let message = in_words(error.message());
        let message = match places.path_at(&at) {
            Some(path) => format!("{path}: {message}"),
            None => message,
        };
        invalid(vec![(at.start, message)])
    })?;
    let mut checks = Checks {
        places: &places,
        origin,
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    for path in &unknown {
        let at = checks.places.get(path).map_or(0, |place| place.key.start);
        match &**path {
            "gateway.token" => {
                let why = "has no effect here; the token comes from --token or EXOCLAW_TOKEN, so that it stays out of files";
                checks.errors.push((at, format!("{path}: {why}")));
            }
            "nats.password" | "nats.token" | "nats.nkey" | "nats.creds" => {
                let why = format!("{path}: has no effect here; write {path}_file");
                checks.errors.push((at, why));
            }
            "memory.semantic_enabled" => {
                let why = format!(
                    "{path}: has no effect; the model gets what was said, and no facts from it"
                );
                checks.warnings.push((at, why));
            }
            _ => checks.warnings.push((at, unknown_key(path))),
        }
    }
    let unknown = checks.warnings.len();
    checks.gateway(&mut config);
    checks.agent(&mut config.agent);
    checks.plugins(&mut config);
    checks.bindings(&config);
    let window = config.memory.episodic_window.map(|turns| turns as u64);
    checks.within("memory.episodic_window", window, 0..=100);
    let nats = &mut config.nats;
    checks.within("nats.replicas", nats.replicas.map(u64::from), 1..=5);
    checks.within(
        "nats.lease",
        nats.lease.map(|lease| lease.as_secs()),
        2..=300,
    );
    checks.file("nats.password_file", nats.password_file.as_mut());
    checks.file("nats.token_file", nats.token_file.as_mut());
    checks.file("nats.nkey_file", nats.nkey_file.as_mut());
    checks.file("nats.creds_file", nats.creds_file.as_mut());
    checks.file("nats.ca", nats.ca.as_mut());
    if !checks.errors.is_empty() {
        // A misspelt key may be why another one is missing.
        checks.errors.extend(checks.warnings.drain(..unknown));
        return Err(invalid(checks.errors));
    }
    let warnings = sorted(checks.warnings, text, origin.file());
    Ok(Loaded { config, warnings })
}
