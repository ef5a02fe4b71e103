//! Vectors of tool definitions.

use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use super::run;

#[test]
fn tool_descriptions_match_the_vectors() {
    run("tools", |vector| {
        if let Some(python) = vector.try_str("python") {
            let kind = serde_json::to_value(ParamType::from_python(python)).unwrap();
            assert_eq!(kind, vector.str("type"), "{}", vector.name());
            return;
        }
        if let Some(method) = vector.try_str("method") {
            let excluded = ToolDefinition::is_excluded(method);
            assert_eq!(excluded, vector.is("excluded"), "{}", vector.name());
            return;
        }
        let about = vector.strs("tool");
        let mut tool = ToolDefinition::new(about[0], about[1]);
        for param in vector.get("params").as_array().unwrap() {
            let text = |at: usize| param[at].as_str().unwrap();
            let mut described = Param::new(text(0), ParamType::from_python(text(1)));
            if let Some(default) = param.get(2) {
                described = described.with_default(default.clone());
            }
            tool = tool.param(described);
        }
        let json = serde_json::to_string(&tool).unwrap();
        assert_eq!(json, vector.str("json"), "{}", vector.name());
    });
}
