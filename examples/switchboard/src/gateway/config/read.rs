//! Reading and checking the sections of the file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::net::server::Guards;
use toml::de::DeTable;

use super::load::{Loaded, Origin};
use super::problem::{ConfigError, Notes, quoted};
use super::table::{Found, Table};
use super::{
    AgentConfig, BindingConfig, BudgetConfig, Config, DataDir, GatewayConfig, MemoryConfig,
    PluginConfig, PluginSource,
};
use crate::cli::{self, NatsSettings};
use crate::gateway::usage::Price;
use crate::model::options::{ModelArgs, temperature};
use crate::model::provider::Provider;

/// Largest number that TOML can write.
const MOST: u64 = i64::MAX as u64;
/// Longest time of a plugin's call: an hour.
const MAX_TIMEOUT: f64 = 3600.0;
/// The value of `data_dir` that keeps nothing.
const IN_MEMORY: &str = ":memory:";

/// The keys of each table, to recognise a key in the wrong one.
pub(super) const SECTIONS: [(&str, &[&str]); 5] = [
    (
        "gateway",
        &[
            "port",
            "bind",
            "allowed_origins",
            "allowed_hosts",
            "max_connections",
            "data_dir",
            "extensions",
        ],
    ),
    (
        "agent",
        &[
            "id",
            "provider",
            "model",
            "base_url",
            "api_key",
            "key_file",
            "max_tokens",
            "temperature",
            "context_tokens",
            "model_timeout",
            "system_prompt",
            "soul_path",
            "tools",
            "catch_all",
            "max_tool_rounds",
            "input_price",
            "output_price",
            "fallback",
        ],
    ),
    ("budgets", &["session", "daily", "monthly"]),
    ("memory", &["episodic_window", "semantic_enabled"]),
    (
        "nats",
        &[
            "url",
            "prefix",
            "replicas",
            "user",
            "password_file",
            "token_file",
            "nkey_file",
            "ca",
            "lease",
        ],
    ),
];

/// Returns the right table of a key that is in the wrong one.
fn elsewhere(key: &str) -> Option<String> {
    let mut sections = SECTIONS.iter();
    let (section, _) = sections.find(|(_, keys)| keys.contains(&key))?;
    Some(format!("{section}.{key}"))
}

/// Reads a whole file.
pub(super) fn read(text: &str, origin: &Origin) -> Result<Loaded, ConfigError> {
    let mut notes = Notes::default();
    let mut config = Config::default();
    config.gateway.data = origin.default_data();
    match DeTable::parse(text) {
        Ok(document) => {
            let entries = document.get_ref();
            let mut root = Table::new(String::new(), entries, 0..0);
            let mut reader = Reader {
                notes: &mut notes,
                origin,
            };
            reader.root(&mut root, &mut config);
            root.finish(&mut notes, elsewhere);
        }
        Err(error) => notes.error(&error.span().unwrap_or(0..0), error.message()),
    }
    let (errors, warnings) = notes.finish(text, origin.file());
    if errors.is_empty() {
        Ok(Loaded { config, warnings })
    } else {
        Err(ConfigError::Invalid(errors))
    }
}

struct Reader<'n> {
    notes: &'n mut Notes,
    origin: &'n Origin,
}

/// Sets a value, if there is one.
fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// Returns a value that was read, or reports why it is invalid.
fn checked<T>(
    table: &Table<'_, '_>,
    notes: &mut Notes,
    key: &str,
    at: &Range<usize>,
    read: Result<T, String>,
) -> Option<T> {
    read.map_err(|why| notes.error(at, format!("{}: {why}", table.path(key))))
        .ok()
}

fn value<T>(found: Option<Found<T>>) -> Option<T> {
    found.map(|found| found.value)
}

fn values<T>(found: Vec<Found<T>>) -> Vec<T> {
    found.into_iter().map(|found| found.value).collect()
}

impl Reader<'_> {
    fn root(&mut self, root: &mut Table<'_, '_>, config: &mut Config) {
        if let Some(table) = root.table(self.notes, "gateway") {
            self.gateway(table, &mut config.gateway);
        }
        if let Some(table) = root.table(self.notes, "agent") {
            self.agent(table, &mut config.agent);
        }
        let mut names = HashMap::new();
        for table in root.tables(self.notes, "plugins") {
            config.plugins.extend(self.plugin(table, &mut names));
        }
        let mut selectors = HashMap::new();
        for table in root.tables(self.notes, "bindings") {
            config.bindings.extend(self.binding(table, &mut selectors));
        }
        if let Some(table) = root.table(self.notes, "budgets") {
            self.budgets(table, &mut config.budgets);
        }
        if let Some(table) = root.table(self.notes, "memory") {
            self.memory(table, &mut config.memory);
        }
        if let Some(table) = root.table(self.notes, "nats") {
            self.nats(table, &mut config.nats);
        }
    }

    fn gateway(&mut self, mut table: Table<'_, '_>, into: &mut GatewayConfig) {
        let notes = &mut *self.notes;
        set(&mut into.port, table.integer(notes, "port", 0..=u16::MAX));
        if let Some(bind) = table.text(notes, "bind") {
            if bind.value.contains(|c: char| c.is_whitespace() || c == '/') {
                let is = quoted(&bind.value);
                let message = format!("gateway.bind: {is} is no address to listen at");
                notes.error(&bind.at, message);
            }
            into.bind = bind.value;
        }
        into.allowed_origins =
            self.guarded(&mut table, "allowed_origins", Guards::with_allowed_origin);
        into.allowed_hosts = self.guarded(&mut table, "allowed_hosts", Guards::with_allowed_host);
        let notes = &mut *self.notes;
        let most = table.integer(notes, "max_connections", 1..=1_000_000);
        set(&mut into.max_connections, most);
        if let Some(data) = table.text(notes, "data_dir") {
            if data.value == IN_MEMORY {
                into.data = DataDir::Memory;
            } else if let Some(folder) = self.file("gateway.data_dir", &data) {
                into.data = DataDir::Folder(folder);
            }
        }
        set(&mut into.extensions, table.bool(self.notes, "extensions"));
        if let Some(at) = table.key_at("token") {
            let message = "gateway.token: has no effect here; the token comes from --token or \
                EXOCLAW_TOKEN, so that it stays out of files";
            self.notes.error(&at, message);
        }
        table.finish(self.notes, elsewhere);
    }

    fn nats(&mut self, mut table: Table<'_, '_>, into: &mut NatsSettings) {
        let notes = &mut *self.notes;
        into.url = value(table.text(notes, "url")).map(Secret::new);
        into.prefix = value(table.text(notes, "prefix"));
        into.replicas = table.integer(notes, "replicas", 1..=5);
        into.user = value(table.text(notes, "user"));
        let lease = table.integer(notes, "lease", 2..=300);
        into.lease = lease.map(Duration::from_secs);
        let files = [
            ("password_file", &mut into.password_file),
            ("token_file", &mut into.token_file),
            ("nkey_file", &mut into.nkey_file),
            ("ca", &mut into.ca),
        ];
        for (key, place) in files {
            if let Some(path) = table.text(self.notes, key) {
                *place = self.file(&table.path(key), &path);
            }
        }
        for key in ["password", "token", "nkey"] {
            if let Some(at) = table.key_at(key) {
                let message = format!("nats.{key}: has no effect here; write nats.{key}_file");
                self.notes.error(&at, message);
            }
        }
        table.finish(self.notes, elsewhere);
    }

    /// Reads a list of items that the guards of the server must accept.
    fn guarded<E: std::fmt::Display>(
        &mut self,
        table: &mut Table<'_, '_>,
        key: &'static str,
        check: impl Fn(Guards, &str) -> Result<Guards, E>,
    ) -> Vec<String> {
        let found = table.strings(self.notes, key);
        for item in &found {
            if let Err(error) = check(Guards::default(), &item.value) {
                let message = format!("{}: {error}", table.path(key));
                self.notes.error(&item.at, message);
            }
        }
        values(found)
    }

    fn agent(&mut self, mut table: Table<'_, '_>, into: &mut AgentConfig) {
        let notes = &mut *self.notes;
        set(&mut into.id, value(table.text(notes, "id")));
        self.model(&mut table, &mut into.model);
        let notes = &mut *self.notes;
        into.system_prompt = value(table.string(notes, "system_prompt"));
        if let Some(path) = table.text(notes, "soul_path") {
            into.soul_path = self.file("agent.soul_path", &path);
        }
        let notes = &mut *self.notes;
        into.tools = values(table.strings(notes, "tools"));
        set(&mut into.catch_all, table.bool(notes, "catch_all"));
        let rounds = table.integer(notes, "max_tool_rounds", 1..=1000);
        set(&mut into.max_tool_rounds, rounds);
        let input = table.number(notes, "input_price");
        let output = table.number(notes, "output_price");
        match (input, output) {
            (Some(input), Some(output)) => into.price = Some(Price::new(input.value, output.value)),
            (Some(one), None) | (None, Some(one)) => {
                let message = "agent: input_price and output_price are only of use together";
                notes.error(&one.at, message);
            }
            (None, None) => {}
        }
        if let Some(at) = table.key_at("fallback")
            && let Some(mut table) = table.table(notes, "fallback")
        {
            let message = "agent.fallback: is checked but not used; an answer that fails is told \
                to the client, who can ask again";
            notes.warn(&at, message);
            self.model(&mut table, &mut ModelArgs::default());
            table.finish(self.notes, |_| None);
        }
        table.finish(self.notes, elsewhere);
    }

    /// Reads the part of an agent that a fallback has too.
    fn model(&mut self, table: &mut Table<'_, '_>, into: &mut ModelArgs) {
        if let Some(path) = table.text(self.notes, "key_file") {
            into.key_file = self.file(&table.path("key_file"), &path);
        }
        let notes = &mut *self.notes;
        let provider = table.text(notes, "provider");
        into.model = value(table.text(notes, "model"));
        into.base_url = value(table.text(notes, "base_url"));
        into.key = value(table.text(notes, "api_key")).map(Secret::new);
        into.max_tokens = table.integer(notes, "max_tokens", 1..=u32::MAX);
        into.context_tokens = table.integer(notes, "context_tokens", 1..=usize::MAX);
        if let Some(number) = table.number(notes, "temperature") {
            let read = temperature(&number.value.to_string());
            into.temperature = checked(table, notes, "temperature", &number.at, read);
        }
        if let Some(text) = table.text(notes, "model_timeout") {
            let read = cli::timeout(&text.value);
            into.model_timeout = checked(table, notes, "model_timeout", &text.at, read);
        }
        let Some(found) = provider else {
            return;
        };
        match found.value.parse::<Provider>() {
            Ok(provider) => into.provider = Some(provider),
            Err(_) => {
                let (path, is) = (table.path("provider"), quoted(&found.value));
                let names = Provider::names();
                let message = format!("{path}: unknown provider {is}; choose one of {names}");
                notes.error(&found.at, message);
            }
        }
        if into.model_name().is_empty() {
            let (path, is) = (table.path("model"), quoted(&found.value));
            notes.error(&table.at(), format!("{path}: is missing, {is} needs it"));
        }
    }

    fn plugin(
        &mut self,
        mut table: Table<'_, '_>,
        names: &mut HashMap<String, Range<usize>>,
    ) -> Option<PluginConfig> {
        let notes = &mut *self.notes;
        let name = table.required(notes, "name");
        let path = table.required(notes, "path");
        let capabilities = values(table.strings(notes, "capabilities"));
        let timeout = table.number(notes, "timeout_seconds").and_then(|found| {
            if found.value > 0.0 && found.value <= MAX_TIMEOUT {
                return Duration::try_from_secs_f64(found.value).ok();
            }
            let path = table.path("timeout_seconds");
            let message = format!("{path}: must be more than 0 and at most {MAX_TIMEOUT}");
            notes.error(&found.at, message);
            None
        });
        let memory_mb = table.integer(notes, "memory_mb", 1..=4096);
        if let Some(name) = &name
            && names.insert(name.value.clone(), name.at.clone()).is_some()
        {
            let (path, is) = (table.path("name"), quoted(&name.value));
            notes.error(&name.at, format!("{path}: another plugin is called {is}"));
        }
        let source = path.and_then(|path| match path.value.strip_prefix("builtin:") {
            Some(builtin) => Some(PluginSource::Builtin(builtin.to_owned())),
            None => self
                .file(&table.path("path"), &path)
                .map(PluginSource::File),
        });
        table.finish(self.notes, |_| None);
        Some(PluginConfig {
            name: name?.value,
            source: source?,
            capabilities,
            timeout,
            memory_mb,
        })
    }

    fn binding(
        &mut self,
        mut table: Table<'_, '_>,
        seen: &mut HashMap<[Option<String>; 5], String>,
    ) -> Option<BindingConfig> {
        let notes = &mut *self.notes;
        let agent_id = table.required(notes, "agent_id");
        let keys = ["channel", "account_id", "peer_id", "guild_id", "team_id"];
        let named = keys.map(|key| value(table.text(notes, key)));
        let (at, name) = (table.at(), table.name().to_owned());
        let tried = keys.iter().any(|key| table.key_at(key).is_some());
        table.finish(notes, |_| None);
        if !tried {
            let message = format!("{name}: names none of {}", keys.join(", "));
            notes.error(&at, message);
            return None;
        }
        match seen.entry(named.clone()) {
            Entry::Occupied(first) => {
                let first = first.get();
                let message = format!("{name}: is never used, {first} names the same chats");
                notes.warn(&at, message);
            }
            Entry::Vacant(place) => {
                place.insert(name);
            }
        }
        let [channel, account_id, peer_id, guild_id, team_id] = named;
        Some(BindingConfig {
            agent_id: agent_id?.value,
            channel,
            account_id,
            peer_id,
            guild_id,
            team_id,
        })
    }

    fn budgets(&mut self, mut table: Table<'_, '_>, into: &mut BudgetConfig) {
        let notes = &mut *self.notes;
        into.session = table.integer(notes, "session", 0..=MOST);
        into.daily = table.integer(notes, "daily", 0..=MOST);
        into.monthly = table.integer(notes, "monthly", 0..=MOST);
        table.finish(notes, elsewhere);
    }

    fn memory(&mut self, mut table: Table<'_, '_>, into: &mut MemoryConfig) {
        let notes = &mut *self.notes;
        let window = table.integer(notes, "episodic_window", 0..=100);
        set(&mut into.episodic_window, window);
        let enabled = table.bool(notes, "semantic_enabled");
        set(&mut into.semantic_enabled, enabled);
        table.finish(notes, elsewhere);
    }

    /// Reads a path, relative to the file.
    fn file(&mut self, key: &str, path: &Found<String>) -> Option<PathBuf> {
        let resolved = self.origin.resolve(&path.value);
        if resolved.is_none() {
            let message = format!("{key}: `~` is unknown, since HOME is not set");
            self.notes.error(&path.at, message);
        }
        resolved
    }
}
