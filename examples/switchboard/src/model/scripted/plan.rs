//! [`next`]: a plan of steps, some of them calls. Each step begins with a checklist, and so does the end.

use serde_json::json;

use super::words::order;

/// Most steps of a plan.
const MAX_STEPS: usize = 20;

/// Returns the next call of a plan such as `plan: read a.txt; run ls`, or its last words, given the results so far with
/// whether each is a failure. `None` if a text is no plan.
pub(super) fn next(
    text: &str,
    results: &[(String, bool)],
) -> Option<Result<(String, String), String>> {
    let (begin, plan) = text.split_once(':')?;
    let steps = plan
        .split(';')
        .map(str::trim)
        .filter(|step| !step.is_empty());
    let steps: Vec<_> = steps.take(MAX_STEPS).collect();
    if !begin.trim().eq_ignore_ascii_case("plan") || steps.is_empty() {
        return None;
    }
    let mut results = results.iter();
    let (mut failed, mut said) = (Vec::new(), Vec::new());
    for step in &steps {
        if results.next().is_none() {
            return Some(Ok(list(&steps, &failed)));
        }
        let call = order(step, "").and_then(|calls| calls.into_iter().next());
        let mut has_failed = false;
        if let Some((tool, arguments)) = call {
            let Some((text, is_failure)) = results.next() else {
                return Some(Ok((tool.to_owned(), arguments.to_string())));
            };
            has_failed = *is_failure;
            said.push(&**text);
        }
        failed.push(has_failed);
    }
    if results.next().is_none() {
        return Some(Ok(list(&steps, &failed)));
    }
    said.push(match failed.iter().filter(|it| **it).count() {
        0 => "all is done",
        bad if bad == steps.len() => "nothing could be done",
        _ => "not all could be done",
    });
    Some(Err(said.join("; ")))
}

/// Returns the call that shows the list after so many steps have ended.
fn list(steps: &[&str], failed: &[bool]) -> (String, String) {
    let line = |(number, step): (usize, &&str)| {
        let mark = match failed.get(number) {
            Some(true) => "[!]",
            Some(false) => "[x]",
            None if number == failed.len() => "[~]",
            None => "[ ]",
        };
        format!("{mark} {step}")
    };
    let lines: Vec<_> = steps.iter().enumerate().map(line).collect();
    let arguments = json!({ "title": "Plan", "items": lines.join("\n") });
    ("checklist".to_owned(), arguments.to_string())
}
