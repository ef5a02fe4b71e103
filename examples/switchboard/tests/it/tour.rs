//! The tour, as a newcomer starts it.

use std::collections::BTreeMap;

use crate::programs::{outcome, switchboard};

/// The lines of the story.
const LINES: [&str; 6] = [
    "acolyte",
    "connectonion",
    "exoclaw",
    "smarthole",
    "snek herald",
    "snek zoe",
];

/// What the tour prints. It has to end well, with nothing to complain of.
fn tour(arguments: &[&str]) -> String {
    let mut tour = switchboard("tour");
    tour.args(arguments);
    let (code, out, err) = outcome(tour);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    out
}

/// All of these, one after the other.
fn assert_in_order(out: &str, expected: &[&str]) {
    let mut rest = out;
    for expected in expected {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("no {expected:?} where it belongs in\n{out}"));
        rest = &rest[at + expected.len()..];
    }
}

/// A line without its time: who, which way or `*`, and what. `None` for titles and notes.
fn parse(line: &str) -> Option<(&str, &str, &str)> {
    let (time, line) = line.trim_start().split_once("s ")?;
    time.parse::<f64>().ok()?;
    let arrows = ["->", "<-", "*"];
    let places = arrows.map(|arrow| Some((line.find(&format!(" {arrow} "))?, arrow)));
    let (at, arrow) = places.into_iter().flatten().min()?;
    Some((line[..at].trim(), arrow, &line[at + arrow.len() + 2..]))
}

/// What everybody sends, gets and goes through, ports and ids replaced.
fn by_name(out: &str) -> BTreeMap<&str, Vec<String>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (who, arrow, what) in out.lines().filter_map(parse) {
        let words = what.split(' ').map(|word| {
            let id = word.trim_end_matches(',').strip_suffix('…');
            let is_id = id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let is_url = word.contains("://127.0.0.1:");
            if is_id || is_url { "..." } else { word }
        });
        let words: Vec<_> = words.collect();
        let line = format!("{arrow} {}", words.join(" "));
        all.entry(who).or_default().push(line);
    }
    all
}

#[test]
fn the_tour_tells_one_story_with_five_protocols() {
    let out = tour(&[]);
    assert_in_order(
        &out,
        &[
            "1. Five servers",
            r#"snek herald -> login("***")"#,
            r#"snek zoe -> login("***")"#,
            "acolyte * listens on http://127.0.0.1:",
            "exoclaw -> token ***",
            "exoclaw <- hello, version",
            "connectonion -> CONNECT as 0x",
            "connectonion <- CONNECTED ",
            "smarthole -> registers lamps",
            "smarthole -> registers assistant",
            "2. In the channel",
            r#"snek zoe -> send_message("general","@Herald join",true)"#,
            "snek zoe <- #general Herald: here I am",
            "3. A person speaks",
            r#"person * says "make the roses in my poem blue""#,
            r#"smarthole <- #1 "make the roses in my poem blue" (voice, "#,
            r#"connectonion -> INPUT "make the roses in my poem blue""#,
            "exoclaw -> #1 chat.send as websocket/agent/main: make the roses",
            r#"acolyte -> #1 chat.start "make the roses in my poem blue""#,
            "acolyte <-   #1 runs",
            "4. The line to the agent is cut",
            "connectonion * the line is cut",
            r#"acolyte <-   #1 file-read({"path":"poem.txt"})"#,
            "acolyte <-   #1   1 - Roses are red,",
            "acolyte <-   #1   1 + Roses are blue,",
            r#"acolyte <-   #1 done "changed poem.txt (+1 -1)""#,
            r#"snek herald -> send_message("general","News! changed poem.txt (+1 -1)",true)"#,
            "exoclaw <-   #1 tool_result: the channel knows",
            "exoclaw <-   #1 done",
            "5. The line is there again",
            "connectonion * the line is mended",
            ", after the last event",
            ", running",
            "connectonion <-   tool_result It is done",
            "connectonion <-   approval_needed write_file(",
            "connectonion ->   APPROVAL_RESPONSE approved, once",
            r#"connectonion <- OUTPUT "It is done: changed poem.txt (+1 -1), and the channel knows.""#,
            "smarthole ->   #1 notification: Done: It is done",
            r#"person * reads "It is done"#,
            "6. Everybody goes home",
            "smarthole -> (close",
            "connectonion -> (close",
            "exoclaw -> (close",
            "acolyte -> (close",
            "snek zoe -> (close",
            "All as expected",
            "1 line cut and healed",
            "the person read",
        ],
    );
    // She and the gateway hear of it at the same time.
    let cut = "4. The line to the agent is cut";
    let news = "snek zoe <- #general Herald: News! changed poem.txt (+1 -1)";
    assert_in_order(&out, &[cut, news, "5. The line is there again"]);
}

#[test]
fn the_story_has_frames_both_ways_on_every_line_and_the_same_ones_each_time() {
    let (out, again) = (tour(&[]), tour(&[]));
    let (all, others) = (by_name(&out), by_name(&again));
    for line in LINES {
        let frames = all
            .get(line)
            .unwrap_or_else(|| panic!("no {line} in\n{out}"));
        for arrow in ["->", "<-"] {
            let both = frames.iter().any(|frame| frame.starts_with(arrow));
            assert!(both, "no {line} {arrow} in\n{out}");
        }
        assert_eq!(frames, &others[line], "{line}\n{out}\n{again}");
    }
    assert_eq!(all.keys().len(), others.keys().len());
}

#[test]
fn the_cut_line_of_the_story_loses_nothing_and_does_nothing_twice() {
    let out = tour(&[]);
    let line = &by_name(&out)["connectonion"];
    let at = |what: &str| {
        let at = line.iter().position(|frame| frame.starts_with(what));
        at.unwrap_or_else(|| panic!("no {what:?} in\n{out}"))
    };
    let (cut, mended) = (at("* the line is cut"), at("* the line is mended"));
    assert_eq!(cut + 1, mended, "frames on a line that is cut\n{out}");
    assert!(at("-> INPUT") < cut && mended < at("<- OUTPUT"), "{out}");
    assert!(at("<-   tool_call gateway") < cut && mended < at("<-   tool_result It"));
    for once in [
        "-> INPUT",
        "-> #1 chat.send",
        "-> #1 chat.start",
        r#"-> send_message("general","News!"#,
        "<-   tool_call gateway(",
        "<-   tool_result It is done",
        "<-   tool_call write_file(",
        "<- OUTPUT",
    ] {
        assert_eq!(out.matches(once).count(), 1, "{once:?} in\n{out}");
    }
    let back = line
        .iter()
        .filter(|line| line.contains("CONNECTED"))
        .count();
    assert_eq!(back, 2, "{out}");
}

#[cfg(feature = "nats")]
#[test]
fn the_cluster_of_the_tour_keeps_one_order_while_servers_are_killed() {
    let out = tour(&["cluster"]);
    assert_in_order(
        &out,
        &[
            "1. A NATS server and three chat servers",
            "2. One channel, and everybody speaks at once",
            "all hear the same: ",
            "3. Ann's server is killed",
            "node * SIGKILL",
            r#"ann -> login("***")"#,
            "everybody hears her",
            "4. The NATS server is killed",
            "nats * SIGKILL",
            r#"bob -> send_message("general","is anybody there?",true)"#,
            "nats * is there again",
            "bob <- #general bob: is anybody there?",
            "5. An agent on three hosts",
            "6. The host is killed in mid-answer",
            r#"dan -> INPUT "!slow 20 50""#,
            "node * SIGKILL",
            "run the stored prompt again",
            "All as expected",
        ],
    );
    assert!(!out.contains("sesame"), "{out}");
}

#[test]
fn the_tour_shows_no_secret_and_no_colours_in_a_pipe() {
    let story = tour(&[]);
    for hidden in [
        "password",
        "trumpet",
        "clover",
        "open barley",
        "wonderland",
        "sesame",
        "a guess",
        "red onion",
        "blue onion",
        "0pen-sesam1",
        "0pen-barley",
        "\x1b",
    ] {
        assert!(!story.contains(hidden), "{hidden:?} in\n{story}");
    }
}

#[cfg(unix)]
#[test]
fn a_tour_that_does_not_go_as_it_should_says_why_and_ends_with_1() {
    let mut tour = switchboard("tour");
    // No folder can be made there.
    tour.env("TMPDIR", "/dev/null");
    let (code, out, err) = outcome(tour);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.starts_with("error: "), "{err}");
    assert!(!out.contains("All as expected"), "{out}");
}

#[test]
fn the_tour_explains_itself_and_refuses_what_it_does_not_know() {
    let mut help = switchboard("tour");
    help.arg("--help");
    let (code, out, _) = outcome(help);
    assert_eq!(code, Some(0));
    assert!(out.contains("Examples ("), "{out}");
    for wrong in [&["--fast"][..], &["morse"]] {
        let mut tour = switchboard("tour");
        tour.args(wrong);
        assert_eq!(outcome(tour).0, Some(2), "{wrong:?}");
    }
}
