//! What files are understood, and what is said of the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::problem::Lines;
use super::read::SECTIONS;
use super::*;
use crate::gateway::store::scratch::Folder;
use crate::model::provider::Provider;

mod any_text;
mod nats;

fn origin() -> Origin {
    Origin::new("/etc/gate/config.toml").with_home(Some("/anna".into()))
}

fn read(text: &str) -> Loaded {
    Config::parse(text, &origin()).unwrap_or_else(|error| panic!("{error}"))
}

/// The configuration of a text without warnings.
fn clean(text: &str) -> Config {
    let loaded = read(text);
    assert_eq!(loaded.warnings, []);
    loaded.config
}

/// The messages about a wrong text, without the name of the file.
fn errors(text: &str) -> Vec<String> {
    match Config::parse(text, &origin()) {
        Ok(loaded) => panic!("accepted: {loaded:?}"),
        Err(ConfigError::Invalid(problems)) => problems.iter().map(short).collect(),
        Err(other) => panic!("{other}"),
    }
}

fn warnings(text: &str) -> Vec<String> {
    read(text).warnings.iter().map(short).collect()
}

fn short(problem: &Problem) -> String {
    let text = problem.to_string();
    let short = text.strip_prefix("/etc/gate/config.toml:").unwrap();
    short.to_owned()
}

#[test]
fn an_empty_file_has_all_defaults() {
    let config = clean("");
    let mut expected = Config::default();
    expected.gateway.data = DataDir::Folder("/etc/gate".into());
    assert_eq!(config, expected);
    assert_eq!(config.gateway.port, 7200);
    assert_eq!(config.gateway.bind, "127.0.0.1");
    assert_eq!(config.agent.id, "default");
    assert_eq!(config.agent.model.model_name(), "scripted");
    assert_eq!(config.agent.max_tool_rounds, 10);
    assert!(config.agent.catch_all && !config.gateway.extensions);
    assert_eq!(config.memory.episodic_window, usize::MAX);
    assert!(config.memory.semantic_enabled);
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
extensions = true

[agent]
id = "home"
provider = "anthropic"
base_url = "http://h"
api_key = "sk-secret"
key_file = "a.key"
max_tokens = 1_000
temperature = 0.5
context_tokens = 9000
model_timeout = "60s"
system_prompt = "Be brief."
soul_path = "soul.md"
tools = ["echo"]
catch_all = false
max_tool_rounds = 3
input_price = 3
output_price = 15.5

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
semantic_enabled = false
"#;

#[test]
fn every_key_is_read() {
    let config = clean(FULL);
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
        price: Some(Price::new(3.0, 15.5)),
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
    assert_eq!(config.memory.episodic_window, 0);
    assert!(!config.memory.semantic_enabled);
}

#[test]
fn a_key_is_never_printed() {
    let config = clean(FULL);
    assert!(!format!("{config:?}").contains("sk-secret"));
    for text in [
        "[agent]\napi_key = [\"sk-secret\"]",
        "[agent]\nprovider = \"scripted\"\napi_key = \"sk-secret\"\nmax_tokens = 0",
        "[agent]\napi_key = \"sk-secret\nid = 1",
        "[agent]\napi_key = \"sk-secret\"\napi_key = \"sk-secret\"",
        "[agent]\napi_key = sk-secret",
    ] {
        let errors = errors(text);
        assert!(!format!("{errors:?}").contains("sk-secret"), "{errors:?}");
    }
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let text = r#"[gateway]
port = 70000
bind = "a b"
allowed_origins = ["https://ok.example.org", "example.org/x"]
allowed_hosts = [7, ""]
max_connections = 0
[agent]
id = " "
provider = "gemini"
max_tokens = 0
temperature = 3
model_timeout = "1h"
max_tool_rounds = "many"
catch_all = 1
output_price = -1
[[plugins]]
name = ""
path = "x"
[[plugins]]
name = "one"
path = "x"
timeout_seconds = 0
[[plugins]]
name = "one"
[[bindings]]
agent_id = "a"
[[bindings]]
channel = ""
[budgets]
daily = -1
[memory]
semantic_enabled = "yes"
"#;
    let expected = [
        "2:8: gateway.port: must be from 0 to 65535, is `70000`",
        "3:8: gateway.bind: `a b` is no address to listen at",
        "4:46: gateway.allowed_origins: \"example.org/x\" is not scheme://host or scheme://host:port",
        "5:18: gateway.allowed_hosts[0]: must be a string, is integer",
        "5:21: gateway.allowed_hosts[1]: is empty",
        "6:19: gateway.max_connections: must be from 1 to 1000000, is `0`",
        "8:6: agent.id: is empty",
        "9:12: agent.provider: unknown provider `gemini`; choose one of scripted, openai, anthropic, ollama, vllm",
        "10:14: agent.max_tokens: must be from 1 to 4294967295, is `0`",
        "11:15: agent.temperature: write a number from 0 to 2, like 0.7",
        "12:17: agent.model_timeout: write seconds like 30 or 0.5s, or milliseconds like 250ms",
        "13:19: agent.max_tool_rounds: must be a whole number, is string",
        "14:13: agent.catch_all: must be true or false, is integer",
        "15:16: agent.output_price: must be a number from 0 upwards",
        "17:8: plugins[0].name: is empty",
        "22:19: plugins[1].timeout_seconds: must be more than 0 and at most 3600",
        "23:1: plugins[2].path: is missing",
        "24:8: plugins[2].name: another plugin is called `one`",
        "25:1: bindings[0]: names none of channel, account_id, peer_id, guild_id, team_id",
        "27:1: bindings[1].agent_id: is missing",
        "28:11: bindings[1].channel: is empty",
        "30:9: budgets.daily: must be from 0 to 9223372036854775807, is `-1`",
        "32:20: memory.semantic_enabled: must be true or false, is string",
    ];
    assert_eq!(errors(text), expected);
}

#[test]
fn tables_of_the_wrong_form_are_told() {
    let text = "agent = 1\nbudgets = []\nplugins = 5\nbindings = [1]\n";
    let expected = [
        "1:9: agent: must be a table, is integer",
        "2:11: budgets: must be a table, is array",
        "3:11: plugins: must be a list of tables, each under [[plugins]], is integer",
        "4:13: bindings[0]: must be a table, is integer",
    ];
    assert_eq!(errors(text), expected);
    assert_eq!(errors("[agent]\ntools = \"x\"").len(), 1);
    assert_eq!(errors("[[agent]]\n").len(), 1);
}

#[test]
fn a_text_that_is_no_toml_is_told_with_its_place() {
    for (text, start) in [
        ("[gateway\nport = 1", "1:9: "),
        ("[agent]\nid = \"ä\" \"b\"", "2:10: "),
        ("port = ", "1:8: "),
        ("a = 1\na = 2", "2:1: duplicate key"),
    ] {
        let errors = errors(text);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with(start), "{errors:?}");
    }
    let error = Config::parse("x = ", &origin()).unwrap_err().to_string();
    assert!(error.starts_with("/etc/gate/config.toml:1:"), "{error}");
}

#[test]
fn unknown_keys_are_warned_of_with_the_key_that_is_near() {
    let text = r#"
prot = 1
max_tokens = 5
[gatway]
[gateway]
Port = 1
allowed-hosts = []
colour = "red"
[agent]
modle = "x"
daily = 1
"a\u001bb" = 1
[[plugins]]
name = "a"
path = "builtin:echo"
capability = []
[[bindings]]
agent_id = "a"
peer = "p"
peer_id = "p"
"#;
    let expected = [
        "2:1: unknown key `prot`",
        "3:1: unknown key `max_tokens`; did you mean `agent.max_tokens`?",
        "4:2: unknown key `gatway`; did you mean `gateway`?",
        "6:1: unknown key `gateway.Port`; did you mean `gateway.port`?",
        "7:1: unknown key `gateway.allowed-hosts`; did you mean `gateway.allowed_hosts`?",
        "8:1: unknown key `gateway.colour`",
        "10:1: unknown key `agent.modle`; did you mean `agent.model`?",
        "11:1: unknown key `agent.daily`; did you mean `budgets.daily`?",
        "12:1: unknown key `agent.a\\u{1b}b`",
        "16:1: unknown key `plugins[0].capability`; did you mean `plugins[0].capabilities`?",
        "19:1: unknown key `bindings[0].peer`",
    ];
    assert_eq!(warnings(text), expected);
}

#[test]
fn every_listed_key_is_known() {
    for (section, keys) in SECTIONS {
        for key in keys {
            let wrong = format!("[{section}]\n{key} = 2020-01-01\n");
            let errors = errors(&wrong);
            assert!(
                errors[0].contains(&format!("{section}.{key}: must be ")),
                "{errors:?}"
            );
        }
    }
}

#[test]
fn a_token_in_the_file_is_an_error_since_it_would_protect_nothing() {
    let expected = "2:1: gateway.token: has no effect here; the token comes from --token or \
        EXOCLAW_TOKEN, so that it stays out of files";
    assert_eq!(errors("[gateway]\ntoken = \"t\""), [expected]);
}

#[test]
fn a_fallback_is_checked_and_warned_of() {
    let text = "[agent]\n[agent.fallback]\nprovider = \"openai\"\nmodel = \"m\"\nx = 1\n";
    let expected = [
        "2:8: agent.fallback: is checked but not used; an answer that fails is told to the client, \
         who can ask again",
        "5:1: unknown key `agent.fallback.x`",
    ];
    assert_eq!(warnings(text), expected);
    let text = "[agent.fallback]\nprovider = \"openai\"\n";
    let expected = ["1:1: agent.fallback.model: is missing, `openai` needs it"];
    assert_eq!(errors(text), expected);
}

#[test]
fn a_provider_has_its_usual_model() {
    assert_eq!(
        clean("[agent]\nprovider = \"scripted\"")
            .agent
            .model
            .model_name(),
        "scripted"
    );
    let text = "[agent]\nprovider = \"anthropic\"\nmodel = \"m\"";
    assert_eq!(clean(text).agent.model.model_name(), "m");
    let text = "[agent]\nprovider = \"openai\"";
    assert_eq!(
        errors(text),
        ["1:1: agent.model: is missing, `openai` needs it"]
    );
}

#[test]
fn a_price_needs_both_halves() {
    let expected = "2:15: agent: input_price and output_price are only of use together";
    assert_eq!(errors("[agent]\ninput_price = 1"), [expected]);
}

#[test]
fn a_binding_that_is_hidden_by_another_is_warned_of() {
    let text = "[[bindings]]\nagent_id = \"a\"\npeer_id = \"p\"\n\
        [[bindings]]\nagent_id = \"b\"\npeer_id = \"p\"\n";
    let expected = ["4:1: bindings[1]: is never used, bindings[0] names the same chats"];
    assert_eq!(warnings(text), expected);
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
    let homeless = Origin::new("config.toml");
    assert_eq!(homeless.resolve("~/a"), None);
    let error = Config::parse("[agent]\nsoul_path = \"~/s\"", &homeless).unwrap_err();
    let expected = "config.toml:2:13: agent.soul_path: `~` is unknown, since HOME is not set";
    assert_eq!(error.to_string(), expected);
    let data = |text| Config::parse(text, &homeless).unwrap().config.gateway.data;
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
    assert_eq!(warning.file, path("a"));
    let start = "EXOCLAW_CONFIG names this file, which does not exist";
    assert!(warning.message.starts_with(start), "{warning}");
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
fn what_is_no_readable_text_is_told() {
    let folder = Folder::new();
    let load = |path: &Path| Config::load(Some(path), |_| None).unwrap_err().to_string();
    assert!(load(folder.path()).ends_with(": it is not a file"));
    let path = folder.path().join("c.toml");
    fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(load(&path).ends_with(": it is larger than 1 MiB"));
    fs::write(&path, b"a = \"\xff\"").unwrap();
    assert!(load(&path).starts_with("cannot read "));
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_warned_of() {
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
fn an_empty_file_is_said() {
    let folder = Folder::new();
    let path = folder.path().join("c.toml");
    let warnings = |text| {
        fs::write(&path, text).unwrap();
        let loaded = Config::load(Some(&path), |_| None).unwrap();
        let warnings = loaded.warnings.iter().map(ToString::to_string);
        warnings.collect::<String>()
    };
    assert_eq!(warnings("# all defaults"), "");
    for empty in ["", " \n"] {
        assert!(warnings(empty).ends_with("is empty; everything has its default"));
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows_are_understood() {
    let config = clean("\u{feff}[gateway]\r\nport = 5\r\n");
    assert_eq!(config.gateway.port, 5);
}

#[test]
fn a_file_full_of_mistakes_is_told_briefly() {
    let text: String = (0..5000).map(|number| format!("k{number} = 1\n")).collect();
    assert_eq!(warnings(&text).len(), 50);
    let one_line = format!("x = {{ {} }}", "a.b = 1, ".repeat(5000));
    assert!(Config::parse(&one_line, &origin()).is_err());
    let long = format!("[gateway]\nallowed_hosts = [\"{}\"]", "/".repeat(100_000));
    assert!(errors(&long)[0].chars().count() < 450);
    let odd = format!("\"\u{202e}{}\" = 1", "x".repeat(100));
    let expected = format!("1:1: unknown key `\\u{{202e}}{}...`", "x".repeat(59));
    assert_eq!(warnings(&odd), [expected]);
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(Config::parse(&deep, &origin()).is_err());
}

proptest! {
    #[test]
    fn a_place_agrees_with_counting(text in "[ab\\nä]{0,40}", at in 0_usize..80) {
        let before: String = text.char_indices().filter(|(i, _)| *i < at).map(|(_, c)| c).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        prop_assert_eq!(Lines::new(&text).position(at), (line, column));
    }
}
