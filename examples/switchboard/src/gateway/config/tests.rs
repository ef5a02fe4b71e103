//! What files are understood, and what is said of the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::model::provider::Provider;
use crate::scratch::Folder;

mod any_text;
mod nats;

fn origin() -> Origin {
    Origin {
        file: "/etc/gate/config.toml".into(),
        home: Some("/anna".into()),
    }
}

fn read(text: &str) -> Config {
    Config::parse(text, &origin()).unwrap_or_else(|error| panic!("{error}"))
}

/// The message about a wrong text, without the name of the file.
fn error(text: &str) -> String {
    let error = Config::parse(text, &origin()).unwrap_err().to_string();
    let short = error.strip_prefix("/etc/gate/config.toml:").unwrap();
    short.to_owned()
}

#[test]
fn an_empty_file_has_all_defaults() {
    let config = read("");
    let mut expected = Config::default();
    expected.gateway.data = DataDir::Folder("/etc/gate".into());
    assert_eq!(config, expected);
    assert_eq!(config.gateway.port, 7200);
    assert_eq!(config.gateway.bind, "127.0.0.1");
    assert_eq!(config.agent.id, "default");
    assert_eq!(config.agent.model.model_name(), "scripted");
    assert_eq!(config.agent.max_tool_rounds, 10);
    assert!(config.agent.catch_all && !config.gateway.extensions);
    assert_eq!(config.memory.episodic_window, None);
    assert_eq!(config.budgets, BudgetConfig::default());
}

const FULL: &str = r#"
[gateway]
port = 0
bind = "::1"
allowed_origins = ["https://app.example.org", "http://localhost:5173"]
allowed_hosts = ["gate.example.org"]
max_connections = 20
data_dir = "~/data"
fsync = "1.5s"
extensions = true

[agent]
id = "home"
provider = "anthropic"
base_url = "http://h"
api_key = "sk-secret"
key_file = "a.key"
model_header = ["a: b", "@h"]
max_tokens = 1_000
temperature = 0.5
context_tokens = 9000
model_timeout = "60s"
system_prompt = "Be brief."
soul_path = "soul.md"
tools = ["echo"]
catch_all = false
max_tool_rounds = 3

[[plugins]]
name = "echo"
path = "builtin:echo"

[[plugins]]
name = "weather"
path = "plugins/weather.wasm"
capabilities = ["http:api.example.org"]
timeout_seconds = 2.5
memory_mb = 16

[[bindings]]
agent_id = "home"
peer_id = "p"

[[bindings]]
agent_id = "work"
channel = "c"
account_id = "a"
guild_id = "g"
team_id = "t"

[budgets]
session = 10
daily = 0
monthly = 0x10

[memory]
episodic_window = 0
semantic = false
"#;

#[test]
fn every_key_is_read() {
    let config = read(FULL);
    let gateway = GatewayConfig {
        port: 0,
        bind: "::1".to_owned(),
        allowed_origins: vec![
            "https://app.example.org".to_owned(),
            "http://localhost:5173".to_owned(),
        ],
        allowed_hosts: vec!["gate.example.org".to_owned()],
        max_connections: 20,
        data: DataDir::Folder("/anna/data".into()),
        fsync: Fsync::Every(Duration::from_millis(1500)),
        extensions: true,
    };
    assert_eq!(config.gateway, gateway);
    let agent = AgentConfig {
        id: "home".to_owned(),
        model: ModelArgs {
            provider: Some(Provider::Anthropic),
            base_url: Some("http://h".to_owned()),
            key: Some("sk-secret".into()),
            key_file: Some("/etc/gate/a.key".into()),
            model_header: vec!["a: b".into(), "@/etc/gate/h".into()],
            max_tokens: Some(1000),
            temperature: Some(0.5),
            context_tokens: Some(9000),
            model_timeout: Some(Duration::from_secs(60)),
            ..ModelArgs::default()
        },
        system_prompt: Some("Be brief.".to_owned()),
        soul_path: Some("/etc/gate/soul.md".into()),
        tools: vec!["echo".to_owned()],
        catch_all: false,
        max_tool_rounds: 3,
    };
    assert_eq!(config.agent, agent);
    let [echo, weather] = config.plugins.as_slice() else {
        panic!("{:?}", config.plugins);
    };
    assert_eq!(echo.source, PluginSource::Builtin("echo".to_owned()));
    assert_eq!((echo.timeout, echo.memory_mb), (None, None));
    let path = PathBuf::from("/etc/gate/plugins/weather.wasm");
    assert_eq!(weather.source, PluginSource::File(path));
    assert_eq!(weather.capabilities, ["http:api.example.org"]);
    assert_eq!(weather.timeout, Some(Duration::from_millis(2500)));
    assert_eq!(weather.memory_mb, Some(16));
    let [first, second] = config.bindings.as_slice() else {
        panic!("{:?}", config.bindings);
    };
    let expected = BindingConfig {
        agent_id: "home".to_owned(),
        peer_id: Some("p".to_owned()),
        ..BindingConfig::default()
    };
    assert_eq!(*first, expected);
    let expected = BindingConfig {
        agent_id: "work".to_owned(),
        channel: Some("c".to_owned()),
        account_id: Some("a".to_owned()),
        peer_id: None,
        guild_id: Some("g".to_owned()),
        team_id: Some("t".to_owned()),
    };
    assert_eq!(*second, expected);
    let budgets = BudgetConfig {
        session: Some(10),
        daily: Some(0),
        monthly: Some(16),
    };
    assert_eq!(config.budgets, budgets);
    assert_eq!(config.memory.episodic_window, Some(0));
    assert!(!config.memory.semantic && read("").memory.semantic);
    // As the known gateway's files have it.
    assert!(!read("[memory]\nsemantic_enabled = false").memory.semantic);
}

#[test]
fn a_key_is_never_printed() {
    let config = read(FULL);
    assert!(!format!("{config:?}").contains("sk-secret"));
    for text in [
        "[agent]\napi_key = [\"sk-secret\"]",
        "[agent]\nprovider = \"scripted\"\napi_key = \"sk-secret\"\nmax_tokens = 0",
        "[agent]\napi_key = \"sk-secret\nid = 1",
        "[agent]\napi_key = \"sk-secret\"\napi_key = \"sk-secret\"",
        "[agent]\napi_key = sk-secret",
        "[agent]\nmodel_header = \"sk-secret\"",
        "[agent]\napi_kye = \"sk-secret\"",
    ] {
        let error = error(text);
        assert!(!error.contains("sk-secret"), "{error}");
    }
}

#[test]
fn reports_the_place_of_a_wrong_value_and_what_is_expected() {
    for (text, expected) in [
        (
            "[gateway]\nport = 70000",
            "2:8: gateway.port: must be a whole number from 0 to 65535",
        ),
        (
            "[gateway]\nallowed_hosts = [7]",
            "2:18: gateway.allowed_hosts: invalid type: integer `7`, expected a string",
        ),
        (
            "[gateway]\nbind = \"localhost:7200\"",
            "2:8: gateway.bind: must be a host name or an address, without a port",
        ),
        (
            "[gateway]\nmax_connections = 0",
            "2:19: gateway.max_connections: must be a whole number from 1 to 1000000",
        ),
        ("[agent]\nid = \" \"", "2:6: agent.id: is empty"),
        (
            "[agent]\nprovider = \"gemini\"",
            "2:12: agent.provider: unknown provider 'gemini'; choose one of scripted, openai, anthropic, ollama, vllm",
        ),
        (
            "[agent]\ntemperature = 3",
            "2:15: agent.temperature: write a number from 0 to 2, like 0.7",
        ),
        (
            "[agent]\nmax_tool_rounds = 2000",
            "2:19: agent.max_tool_rounds: must be a whole number from 1 to 1000",
        ),
        (
            "[agent]\nmodel_timeout = \"1h\"",
            "2:17: agent.model_timeout: write seconds like 30 or 0.5s, or milliseconds like 250ms",
        ),
        (
            "[agent]\ncatch_all = 1",
            "2:13: agent.catch_all: invalid type: integer `1`, expected a boolean",
        ),
        (
            "[[plugins]]\nname = \"one\"",
            "1:1: plugins: missing field `path`",
        ),
        (
            "[[plugins]]\ntimeout_seconds = 0",
            "2:19: plugins.timeout_seconds: must be from 1ms to 3600s",
        ),
        (
            "[[bindings]]\nchannel = \"\"",
            "2:11: bindings.channel: is empty",
        ),
        (
            "[memory]\nepisodic_window = 101",
            "2:19: memory.episodic_window: must be a whole number from 0 to 100",
        ),
        (
            "agent = 1",
            "1:9: agent: invalid type: integer `1`, expected a table",
        ),
        (
            "plugins = 5",
            "1:11: plugins: invalid type: integer `5`, expected a sequence",
        ),
    ] {
        assert_eq!(error(text), expected);
    }
    let negative = error("[budgets]\ndaily = -1");
    let expected = "2:9: budgets.daily: must be a whole number from 0 to ";
    assert!(negative.starts_with(expected), "{negative}");
}

#[test]
fn a_time_is_a_number_of_seconds_or_has_a_unit() {
    for (text, millis) in [
        ("45", 45_000),
        ("2.5", 2500),
        ("\"45s\"", 45_000),
        ("\"250ms\"", 250),
    ] {
        let config = read(&format!("[agent]\nmodel_timeout = {text}"));
        let expected = Duration::from_millis(millis);
        assert_eq!(config.agent.model.model_timeout, Some(expected), "{text}");
    }
}

#[test]
fn an_unknown_key_or_table_is_an_error_that_names_the_known_ones() {
    for (text, place, known) in [
        ("prot = 1", "1:1: unknown field `prot`", "`gateway`"),
        (
            "\n[budget]\ndaily = 5",
            "2:2: unknown field `budget`",
            "`budgets`",
        ),
        (
            "[gateway]\nPort = 1",
            "2:1: gateway: unknown field `Port`",
            "`port`",
        ),
        (
            "[agent.fallback]\nid = 1",
            "1:8: agent: unknown field `fallback`",
            "`model`",
        ),
        (
            "[[plugins]]\ncapability = []",
            "2:1: plugins: unknown field `capability`",
            "`capabilities`",
        ),
        (
            "[budgets]\ndialy = 5",
            "2:1: budgets: unknown field `dialy`",
            "`daily`",
        ),
        // It would protect nothing, and is in no message.
        (
            "[gateway]\ntoken = \"hunter2\"",
            "2:1: gateway: unknown field `token`",
            "EXOCLAW_TOKEN",
        ),
    ] {
        let error = error(text);
        assert!(error.starts_with(place), "{error}");
        assert!(
            error.contains(known) && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn reports_where_a_text_is_not_toml() {
    for (text, start) in [
        ("[gateway\nport = 1", "1:9: "),
        ("[agent]\nid = \"ä\" \"b\"", "2:10: "),
        ("port = ", "1:8: "),
        ("a = 1\na = 2", "2:1: duplicate key"),
    ] {
        let error = error(text);
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn paths_start_at_the_file_or_at_home() {
    let origin = origin();
    for (path, expected) in [
        ("a/b", "/etc/gate/a/b"),
        ("/a", "/a"),
        ("~", "/anna"),
        ("~/a", "/anna/a"),
        ("~//a", "/anna/a"),
        ("~bob/a", "/etc/gate/~bob/a"),
    ] {
        assert_eq!(
            origin.resolve(path),
            Some(PathBuf::from(expected)),
            "{path}"
        );
    }
    let homeless = Origin {
        file: "config.toml".into(),
        home: None,
    };
    assert_eq!(homeless.resolve("~/a"), None);
    let error = Config::parse("[agent]\nsoul_path = \"~/s\"", &homeless).unwrap_err();
    let expected = "config.toml: ~/s: `~` is unknown, since HOME is not set";
    assert_eq!(error.to_string(), expected);
    let data = |text| Config::parse(text, &homeless).unwrap().gateway.data;
    assert_eq!(data(""), DataDir::Folder(".".into()));
    assert_eq!(data("[gateway]\ndata_dir = \":memory:\""), DataDir::Memory);
}

#[test]
fn the_file_is_named_by_argument_then_variable_then_home() {
    let folder = Folder::new();
    let home = folder.path().to_str().unwrap().to_owned();
    let path = |name: &str| folder.path().join(name);
    let load = |named: Option<&Path>, variable: Option<&Path>| {
        Config::load(named, |name| match name {
            "HOME" => Some(home.clone()),
            PATH_VARIABLE => variable.map(|path| path.to_str().unwrap().to_owned()),
            _ => None,
        })
    };
    // Nothing is there: only a file of the command line has to be.
    let config = load(None, None).unwrap().config;
    assert_eq!(config.gateway.data, DataDir::Folder(path(".exoclaw")));
    assert_eq!(config.gateway.port, DEFAULT_PORT);
    for missing in [
        load(Some(&path("a")), None),
        load(Some(&path("a")), Some(&path("b"))),
    ] {
        let error = missing.unwrap_err().to_string();
        let start = format!("cannot read {}: ", path("a").display());
        assert!(error.starts_with(&start), "{error}");
    }
    assert!(load(None, None).unwrap().warnings.is_empty());
    let warned = load(None, Some(&path("a"))).unwrap();
    assert_eq!(warned.config.gateway.port, DEFAULT_PORT);
    assert_eq!(warned.config.gateway.data, DataDir::Folder(path("")));
    let [warning] = &warned.warnings[..] else {
        panic!("{:?}", warned.warnings);
    };
    let start = format!(
        "EXOCLAW_CONFIG names {}, which does not exist",
        path("a").display()
    );
    assert!(warning.starts_with(&start), "{warning}");
    fs::create_dir(path(".exoclaw")).unwrap();
    for (name, port) in [(".exoclaw/config.toml", 1), ("a", 2), ("b", 3)] {
        fs::write(path(name), format!("[gateway]\nport = {port}")).unwrap();
    }
    let port = |named: Option<&Path>, variable: Option<&Path>| {
        load(named, variable).unwrap().config.gateway.port
    };
    assert_eq!(port(None, None), 1);
    assert_eq!(port(None, Some(&path("a"))), 2);
    assert_eq!(port(Some(&path("b")), Some(&path("a"))), 3);
    assert_eq!(port(None, Some(Path::new(""))), 1);
    let homeless = Config::load(None, |_| None).unwrap();
    assert_eq!(homeless.config, Config::default());
}

#[test]
fn reports_a_file_that_is_not_text() {
    let folder = Folder::new();
    let load = |path: &Path| Config::load(Some(path), |_| None).unwrap_err().to_string();
    assert!(load(folder.path()).contains(": Is a directory"));
    let path = folder.path().join("c.toml");
    fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(load(&path).contains(": it is larger than 1048576 bytes; "));
    fs::write(&path, b"a = \"\xff\"").unwrap();
    assert!(load(&path).starts_with("cannot read "));
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let path = folder.path().join("c.toml");
    fs::write(&path, "[agent]\napi_key = \"k\"").unwrap();
    let warnings = |mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Config::load(Some(&path), |_| None).unwrap().warnings.len()
    };
    assert_eq!(warnings(0o600), 0);
    assert_eq!(warnings(0o640), 1);
    fs::write(&path, "[agent]").unwrap();
    assert_eq!(warnings(0o644), 0);
}

#[test]
fn an_empty_file_is_reported() {
    let folder = Folder::new();
    let path = folder.path().join("c.toml");
    let warnings = |text| {
        fs::write(&path, text).unwrap();
        let loaded = Config::load(Some(&path), |_| None).unwrap();
        loaded.warnings.concat()
    };
    assert_eq!(warnings("# all defaults"), "");
    for empty in ["", " \n"] {
        assert!(warnings(empty).ends_with("is empty; everything has its default"));
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows_are_understood() {
    let config = read("\u{feff}[gateway]\r\nport = 5\r\n");
    assert_eq!(config.gateway.port, 5);
}

#[test]
fn reports_a_long_or_odd_text_briefly() {
    let long = format!("\"\u{202e}{}\" = 1", "x".repeat(100_000));
    let error = error(&long);
    assert!(
        error.starts_with("1:1: unknown field `\\u{202e}xxx"),
        "{error}"
    );
    assert!(error.chars().count() < 450, "{error}");
    for deep in [
        "[".repeat(100_000),
        format!("{{ {} }}", "a.b = 1, ".repeat(5000)),
    ] {
        assert!(Config::parse(&format!("a = {deep}"), &origin()).is_err());
    }
}
