//! The configurations that readers copy and edit.

use super::*;

#[test]
fn the_sample_configuration_is_read() {
    let path = root().join("examples/switchboard/gateway.toml");
    let text = read(&path);
    let parse = |text: &str| {
        let origin = Origin {
            file: "/etc/gate/config.toml".into(),
            home: Some("/home/ann".into()),
        };
        Config::parse(text, &origin).unwrap_or_else(|error| panic!("{error}"))
    };
    // As it is, nothing but two tools differs from the defaults.
    let mut config = parse(&text);
    assert_eq!(config.plugins.len(), 2);
    config.plugins.clear();
    assert_eq!(config, parse(""));

    // With every line switched on the keys are still right, and defaults are what they say.
    let switched_on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => {
            format!("{rest}\n")
        }
        _ => format!("{line}\n"),
    };
    let all: String = text.lines().map(switched_on).collect();
    let mut config = parse(&all);
    assert_eq!((config.plugins.len(), config.bindings.len()), (3, 1));
    assert_eq!(
        config.gateway.data,
        DataDir::Folder(Path::new("/etc/gate/.").into())
    );
    let defaults = parse("");
    config.gateway.data = defaults.gateway.data.clone();
    assert_eq!(config.gateway, defaults.gateway);
    // Without the key there is no such limit.
    assert_eq!(config.memory.episodic_window, Some(5));
    config.memory.episodic_window = defaults.memory.episodic_window;
    assert_eq!(config.memory, defaults.memory);
    let agent = &mut config.agent;
    assert!(agent.model.key.is_some() && agent.soul_path.take().is_some());
    assert!(agent.system_prompt.take().is_some());
    agent.model = defaults.agent.model.clone();
    assert_eq!(config.agent, defaults.agent);
    assert!(config.budgets.session.is_some() && config.budgets.monthly.is_some());
}

#[test]
fn the_configuration_in_the_readme_is_read_without_a_warning() {
    let readme = read(&root().join("examples/switchboard/README.md"));
    let (_, rest) = readme.split_once("gateway.toml\" <<'END'\n").unwrap();
    let (text, _) = rest.split_once("\nEND\n").unwrap();
    let config = Config::parse(text, &Origin::default()).unwrap();
    let model = config.agent.model.model_name();
    assert_eq!(model, "claude-sonnet-4-5-20250929");
    assert_eq!(config.budgets.daily, Some(1_000_000));
}

#[test]
fn an_edit_of_the_configuration_is_said_while_the_gateway_runs() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "[gateway]\n");
    let (gateway, _) = folder.start(&["--config", &file]);
    folder.file("config.toml", "[gateway]\nextensions = true\n");
    gateway.line_with("config.toml was edited");
}
