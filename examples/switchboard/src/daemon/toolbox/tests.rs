//! Tests: what tools tell the model, and what they show.

use std::fs;

use serde_json::json;

use super::*;
use crate::daemon::command::CommandConfig;
use crate::scratch::Folder;

/// A workspace that is removed with the value, and its tools.
struct Fixture(Folder, Workspace, Toolbox);

impl Fixture {
    fn new(confinement: Confinement) -> Self {
        let path = Folder::new();
        let workspace = Workspace::open(&path).unwrap();
        let config = CommandConfig::default().with_confinement(confinement);
        let toolbox = Toolbox::new(Commands::new(config));
        Self(path, workspace, toolbox)
    }

    async fn run(&self, name: &str, arguments: Value) -> (Vec<Shown>, Result<String, ToolError>) {
        let mut seen = Vec::new();
        let arguments = arguments.as_object().unwrap();
        let mut show = |shown| seen.push(shown);
        let result = self.2.run(&self.1, name, arguments, &mut show).await;
        (seen, result)
    }
}

fn kinds(shown: &[Shown]) -> Vec<&str> {
    let mut kinds = Vec::new();
    for shown in shown {
        kinds.push(match shown {
            Shown::Part(part) => part.tag(),
            Shown::Checklist(_) => "checklist",
            Shown::Change(_) => "change",
        });
    }
    kinds
}

#[tokio::test]
async fn a_file_is_made_read_found_and_changed() {
    let place = Fixture::new(Confinement::Off);
    let (shown, result) = place
        .run(
            FILE_CREATE,
            json!({ "path": "src/a.rs", "content": "one\ntwo\n" }),
        )
        .await;
    assert_eq!(result.as_deref(), Ok("wrote src/a.rs (+2 -0)"));
    assert_eq!(kinds(&shown), ["edit-header", "diff", "diff", "change"]);
    let (shown, result) = place.run(FILE_READ, json!({ "path": "src/a.rs" })).await;
    assert_eq!(result.as_deref(), Ok("one\ntwo\n"));
    assert_eq!(kinds(&shown), ["file-header"]);
    let part = json!({ "path": "src/a.rs", "from": 2, "lines": 1 });
    let (_, result) = place.run(FILE_READ, part).await;
    assert_eq!(result.as_deref(), Ok("two\n(lines 2 to 2 of 2)\n"));
    let (shown, result) = place.run(FILE_SEARCH, json!({ "query": "tw" })).await;
    assert_eq!(result.as_deref(), Ok("src/a.rs:2: two"));
    assert_eq!(kinds(&shown), ["scope-header", "text"]);
    let (_, result) = place.run(FILE_SEARCH, json!({ "query": "x" })).await;
    assert_eq!(result.as_deref(), Ok("nothing was found"));
    let (shown, result) = place.run(FILE_FIND, json!({ "glob": "*.rs" })).await;
    assert_eq!(result.as_deref(), Ok("src/a.rs"));
    assert_eq!(kinds(&shown), ["scope-header", "text"]);
    let edit = json!({ "path": "src/a.rs", "find": "two", "replace": "2" });
    let (shown, result) = place.run(FILE_EDIT, edit.clone()).await;
    assert_eq!(result.as_deref(), Ok("changed src/a.rs (+1 -1)"));
    assert_eq!(
        kinds(&shown),
        ["edit-header", "diff", "diff", "diff", "change"]
    );
    let (shown, result) = place.run(FILE_EDIT, edit).await;
    assert_eq!(kinds(&shown), ["tool-header"]);
    assert_eq!(result.unwrap_err().code, Code::Edit);
}

#[tokio::test]
async fn a_failed_tool_shows_its_arguments_first() {
    let place = Fixture::new(Confinement::Open);
    for (name, arguments, key, about) in [
        (FILE_READ, json!({ "path": "a" }), "file_read", Some("a")),
        (FILE_READ, json!({ "path": 7 }), "file_read", None),
        (
            FILE_SEARCH,
            json!({ "query": "(", "regex": true }),
            "file_search",
            Some("("),
        ),
        (
            FILE_FIND,
            json!({ "glob": "*.rs", "folder": ".." }),
            "file_find",
            Some("*.rs"),
        ),
        (
            FILE_EDIT,
            json!({ "path": "a", "find": "x", "replace": "" }),
            "file_edit",
            Some("a"),
        ),
        (
            FILE_CREATE,
            json!({ "path": "../a", "content": "" }),
            "file_create",
            Some("../a"),
        ),
        (
            SHELL_RUN,
            json!({ "command": "true", "timeout": "soon" }),
            "shell_run",
            Some("true"),
        ),
    ] {
        let (shown, result) = place.run(name, arguments).await;
        assert!(result.is_err(), "{name}");
        let [Shown::Part(header)] = &shown[..] else {
            panic!("{name}: {shown:?}");
        };
        let (label, detail) = match header {
            Part::FileHeader(header) => (&header.label_key, header.targets.first().map(|it| &**it)),
            Part::ToolHeader(header) => (&header.label_key, header.detail.as_deref()),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(label.as_str(), format!("tool.label.{key}"));
        assert_eq!(detail, about, "{name}");
    }
    let (shown, _) = place.run("fly", json!({})).await;
    assert_eq!(shown, [], "known servers show nothing of unknown tools");
}

#[tokio::test]
async fn a_search_reports_where_it_looked_and_what_it_skipped() {
    let place = Fixture::new(Confinement::Off);
    for number in 0..52 {
        let file = json!({ "path": format!("src/{number}.rs"), "content": "one" });
        place.run(FILE_CREATE, file).await.1.unwrap();
    }
    for (name, arguments, where_it_looked, unit) in [
        (FILE_FIND, json!({}), "workspace", "files"),
        (
            FILE_SEARCH,
            json!({ "query": "one" }),
            "workspace",
            "matches",
        ),
        (FILE_FIND, json!({ "folder": "src" }), "src", "files"),
    ] {
        let (shown, _) = place.run(name, arguments).await;
        let Some(Shown::Part(Part::ScopeHeader(search))) = shown.first() else {
            panic!("{shown:?}");
        };
        assert_eq!(search.scope, where_it_looked);
        let left_out = Shown::Part(Part::Truncated(acolyte_proto::event::Truncated {
            count: Some(2),
            unit: Some(unit.into()),
        }));
        assert_eq!(shown.last(), Some(&left_out));
    }
}

#[tokio::test]
async fn a_wrong_call_is_explained() {
    let place = Fixture::new(Confinement::Off);
    for (name, arguments, why) in [
        ("fly", json!({}), "no tool"),
        (SHELL_RUN, json!({ "command": "true" }), "no tool"),
        (FILE_READ, json!({}), "\"path\" is missing"),
        (FILE_READ, json!({ "path": 7 }), "string"),
        (FILE_READ, json!({ "path": "a", "from": -1 }), "number"),
        (
            FILE_SEARCH,
            json!({ "query": "a", "regex": "yes" }),
            "true or false",
        ),
        (CHECKLIST, json!({}), "\"items\" is missing"),
    ] {
        let (_, result) = place.run(name, arguments).await;
        let problem = result.unwrap_err();
        assert_eq!(problem.code, Code::Call);
        assert!(problem.message.contains(why), "{problem}");
    }
    let names = place.2.definitions().iter().map(ToolDefinition::name);
    assert!(names.into_iter().all(|name| name != SHELL_RUN));
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_reports_its_lines_and_its_failure() {
    let place = Fixture::new(Confinement::Open);
    let line = json!({ "command": "echo out; echo err >&2; exit 3" });
    let (shown, result) = place.run(SHELL_RUN, line).await;
    assert_eq!(
        kinds(&shown),
        ["tool-header", "shell-output", "shell-output"]
    );
    let problem = result.unwrap_err();
    assert_eq!(problem.code, Code::Failed);
    assert!(problem.message.contains("(exit code 3)"), "{problem}");
    let (shown, result) = place.run(SHELL_RUN, json!({ "command": "true" })).await;
    assert_eq!(kinds(&shown), ["tool-header", "no-output"]);
    assert_eq!(result.as_deref(), Ok("(it said nothing)"));
    let slow = json!({ "command": "sleep 60", "timeout": 0 });
    let (_, result) = place.run(SHELL_RUN, slow).await;
    assert_eq!(result.unwrap_err().code, Code::TimedOut);
}

#[tokio::test]
async fn a_checklist_is_shown_and_a_long_result_is_cut() {
    let place = Fixture::new(Confinement::Off);
    let items = json!({ "items": "[x] one\n[ ] two" });
    let (shown, result) = place.run(CHECKLIST, items).await;
    assert_eq!(kinds(&shown), ["checklist"]);
    assert_eq!(result.as_deref(), Ok("the list has 2 items"));
    fs::write(place.0.join("long"), "é".repeat(100_000)).unwrap();
    let (_, result) = place.run(FILE_READ, json!({ "path": "long" })).await;
    let result = result.unwrap();
    let length = result.chars().count();
    assert!((29_900..=30_000).contains(&length), "{length}");
    assert!(result.contains("characters left out"));
    let most = "é".repeat(30_000);
    assert_eq!(without_middle(&most, 30_000), most);
    let cut = without_middle(&(most + "é"), 30_000).into_owned();
    assert!(cut.contains("(101 or more characters left out)"), "{cut}");
}
