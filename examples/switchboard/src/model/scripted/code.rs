//! Requests for the tools of a coding agent: files, commands, and a plan of such steps.

use serde_json::json;

/// Most steps of a plan.
const MAX_STEPS: usize = 20;

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Call this tool, with these arguments.
    Call(&'static str, String),
    /// Say this.
    Say(String),
}

/// Returns the next step for a text, given the `results` of tools, each with whether it is a
/// failure. `None` if it is no such request.
pub(super) fn next(text: &str, results: &[(String, bool)]) -> Option<Next> {
    let text = text.trim();
    if let Some(plan) = order(text, "plan:") {
        return Plan::new(plan).map(|plan| plan.next(results));
    }
    let (tool, arguments) = call(text)?;
    Some(match results {
        [] => Next::Call(tool, arguments),
        results => Next::Say(said(results)),
    })
}

fn said(results: &[(String, bool)]) -> String {
    let texts = results.iter().map(|(text, _)| text.trim_end());
    texts.collect::<Vec<_>>().join("; ")
}

/// Returns the text after an order, ignoring case.
fn order<'t>(text: &'t str, order: &str) -> Option<&'t str> {
    let begin = text.get(..order.len())?;
    let rest = text.get(order.len()..)?;
    begin.eq_ignore_ascii_case(order).then(|| rest.trim())
}

/// Returns the one call that a text asks for.
fn call(text: &str) -> Option<(&'static str, String)> {
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    let (tool, arguments) = match word.to_lowercase().as_str() {
        "read" => ("file-read", json!({ "path": rest })),
        "search" => ("file-search", json!({ "query": rest })),
        "list" if rest.contains("files") => ("file-find", json!({})),
        "edit" => {
            let (path, change) = rest.split_once(": ")?;
            let (find, put) = change.split_once(" -> ")?;
            let arguments = json!({ "path": path.trim(), "find": find, "replace": put });
            ("file-edit", arguments)
        }
        "create" => {
            let (path, text) = rest.split_once(": ")?;
            let content = format!("{text}\n");
            let arguments = json!({ "path": path.trim(), "content": content });
            ("file-create", arguments)
        }
        "run" => ("shell-run", json!({ "command": rest })),
        _ => return None,
    };
    Some((tool, arguments.to_string()))
}

/// A plan of steps, some of them calls. Each step begins with a checklist, and so does the end.
struct Plan<'t> {
    steps: Vec<&'t str>,
}

impl<'t> Plan<'t> {
    fn new(text: &'t str) -> Option<Self> {
        let steps = text
            .split(';')
            .map(str::trim)
            .filter(|step| !step.is_empty());
        let steps: Vec<_> = steps.take(MAX_STEPS).collect();
        (!steps.is_empty()).then_some(Self { steps })
    }

    fn next(&self, results: &[(String, bool)]) -> Next {
        let mut results = results.iter();
        let (mut failed, mut told) = (Vec::new(), Vec::new());
        for step in &self.steps {
            if results.next().is_none() {
                return self.list(&failed);
            }
            let mut has_failed = false;
            if let Some((tool, arguments)) = call(step) {
                let Some((text, is_failure)) = results.next() else {
                    return Next::Call(tool, arguments);
                };
                has_failed = *is_failure;
                told.push(text.trim_end());
            }
            failed.push(has_failed);
        }
        if results.next().is_none() {
            return self.list(&failed);
        }
        let (all, bad) = (self.steps.len(), failed.iter().filter(|it| **it).count());
        told.push(match bad {
            0 => "all is done",
            bad if bad == all => "nothing could be done",
            _ => "not all could be done",
        });
        Next::Say(told.join("; "))
    }

    /// Returns the checklist after so many steps have ended.
    fn list(&self, failed: &[bool]) -> Next {
        let line = |(number, step): (usize, &&str)| {
            let mark = match failed.get(number) {
                Some(true) => "[!]",
                Some(false) => "[x]",
                None if number == failed.len() => "[~]",
                None => "[ ]",
            };
            format!("{mark} {step}")
        };
        let lines: Vec<_> = self.steps.iter().enumerate().map(line).collect();
        let arguments = json!({ "title": "Plan", "items": lines.join("\n") });
        Next::Call("checklist", arguments.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn orders_become_calls_and_results_are_repeated() {
        for (text, tool, arguments) in [
            ("read a b.txt", "file-read", json!({ "path": "a b.txt" })),
            (
                "Search fn main",
                "file-search",
                json!({ "query": "fn main" }),
            ),
            ("list all files", "file-find", json!({})),
            (
                "edit a.txt: one -> two",
                "file-edit",
                json!({ "path": "a.txt", "find": "one", "replace": "two" }),
            ),
            (
                "create a.txt: hello",
                "file-create",
                json!({ "path": "a.txt", "content": "hello\n" }),
            ),
            (
                "run echo hi!",
                "shell-run",
                json!({ "command": "echo hi!" }),
            ),
        ] {
            let expected = Some(Next::Call(tool, arguments.to_string()));
            assert_eq!(next(text, &[]), expected, "{text}");
            let said = next(text, &[("done\n".to_owned(), false)]);
            assert_eq!(said, Some(Next::Say("done".to_owned())));
        }
        for text in ["", "hello", "read", "edit a.txt", "plan:", "plan: ;"] {
            assert_eq!(next(text, &[]), None, "{text}");
        }
    }

    #[test]
    fn a_plan_shows_its_list_before_each_step() {
        let mut results = Vec::new();
        let mut seen = Vec::new();
        let said = loop {
            match next("plan: read a; think; run b", &results).unwrap() {
                Next::Call("checklist", arguments) => {
                    let arguments: Value = serde_json::from_str(&arguments).unwrap();
                    seen.push(arguments["items"].as_str().unwrap().to_owned());
                    results.push(("listed".to_owned(), false));
                }
                Next::Call(tool, _) => {
                    seen.push(tool.to_owned());
                    results.push((format!("{tool} said\n"), tool == "shell-run"));
                }
                Next::Say(said) => break said,
            }
        };
        let expected = [
            "[~] read a\n[ ] think\n[ ] run b",
            "file-read",
            "[x] read a\n[~] think\n[ ] run b",
            "[x] read a\n[x] think\n[~] run b",
            "shell-run",
            "[x] read a\n[x] think\n[!] run b",
        ];
        assert_eq!(seen, expected);
        assert_eq!(
            said,
            "file-read said; shell-run said; not all could be done"
        );
    }
}
