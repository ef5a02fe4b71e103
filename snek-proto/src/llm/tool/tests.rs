//! Tests of tool definitions.

use serde_json::json;

use super::*;

#[test]
fn properties_keep_the_order_of_the_parameters() {
    let mut tool = ToolDefinition::new("t", "");
    for name in ["zebra", "apple", "self", "*args", "**kwargs", "mango"] {
        tool = tool.param(Param::new(name, ParamType::String));
    }
    tool = tool.param(Param::new("apple", ParamType::Array).with_default(json!([])));
    assert_eq!(
        serde_json::to_string(&tool).unwrap(),
        concat!(
            r#"{"type":"function","function":{"name":"t","description":"","parameters":{"type":"object","#,
            r#""properties":{"zebra":{"type":"string"},"apple":{"type":"array","default":[]},"#,
            r#""mango":{"type":"string"}},"required":["zebra","mango"]}}}"#
        )
    );
}

#[test]
fn a_tool_without_parameters_has_an_empty_required_list() {
    let value = ToolDefinition::new("now", "The time.").to_value();
    let parameters = json!({"type": "object", "properties": {}, "required": []});
    assert_eq!(value["function"]["parameters"], parameters);
}

#[test]
fn arrays_have_items_only_if_given() {
    let list = Param::new("a", ParamType::Array);
    let text = Param::new("b", ParamType::String).with_items(ParamType::Integer);
    let tool = |param| ToolDefinition::new("t", "").param(param).to_value();
    let property =
        |value: &Value, name: &str| value["function"]["parameters"]["properties"][name].clone();
    assert_eq!(property(&tool(list.clone()), "a"), json!({"type": "array"}));
    let list = list.with_items(ParamType::Object).with_description("all");
    assert_eq!(
        property(&tool(list), "a"),
        json!({"type": "array", "description": "all", "items": {"type": "object"}})
    );
    assert_eq!(property(&tool(text), "b"), json!({"type": "string"}));
}

#[test]
fn a_foreign_schema_is_passed_on() {
    let schema = json!({
        "type": "object",
        "properties": {"q": {"type": "string", "enum": ["a", "b"]}, "n": {"type": "number"}},
        "required": ["q"],
        "additionalProperties": false,
    });
    let tool = ToolDefinition::from_schema("t", "", schema.clone()).unwrap();
    assert_eq!(tool.to_value()["function"]["parameters"], schema);
    assert!(tool.params()[1].is_required() && !tool.params()[0].is_required());
    for empty in [json!(null), json!({}), json!({"type": "object"})] {
        let tool = ToolDefinition::from_schema("t", "", empty).unwrap();
        assert_eq!(tool, ToolDefinition::new("t", ""));
    }
}

#[test]
fn a_schema_that_is_not_an_object_is_refused() {
    for schema in [
        json!([]),
        json!({"type": "string"}),
        json!({"type": ["object", "null"]}),
        json!({"properties": []}),
        json!({"required": "q"}),
    ] {
        let error = ToolDefinition::from_schema("t", "", schema).unwrap_err();
        assert_eq!(error.name(), "ValidationError");
    }
}
