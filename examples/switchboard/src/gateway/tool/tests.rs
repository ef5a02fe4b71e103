//! Tests of the tools that need no WebAssembly.

use super::*;

/// A tool that does what its name in the configuration says.
struct Stub {
    name: &'static str,
    is_adapter: bool,
    definition: Option<ToolDefinition>,
}

#[async_trait]
impl Tool for Stub {
    fn name(&self) -> &str {
        self.name
    }

    fn adapter(&self) -> Option<&dyn ChannelAdapter> {
        self.is_adapter.then_some(self)
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        self.definition.as_ref()
    }

    async fn call(&self, input: &str) -> ToolOutput {
        match self.name {
            "panic" => panic!("on purpose"),
            "fail" => ToolOutput::failed(input),
            _ => ToolOutput::new(format!("{}: {input}", self.name)),
        }
    }
}

#[async_trait]
impl ChannelAdapter for Stub {
    async fn parse_incoming(&self, body: &[u8]) -> Result<Incoming, String> {
        Incoming::parse(body)
    }

    async fn format_outgoing(&self, content: &str) -> Result<Vec<u8>, String> {
        Ok(content.into())
    }

    async fn post(&self, _: &str, body: Vec<u8>) -> Result<Vec<u8>, PostError> {
        Ok(body)
    }
}

fn tool(name: &'static str, offered: Option<&str>) -> Arc<dyn Tool> {
    Arc::new(Stub {
        name,
        is_adapter: false,
        definition: offered.map(|offered| ToolDefinition::new(offered, "")),
    })
}

fn adapter(name: &'static str) -> Arc<dyn Tool> {
    Arc::new(Stub {
        name,
        is_adapter: true,
        definition: None,
    })
}

fn tools(all: impl IntoIterator<Item = Arc<dyn Tool>>) -> Tools {
    let mut tools = Tools::new();
    for tool in all {
        tools.add(tool).unwrap();
    }
    tools
}

fn offered(tools: &Tools) -> Vec<&str> {
    let definitions = tools.definitions().iter();
    definitions.map(ToolDefinition::name).collect()
}

#[tokio::test]
async fn tools_keep_their_order_and_are_called_by_the_name_that_the_model_knows() {
    let tools = tools([
        tool("zeta", Some("find")),
        adapter("chat"),
        tool("alpha", Some("alpha")),
        tool("quiet", None),
    ]);
    assert_eq!(
        tools.names().collect::<Vec<_>>(),
        ["zeta", "chat", "alpha", "quiet"]
    );
    assert_eq!(tools.all.len(), 4);
    assert_eq!(offered(&tools), ["find", "alpha"]);
    assert_eq!(
        tools.call("find", "{}").await,
        ToolOutput::new("zeta: {}"),
        "the definition's name"
    );
    assert_eq!(
        tools.call("quiet", "{}").await,
        ToolOutput::new("quiet: {}")
    );
    for name in ["zeta", "chat", "", "Find"] {
        let output = tools.call(name, "{}").await;
        assert_eq!(output, ToolOutput::error(format!("unknown tool: {name}")));
    }
    assert_eq!(tools.adapters().collect::<Vec<_>>(), ["chat"]);
    assert!(tools.adapter("chat").is_some());
    assert!(tools.adapter("zeta").is_none());
}

#[test]
fn members_that_an_incoming_message_lacks_have_their_defaults() {
    let incoming = Incoming::parse(br#" {"content":"hi","peer":null,"team":5,"x":1} "#).unwrap();
    let found = [&*incoming.content, &*incoming.account, &*incoming.peer];
    assert_eq!(found, ["hi", "webhook", "main"]);
    assert_eq!((incoming.guild, incoming.team), (None, None));
    let whole = br#"{"content":"","account":"a","peer":"p","guild":"g","team":"t"}"#;
    let incoming = Incoming::parse(whole).unwrap();
    let found = [&*incoming.content, &*incoming.account, &*incoming.peer];
    assert_eq!(found, ["", "a", "p"]);
    assert_eq!(incoming.guild.as_deref(), Some("g"));
    assert_eq!(incoming.team.as_deref(), Some("t"));
    for bad in ["", "hi", "[]", "null"] {
        assert!(Incoming::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn names_that_clash_are_refused_and_nothing_is_added() {
    let mut tools = tools([tool("one", Some("find")), adapter("chat")]);
    assert_eq!(
        tools.add(tool("two", Some("find"))),
        Err(PluginError::DuplicateTool {
            tool: "find".to_owned(),
            owner: "one".to_owned()
        })
    );
    assert_eq!(
        tools.add(tool("one", Some("other"))),
        Err(PluginError::DuplicatePlugin)
    );
    // An adapter takes no name from the tools.
    assert_eq!(
        tools.add(tool("chat", Some("talk"))),
        Err(PluginError::DuplicatePlugin)
    );
    assert_eq!(tools.add(tool("three", Some("chat"))), Ok(()));
    for name in ["", "with blank", "dot.ted", "ünlaut", &"x".repeat(65)] {
        assert_eq!(
            tools.add(tool("bad", Some(name))),
            Err(PluginError::ToolName(name.to_owned()))
        );
    }
    assert_eq!(
        tools.names().collect::<Vec<_>>(),
        ["one", "chat", "three"],
        "no half of a refused one is left"
    );
    assert_eq!(offered(&tools), ["find", "chat"]);
}

#[tokio::test]
async fn an_allow_list_leaves_out_the_others() {
    let all = tools([
        tool("a", Some("first")),
        tool("b", Some("second")),
        adapter("c"),
    ]);
    let (few, unknown) = all.only(&["second".to_owned(), "nope".to_owned()]);
    assert_eq!(offered(&few), ["second"]);
    assert_eq!(unknown, ["nope"]);
    let output = few.call("first", "{}").await;
    assert_eq!(output.content, "unknown tool: first");
    assert_eq!(few.call("second", "1").await.content, "b: 1");
    let (few, unknown) = all.only(&["a".to_owned()]);
    assert_eq!((offered(&few), unknown), (vec!["first"], Vec::new()));
    let (same, unknown) = all.only(&[]);
    assert_eq!((same.all.len(), unknown.len()), (3, 0));
}

#[tokio::test]
async fn failures_and_panics_are_outputs() {
    let tools = tools([tool("panic", None), tool("fail", None)]);
    let output = tools.call("panic", "{}").await;
    assert_eq!(output, ToolOutput::error("tool execution failed: panic"));
    let reason = format!("bad\u{1b} thing {}\nsecond line", "x".repeat(400));
    let output = tools.call("fail", &reason).await;
    assert!(output.is_error);
    let start = "tool execution failed: bad thing x";
    assert!(output.content.starts_with(start), "{}", output.content);
    let shown = output.content.strip_suffix('…').unwrap();
    assert_eq!(shown.len(), FAILED.len() + MAX_REASON);
}

#[tokio::test]
async fn builtin_tools_work_without_plugins() {
    let (tools, warnings) = load([
        PluginEntry::new("say", "builtin:echo"),
        PluginEntry::new("now", "builtin:clock"),
    ])
    .await;
    assert_eq!(warnings, []);
    assert_eq!(offered(&tools), ["say", "now"]);
    assert_eq!(
        tools.call("say", r#"{"message":"hi"}"#).await,
        ToolOutput::new("hi")
    );
    assert_eq!(
        tools.call("say", r#"{"x":1}"#).await,
        ToolOutput::new(r#"{"x":1}"#)
    );
    assert!(tools.call("say", "[]").await.is_error);
    let now = tools.call("now", "{}").await;
    assert!(now.content.ends_with("UTC"), "{}", now.content);
}

#[tokio::test]
async fn a_bad_plugin_is_omitted_and_the_others_load() {
    let (tools, warnings) = load([
        PluginEntry::new("x", "builtin:fly"),
        PluginEntry::new("y", "/no/such/file.wasm"),
        PluginEntry::new("say", "builtin:echo"),
        PluginEntry::new("say", "builtin:clock"),
    ])
    .await;
    assert_eq!(tools.names().collect::<Vec<_>>(), ["say"]);
    let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts[0],
        r#"plugin "x" is skipped: there is no built-in tool "fly", only echo and clock"#
    );
    let missing = if cfg!(feature = "wasm") {
        "cannot read /no/such/file.wasm: "
    } else {
        "this build cannot run WebAssembly: build it with '--features wasm'"
    };
    let start = format!(r#"plugin "y" is skipped: {missing}"#);
    assert!(texts[1].starts_with(&start), "{}", texts[1]);
    assert_eq!(
        texts[2],
        r#"plugin "say" is skipped: there is a plugin of this name already"#
    );
    assert_eq!(texts.len(), 3);
}
