//! Tests of the lines of `decode`.

use super::*;

fn decoded(text: &str, options: &Options) -> String {
    let mut out = Vec::new();
    decode(options, text.as_bytes(), &mut out, |_| {}).unwrap();
    String::from_utf8(out).unwrap()
}

const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"s2c","kind":"text","data":"{\"ok\":true,\"version\":\"0.1.0\"}"}
{"at":0.002,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\",\"mood\":1}"}
{"at":0.004,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"pong\",\"more\":\"\\u001b[2J\"}"}
{"at":0.005,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"event\":7}"}
{"at":0.006,"conn":1,"dir":"c2s","kind":"close","code":1000}
"#;

#[test]
fn each_frame_is_a_line_with_its_problems_below() {
    let expected = r#"    2   0.001000   1 <- hello                ok=true version="0.1.0"
    3   0.002000   1 -> ping                 1 mood=1
      ? the member `mood` is not known
    4   0.004000   1 <- result               1 result="pong" more="\u001b[2J"  [ping of line 3, 2.0 ms]
      ? the member `more` is not known
"#;
    let text = decoded(RUN, &Options::default());
    assert!(text.starts_with(expected), "{text}");
    let (_, rest) = text.split_at(expected.len());
    let lines: Vec<_> = rest.lines().collect();
    let [_, error, place, caret, close] = lines[..] else {
        panic!("{text}")
    };
    assert!(error.contains("! member `event` is not"), "{text}");
    let at = caret.find('^').unwrap();
    assert!(place.is_char_boundary(at) && place.len() >= at, "{text}");
    assert!(close.ends_with("close                1000"), "{text}");
}

#[test]
fn only_problems_are_shown_if_wanted() {
    let text = decoded(
        RUN,
        &Options {
            problems: true,
            ..Options::default()
        },
    );
    let numbers: Vec<_> = text
        .lines()
        .filter(|it| !it.starts_with("      "))
        .collect();
    assert_eq!(numbers.len(), 3, "{text}");
}

/// A chat after another one, with a fault in the second.
fn chats(faulty: &[&str]) -> String {
    let mut lines = vec![r#"{"transcript":1,"protocol":"exoclaw"}"#.to_owned()];
    let mut say = |dir: &str, kind: &str, data: &str| {
        let data = serde_json::to_string(data).unwrap();
        let at = lines.len();
        lines.push(format!(
            r#"{{"at":{at},"conn":1,"dir":"{dir}","kind":"{kind}","data":{data}}}"#
        ));
    };
    say("c2s", "open", "/ws");
    say("s2c", "text", r#"{"ok":true,"version":"0.1.0"}"#);
    for id in ["r1", "r2"] {
        let params = r#"{"channel":"w","account":"a","content":"q"}"#;
        let chat = format!(r#"{{"id":"{id}","method":"chat.send","params":{params}}}"#);
        say("c2s", "text", &chat);
        say(
            "s2c",
            "text",
            &format!(r#"{{"id":"{id}","event":"text","data":"x"}}"#),
        );
        match id {
            "r1" => say("s2c", "text", r#"{"id":"r1","event":"done"}"#),
            _ => faulty.iter().for_each(|text| say("s2c", "text", text)),
        }
    }
    say("c2s", "close", "");
    lines.join("\n") + "\n"
}

#[test]
fn the_frame_at_fault_is_named_and_counted_as_on_the_page() {
    let done = r#"{"id":"r2","event":"done"}"#;
    for (faulty, expected) in [
        (vec![done], vec![]),
        (
            vec![done, done],
            vec![(10, "! comes after the end of what line 7 asked")],
        ),
        (
            vec![done, r#"{"id":"r2","event":"text","data":"late"}"#],
            vec![(10, "! comes after the end of what line 7 asked")],
        ),
        (
            vec![r#"{"id":"r1","event":"text","data":"late"}"#, done],
            vec![(9, "! comes after the end of what line 4 asked")],
        ),
        (
            vec![r#"{"id":"r999","event":"done"}"#],
            vec![
                (9, "! answers nothing that was asked"),
                (10, "! nobody has answered `chat.send` of line 7"),
            ],
        ),
        (
            vec![r#"{"id":"r2","event":"Done"}"#],
            vec![
                (9, "? the kind is not known"),
                (10, "! nobody has answered `chat.send` of line 7"),
            ],
        ),
        (
            vec![],
            vec![(9, "! nobody has answered `chat.send` of line 7")],
        ),
        // What failed goes on to its end.
        (vec![r#"{"id":"r2","error":"no"}"#], vec![(9, "")]),
    ] {
        let text = chats(&faulty);
        let options = Options {
            problems: true,
            ..Options::default()
        };
        let mut out = Vec::new();
        let count = decode(&options, text.as_bytes(), &mut out, |_| {}).unwrap();
        let out = String::from_utf8(out).unwrap();
        let mut found = Vec::new();
        for line in out.lines() {
            match line.strip_prefix("      ") {
                Some(words) => found.last_mut().map(|(_, it)| *it = words).unwrap(),
                None => found.push((line[..5].trim().parse().unwrap(), "")),
            }
        }
        assert_eq!(found, expected, "{text}{out}");
        assert_eq!(count.problems, expected.len(), "{out}");
        let view = crate::view::tests::view(&text);
        let page = view.rows.iter().filter(|it| it.explained.problem.is_some());
        assert_eq!(page.count(), expected.len(), "{out}");
    }
}

#[test]
fn a_recording_that_begins_in_the_middle_has_no_strays() {
    let text = chats(&[
        r#"{"id":"r999","event":"done"}"#,
        r#"{"id":"r2","event":"done"}"#,
    ]);
    let middle: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(at, _)| !matches!(*at, 1 | 2))
        .collect();
    let middle: Vec<_> = middle.into_iter().map(|(_, line)| line).collect();
    for (text, problems) in [(text.clone(), 1), (middle.join("\n"), 0)] {
        let mut out = Vec::new();
        let count = decode(&Options::default(), text.as_bytes(), &mut out, |_| {}).unwrap();
        assert_eq!(
            count.problems,
            problems,
            "{}",
            String::from_utf8_lossy(&out)
        );
    }
}

#[test]
fn calls_open_at_the_end_are_listed_after_it() {
    let text = chats(&[]);
    let (cut, _) = text.trim_end().rsplit_once('\n').unwrap();
    let shown = decoded(cut, &Options::default());
    let end = "the end\n      ! nobody has answered `chat.send` of line 7\n";
    assert!(shown.ends_with(end), "{shown}");
    let shown = decoded(
        cut,
        &Options {
            json: true,
            ..Options::default()
        },
    );
    let last: serde_json::Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert_eq!(last["unanswered"][0]["line"], 7);
}

#[test]
fn with_json_each_line_is_an_object() {
    let text = decoded(
        RUN,
        &Options {
            json: true,
            ..Options::default()
        },
    );
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[1]["unknown"][0], "mood");
    assert_eq!(lines[2]["answers"]["line"], 3);
    assert!(lines[3]["fault"]["at"].is_u64(), "{text}");
}
