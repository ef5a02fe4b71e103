//! [`Gateway`]: starting a gateway from a configuration.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use exoclaw_proto::Refused;
use exoclaw_proto::auth::{Auth, AuthError, MAX_TOKEN_BYTES, check_bind};
use exoclaw_proto::binding::{Binding, Bindings};
use exoclaw_proto::budget::Budgets;
use exoclaw_proto::limits::WS_PATH;
use exoclaw_proto::net::{Server, ServerHandle, ServerOptions, http_config};
use exoclaw_proto::server::ServerConfig;
use rpc_core::Secret;
use rpc_core::cluster::LeaseConfig;
use rpc_core::net::DrainReport;
use rpc_core::net::server::{Body, Guards, HttpConfig, Listener, ServerLimits};
use rpc_core::net::tls::TlsAcceptor;
use rpc_core::store::{MemoryStore, Store};

pub use self::describe::describe;
use self::model::GatewayModel;
use super::backend::GatewayBackend;
use super::config::{
    BindingConfig, Config, DataDir, GatewayConfig, NatsSettings, PluginConfig, PluginSource,
};
use super::engine::{Engine, EngineParts, unix_seconds};
use super::memory::Soul;
use super::site::{SECRET_VARIABLE, Site};
use super::store::{
    GatewayStore, GatewayStoreConfig, StoreError, empty_file, open_folder, probe, unopened,
};
use super::tool::{self, LoadWarning, PluginEntry, PluginLimits, Tools};
#[cfg(unix)]
use super::usage_socket::UsageSocket;
use crate::cli::{self, Failure, Pings, activated, guards_of, guessable, trusting};
use crate::metrics;
use crate::model::options::ModelArgs;

mod describe;
mod model;
#[cfg(test)]
mod tests;

/// How long replies may go on when the gateway ends.
pub const DRAIN: Duration = Duration::from_secs(30);
/// How long a webhook may take, including its answer: enough for a chat with a few rounds of tools.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(300);
/// The host names that a gateway always accepts.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Settings that are not in the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The token that clients must send. It cannot be in the file.
    pub token: Option<Secret>,
    /// The secret that chat services must send. It cannot be in the file.
    pub webhook_secret: Option<Secret>,
    /// The model and its instructions, in place of the file's.
    pub model: ModelArgs,
    /// The folder of the configuration, which may hold `credentials/<provider>.key`.
    pub folder: Option<PathBuf>,
    /// The certificate and its key; without it, connections are not encrypted.
    pub tls: Option<TlsAcceptor>,
    /// Proxies whose `X-Forwarded-For` names the callers, in place of those of this machine.
    pub proxies: Vec<String>,
    /// The pings to clients, in place of the protocol's.
    pub pings: Pings,
    /// Where everything is kept and shared with other gateways, in place of the data folder.
    pub nats: Option<Arc<dyn Store>>,
    /// With `nats`: after how long a silent gateway counts as gone, in place of the default.
    pub lease: Option<LeaseConfig>,
    /// With `nats`: the most bytes of all sessions, in place of the default.
    pub nats_bytes: Option<u64>,
}

/// A gateway that listens, and serves when [`run`](Self::run) is polled.
#[derive(Debug)]
pub struct Gateway {
    server: Server<GatewayBackend>,
    engine: Arc<Engine>,
    site: Arc<Site>,
    /// The guards of requests.
    pub guards: Guards,
    /// The warnings for the operator.
    pub warnings: Vec<String>,
    /// The model and where it is.
    pub model: String,
    /// The number of replies that the end of the gateway cut off, which is updated while it drains.
    pub cut: Arc<AtomicUsize>,
    #[cfg(unix)]
    usage: Option<UsageSocket>,
}

impl Gateway {
    /// Opens the store, loads the plugins, and listens. `env` reads the environment: keys and
    /// addresses of the providers.
    ///
    /// # Errors
    /// [`Failure`]. The gateway does not listen then.
    ///
    /// # Cancel safety
    /// Dropping the future closes the store again.
    pub async fn start(
        mut config: Config,
        overrides: Overrides,
        env: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Self, Failure> {
        model::with_model(&mut config, &overrides.model);
        let (bind, port) = (config.gateway.bind.clone(), config.gateway.port);
        let auth = access(&config, &overrides)?;
        let mut http = http(&config.gateway, !auth.is_open())?;
        if let Some(tls) = overrides.tls.clone() {
            http.tls = Some(tls);
        }
        let mut http = activated(http)?;
        let guards = trusting(http.guards, &overrides.proxies)?;
        http.guards = guards.clone();
        let prepared = prepare(&config, &overrides, env).await?;
        let GatewayModel {
            model,
            place,
            limits,
        } = prepared.model;
        let (adapters, secret) = (prepared.all, prepared.secret);
        let mut warnings = prepared.warnings;
        for (name, auth) in [
            ("the token", Some(&auth)),
            (SECRET_VARIABLE, secret.as_ref()),
        ] {
            let is_guessable = auth.is_some_and(Auth::is_guessable);
            warnings.extend(is_guessable.then(|| guessable(name)));
        }
        warnings.splice(..0, prepared.problems);
        if secret.is_some() && adapters.adapters().next().is_some() {
            http.limits.handshake_timeout = WEBHOOK_TIMEOUT;
        }
        let store = open(&config, &overrides, &mut warnings).await?;
        #[cfg(unix)]
        let usage = match &config.gateway.data {
            DataDir::Folder(folder) if overrides.nats.is_none() => UsageSocket::bind(folder)
                .map_err(|error| {
                    let what = "`gateway usage` has to wait for the end of this gateway";
                    warnings.push(format!(
                        "{what}: no socket in {}: {error}",
                        folder.display()
                    ));
                })
                .ok(),
            _ => None,
        };
        let engine = Engine::new(EngineParts {
            router: prepared.router,
            agent: config.agent,
            memory: config.memory,
            model,
            limits,
            plugins: prepared.plugins,
            tools: Arc::new(prepared.tools),
            store,
            clock: unix_seconds,
        });
        let engine = Arc::new(engine);
        let backend = GatewayBackend::new(Arc::clone(&engine), config.gateway.extensions);
        let cut = backend.cut();
        let site = Site::new(Arc::clone(&engine), auth.clone(), adapters, secret);
        let site = Arc::new(site);
        let [served, doors, secrets] = std::array::from_fn(|_| Arc::clone(&site));
        let http = metrics::guard(http)
            .with_guessable_secret(move |parts, _| secrets.guessable(parts))
            .with_authorize(move |parts, _| doors.refusal(parts));
        let http = http.with_http(move |request, _| {
            let site = Arc::clone(&served);
            async move {
                match metrics::respond(&request) {
                    Some(metrics) => metrics.map(Body::from),
                    None => site.respond(request).await,
                }
            }
        });
        let mut connection = ServerConfig::default();
        connection.keep_alive = overrides.pings.over(connection.keep_alive);
        let options = ServerOptions {
            auth,
            connection,
            http,
            shutdown_timeout: DRAIN,
            ..ServerOptions::default()
        };
        let server = Server::bind((host(&bind), port), backend, options).await;
        let server = server.map_err(|error| unbound(&bind, port, &error))?;
        Ok(Self {
            server,
            engine,
            site,
            guards,
            warnings,
            model: place,
            cut,
            #[cfg(unix)]
            usage,
        })
    }

    /// Returns the address of the WebSocket, like `ws://127.0.0.1:7200/ws`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the address of the page, like `http://127.0.0.1:7200/`.
    pub fn page(&self) -> String {
        let url = self.server.url();
        let rest = url.trim_start_matches("ws").trim_end_matches(WS_PATH);
        format!("http{rest}/")
    }

    /// Waits until this gateway cannot come back into its cluster by itself: see
    /// [`GatewayStore::failed`].
    pub fn failed(&self) -> impl Future<Output = rpc_core::store::StoreError> + Send + use<> {
        let engine = Arc::clone(&self.engine);
        async move { engine.failed().await }
    }

    /// Returns a handle that ends the gateway.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until the [handle](Self::handle) drains it, and then finishes pending writes.
    ///
    /// # Cancel safety
    /// Dropping the future drops all connections.
    pub async fn run(self) -> DrainReport {
        #[cfg(unix)]
        let usage = async {
            match &self.usage {
                Some(usage) => usage.serve(&self.engine).await,
                None => std::future::pending().await,
            }
        };
        #[cfg(not(unix))]
        let usage = std::future::pending::<std::convert::Infallible>();
        let report = tokio::select! {
            report = self.server.run() => report,
            never = usage => match never {},
        };
        self.cut
            .fetch_add(self.site.close().await, Ordering::Relaxed);
        self.engine.close().await;
        report
    }
}

/// Opens what the gateway has in its data folder, in memory, or with others on NATS.
async fn open(
    config: &Config,
    overrides: &Overrides,
    warnings: &mut Vec<String>,
) -> Result<Arc<GatewayStore>, Failure> {
    let mut options = GatewayStoreConfig::default().with_budgets(Budgets {
        session: config.budgets.session,
        daily: config.budgets.daily,
        monthly: config.budgets.monthly,
    });
    let store: Arc<dyn Store> = match (&overrides.nats, &config.gateway.data) {
        (Some(nats), _) => {
            options.lease = Some(overrides.lease.unwrap_or_default());
            options.max_bytes = overrides.nats_bytes;
            Arc::clone(nats)
        }
        (None, DataDir::Memory) => Arc::new(MemoryStore::new()),
        (None, DataDir::Folder(folder)) => {
            warnings.extend(empty_file(folder));
            let opened = open_folder(folder, config.gateway.fsync, options, unix_seconds).await;
            let (store, taken_over) = opened.map_err(|error| unopened(folder, &error))?;
            if let Some(words) = taken_over {
                cli::complain(words);
            }
            return Ok(store);
        }
    };
    let opened = GatewayStore::open(store, options, unix_seconds).await;
    opened.map_err(|error| match error {
        StoreError::Store(error) if overrides.nats.is_some() => cli::nats_failure(&error),
        error => Failure::new(error),
    })
}

/// Returns the authentication of a gateway.
fn access(config: &Config, overrides: &Overrides) -> Result<Auth, Failure> {
    let token = overrides.token.clone();
    let auth = token.map_or_else(|| Ok(Auth::open()), Auth::token);
    let checked = auth.and_then(|auth| check_bind(&config.gateway.bind, &auth).map(|()| auth));
    checked.map_err(|error| match error {
        AuthError::TokenRequired => Failure::usage(
            "Auth token required when binding to non-loopback address. Set --token or \
             EXOCLAW_TOKEN env var. Without one, listen on 127.0.0.1.",
        ),
        error => Failure::usage(format_args!(
            "{error} (it comes from --token or EXOCLAW_TOKEN)"
        )),
    })
}

fn unbound(bind: &str, port: u16, error: &io::Error) -> Failure {
    cli::cannot_listen(format_args!("{bind}:{port}"), "--listen", error)
}

/// Returns the address of `bind`, which may be as a URL has it.
fn host(bind: &str) -> &str {
    let inner = bind.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.unwrap_or(bind)
}

/// The parts of a gateway before it opens its store and listens.
struct Prepared {
    model: GatewayModel,
    router: Bindings,
    plugins: Vec<String>,
    /// The tools that the model may use.
    tools: Tools,
    /// All tools, the channel adapters among them.
    all: Tools,
    secret: Option<Auth>,
    /// The problems that make a check fail.
    problems: Vec<String>,
    warnings: Vec<String>,
}

async fn prepare(
    config: &Config,
    overrides: &Overrides,
    env: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Prepared, Failure> {
    if cfg!(not(feature = "nats")) && config.nats != NatsSettings::default() {
        let why = "[nats]: this program was built without feature `nats`";
        return Err(Failure::usage(why));
    }
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    if config.nats != NatsSettings::default() && overrides.nats.is_none() {
        let why = "[nats] names no url, so this gateway shares nothing";
        warnings.push(why.to_owned());
    }
    let agent = &config.agent;
    let model = model::model(config, overrides, env)?;
    if let Err(why) = &model.model {
        problems.push(format!("every chat will fail: {why}"));
    }
    let router = router(config).map_err(Failure::usage)?;
    warnings.extend(odd_bindings(config));
    problems.extend(unanswered(config));
    if let Some(path) = &agent.soul_path {
        let soul = Soul::new(path).load().await;
        warnings.extend(soul.warning.map(|why| format!("[agent] soul_path: {why}")));
    }

    let secret = overrides.webhook_secret.clone();
    let secret = secret.map(Auth::token).transpose();
    let secret = secret.map_err(|_| {
        let why = format_args!("{SECRET_VARIABLE} is empty or longer than {MAX_TOKEN_BYTES} bytes");
        Failure::usage(why)
    })?;
    let (all, found) = tool::load(config.plugins.iter().map(entry)).await;
    for warning in found {
        match warning {
            LoadWarning::Skipped(..) => problems.push(warning.to_string()),
            LoadWarning::NoEffect(..) => warnings.push(warning.to_string()),
        }
    }
    let (tools, unknown) = all.only(&agent.tools);
    for name in unknown {
        warnings.push(format!(
            "[agent] tools names {name:?}, which no plugin has: remove it, or add the plugin"
        ));
    }
    for name in all.adapters().filter(|_| secret.is_none()) {
        warnings.push(format!(
            "/webhook/{name} refuses all requests: set {SECRET_VARIABLE}"
        ));
    }
    let plugins = all.names().map(str::to_owned).collect();
    Ok(Prepared {
        model,
        router,
        plugins,
        tools,
        all,
        secret,
        problems,
        warnings,
    })
}

/// Returns the reasons why every chat would be refused.
fn unanswered(config: &Config) -> impl Iterator<Item = String> {
    let budgets = &config.budgets;
    let nobody = !config.agent.catch_all && config.bindings.is_empty();
    let reasons = [
        (
            nobody,
            "[agent] catch_all is off, and there are no [[bindings]]",
        ),
        (budgets.session == Some(0), "[budgets] session is 0"),
        (budgets.daily == Some(0), "[budgets] daily is 0"),
        (budgets.monthly == Some(0), "[budgets] monthly is 0"),
    ];
    let reasons = reasons.into_iter().filter(|(is_so, _)| *is_so);
    reasons.map(|(_, why)| format!("every chat will fail: {why}"))
}

/// Returns warnings of bindings that do not what they seem to.
fn odd_bindings(config: &Config) -> impl Iterator<Item = String> {
    let (bindings, agent) = (&config.bindings, &config.agent.id);
    let warnings = bindings.iter().enumerate().map(move |(number, binding)| {
        let names = |it: &BindingConfig| BindingConfig {
            agent_id: String::new(),
            ..it.clone()
        };
        let mut before = bindings.iter().take(number);
        let hidden = before.position(|it| names(it) == names(binding));
        let hidden = hidden.map(|first| {
            format!(
                "[[bindings]] number {number} is never used: number {first} names the same chats"
            )
        });
        let named = &binding.agent_id;
        let unknown = (named != agent).then(|| {
            format!(
                "[[bindings]] number {number} names the agent {named:?}, and [agent] is {agent:?}: \
                 its chats get the same model under that name"
            )
        });
        hidden.into_iter().chain(unknown)
    });
    warnings.flatten()
}

/// The result of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Errors to fix: every chat would fail, a plugin cannot be loaded, or no data can be stored.
    pub problems: Vec<String>,
    /// The warnings for the operator.
    pub warnings: Vec<String>,
}

/// Does everything that a start does before it serves, and checks whether data can be stored. The
/// address and the data may be in use by a gateway that runs.
///
/// # Errors
/// [`Failure`]: a gateway would not start.
///
/// # Cancel safety
/// Dropping the future leaves nothing behind.
pub async fn check(
    config: &Config,
    overrides: &Overrides,
    env: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Checked, Failure> {
    http(&config.gateway, overrides.token.is_some())?;
    let Prepared {
        mut problems,
        mut warnings,
        ..
    } = prepare(config, overrides, env).await?;
    access(config, overrides)?;
    let mut runs = false;
    if overrides.nats.is_none()
        && let DataDir::Folder(folder) = &config.gateway.data
    {
        warnings.extend(empty_file(folder));
        match probe(folder).await {
            Ok(in_use) => runs = in_use,
            Err(error) => problems.push(unopened(folder, &error).to_string()),
        }
    }
    let GatewayConfig { bind, port, .. } = &config.gateway;
    let bound = Listener::bind((host(bind), *port)).await;
    let in_use = |error: &io::Error| runs && error.kind() == io::ErrorKind::AddrInUse;
    if let Some(error) = bound.err().filter(|error| !in_use(error)) {
        return Err(unbound(bind, *port, &error));
    }
    Ok(Checked { problems, warnings })
}

/// Returns the HTTP configuration. The gateway's own page works under any host name if there is a
/// token, or if the name is listed.
fn http(config: &GatewayConfig, with_token: bool) -> Result<HttpConfig, Failure> {
    let defaults = http_config();
    let mut guards = defaults.guards.clone();
    let own_page = with_token || !config.allowed_hosts.is_empty();
    guards.same_origin = own_page;
    let mut hosts = config.allowed_hosts.clone();
    if !hosts.is_empty() {
        // The first name replaces the default, which has these.
        hosts.extend(LOOPBACK.map(str::to_owned));
    }
    let given = [
        ("[gateway] allowed_hosts", &*hosts),
        ("[gateway] allowed_origins", &config.allowed_origins),
    ];
    let guards = guards_of(guards, given)?;
    let limits = ServerLimits {
        max_connections: config.max_connections,
        ..ServerLimits::default()
    };
    Ok(HttpConfig {
        guards,
        limits,
        ..defaults
    })
}

/// The routes of a configuration.
pub(super) fn router(config: &Config) -> Result<Bindings, Refused> {
    let bindings = config.bindings.iter().map(|given| {
        let mut binding = Binding::new(&*given.agent_id);
        binding.channel.clone_from(&given.channel);
        binding.account_id.clone_from(&given.account_id);
        binding.peer_id.clone_from(&given.peer_id);
        binding.guild_id.clone_from(&given.guild_id);
        binding.team_id.clone_from(&given.team_id);
        binding
    });
    let everything_else = config.agent.catch_all.then(|| config.agent.id.clone());
    Bindings::new(bindings.collect(), everything_else)
}

fn entry(plugin: &PluginConfig) -> PluginEntry {
    let path = match &plugin.source {
        PluginSource::Builtin(name) => format!("builtin:{name}"),
        PluginSource::File(path) => path.display().to_string(),
    };
    let mut limits = PluginLimits::default();
    if let Some(timeout) = plugin.timeout {
        limits = limits.with_deadline(timeout);
    }
    if let Some(megabytes) = plugin.memory_mb {
        limits = limits.with_memory(u64::from(megabytes) << 20);
    }
    PluginEntry {
        capabilities: plugin.capabilities.clone(),
        limits,
        ..PluginEntry::new(&*plugin.name, path)
    }
}
