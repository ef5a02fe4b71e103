//! The JSON of plugins: the output of `describe` and `handle_tool_call`.

use serde::Deserialize;
use serde_json::Value;
use snek_proto::llm::tool::ToolDefinition;

use crate::gateway::tool::ToolOutput;

/// The purpose of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PluginKind {
    /// The model may call it.
    #[default]
    Tool,
    /// It connects a chat service, through a webhook.
    ChannelAdapter,
}

/// The description of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Description {
    pub(super) kind: PluginKind,
    /// Only for a tool with a schema.
    pub(super) definition: Option<ToolDefinition>,
}

#[derive(Deserialize)]
struct Described {
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<String>,
    plugin_type: Option<String>,
}

impl Description {
    /// Returns the description of a channel adapter.
    pub(super) const fn adapter() -> Self {
        Self {
            kind: PluginKind::ChannelAdapter,
            definition: None,
        }
    }

    /// Parses the output of `describe`. A tool without a name gets that of the configuration.
    ///
    /// # Errors
    /// A description of the mistake.
    pub(super) fn parse(text: &[u8], name: &str) -> Result<Self, String> {
        let described: Described =
            rpc_core::json::from_slice(text).map_err(|error| error.to_string())?;
        let mut kinds = [described.kind, described.plugin_type]
            .into_iter()
            .flatten();
        if kinds.any(|kind| kind == "channel_adapter") {
            return Ok(Self::adapter());
        }
        let Some(schema) = described.input_schema else {
            return Ok(Self::default());
        };
        let name = described.name.as_deref().unwrap_or(name);
        let text = described.description.unwrap_or_default();
        let definition = ToolDefinition::from_schema(name, text, schema)
            .map_err(|error| format!("input_schema: {error}"))?;
        Ok(Self {
            kind: PluginKind::Tool,
            definition: Some(definition),
        })
    }
}

#[derive(Deserialize)]
struct Answered {
    content: String,
    #[serde(default)]
    is_error: bool,
}

/// Parses the output of `handle_tool_call`: `{"content","is_error"}`, or any other bytes, which
/// become the content. If `content` is empty, the whole output becomes the content.
pub(super) fn output(bytes: Vec<u8>) -> ToolOutput {
    let answered = match bytes.first() {
        Some(b'{' | b' ' | b'\n' | b'\r' | b'\t') => rpc_core::json::from_slice(&bytes).ok(),
        _ => None,
    };
    let (content, is_error) = match answered {
        Some(Answered { content, is_error }) if !content.is_empty() => (content, is_error),
        other => (text(bytes), other.is_some_and(|answered| answered.is_error)),
    };
    if is_error {
        ToolOutput::error(content)
    } else {
        ToolOutput::new(content)
    }
}

/// Converts bytes to text, and replaces invalid UTF-8.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Result<Description, String> {
        Description::parse(value.to_string().as_bytes(), "plug")
    }

    #[test]
    fn a_tool_with_a_schema_has_a_definition() {
        let schema = json!({"type": "object", "properties": {}, "required": []});
        let named =
            json!({"name": "find", "description": "Finds.", "input_schema": schema, "x": 1});
        let description = parse(&named).unwrap();
        let definition = description.definition.unwrap();
        assert_eq!(
            (definition.name(), definition.description()),
            ("find", "Finds.")
        );
        let bare = parse(&json!({"input_schema": {}})).unwrap();
        assert_eq!(bare.definition.unwrap().name(), "plug");
        assert_eq!(parse(&json!({"name": "x"})), Ok(Description::default()));
        assert_eq!(
            parse(&json!({"input_schema": null})),
            Ok(Description::default())
        );
    }

    #[test]
    fn either_member_makes_a_channel_adapter() {
        for key in ["type", "plugin_type"] {
            let described = json!({"name": "x", "input_schema": {}, key: "channel_adapter"});
            assert_eq!(parse(&described), Ok(Description::adapter()));
        }
        let other = parse(&json!({"type": "tool", "plugin_type": "?"})).unwrap();
        assert_eq!(other.kind, PluginKind::Tool);
    }

    #[test]
    fn a_bad_description_is_explained() {
        assert!(Description::parse(b"no json", "x").is_err());
        assert!(Description::parse(b"", "x").is_err());
        let error = parse(&json!({"input_schema": "string"})).unwrap_err();
        assert!(error.starts_with("input_schema: "), "{error}");
    }

    #[test]
    fn reads_an_output_or_takes_it_as_text() {
        for (bytes, content, is_error) in [
            (r#"{"content":"hi"}"#, "hi", false),
            (r#" {"content":"no","is_error":true,"x":1}"#, "no", true),
            (
                r#"{"content":"","is_error":true}"#,
                r#"{"content":"","is_error":true}"#,
                true,
            ),
            (r#"{"content":5}"#, r#"{"content":5}"#, false),
            (r#"{"other":1}"#, r#"{"other":1}"#, false),
            (r#"{"content":"cut"#, r#"{"content":"cut"#, false),
            (r#"["content",true]"#, r#"["content",true]"#, false),
            ("plain", "plain", false),
            ("", "", false),
        ] {
            let output = output(bytes.as_bytes().to_vec());
            assert_eq!(
                (output.content.as_str(), output.is_error),
                (content, is_error)
            );
        }
        assert_eq!(output(vec![b'a', 0xff]).content, "a\u{fffd}");
    }
}
