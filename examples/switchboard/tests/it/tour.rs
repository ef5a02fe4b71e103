//! The tour, as a newcomer starts it.

use std::collections::BTreeMap;

use crate::programs::{outcome, switchboard};
use crate::tree::{read, root};

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

#[test]
fn the_readme_shows_what_the_tour_prints() {
    let readme = read(&root().join("README.md"));
    let (_, rest) = readme.split_once("<!-- tour -->\n```text\n").unwrap();
    let (excerpt, _) = rest.split_once("```").unwrap();
    let out = tour(&[]);
    let mut printed = out.lines().filter_map(parse);
    for line in excerpt.lines() {
        let shown = parse(line).unwrap_or_else(|| panic!("{line:?} is no line of the tour"));
        let found = printed.any(|printed| printed == shown);
        assert!(found, "no {line:?} where it belongs in\n{out}");
    }
    assert!(excerpt.lines().count() >= LINES.len());
}

#[test]
fn the_chapters_show_each_protocol_and_end_well() {
    let out = tour(&["chapters"]);
    assert_in_order(
        &out,
        &[
            r#"helper -> login("***")"#,
            "logged in, connection 1",
            "Helper: pong hello",
            "here I am",
            "(so far)",
            "I count: 1 2 3 - done",
            r#"the model calls search({"query":"dice"})"#,
            r#"search returns {"found":["Alice: dice 2d6"]}"#,
            "Helper: I found «Alice: dice 2d6»",
            "/dot.png",
            "Helper: I see an image of type image/png with 67 bytes",
            "the connection was lost",
            r#"helper -> login("***")"#,
            "logged in, connection 2",
            "UTC",
            "9. A gateway",
            "eve -> token ***",
            "eve <- refused: auth_failed, code 4001",
            "ann -> token ***",
            "ann <- hello, version",
            "ann -> #1 chat.send as websocket/ann/main: !slow 8 60",
            r#"ann <-   #1 text "1 ""#,
            r#"ann <-   #2 ping: "pong""#,
            "ann <-   #1 done",
            r#"tool_use echo({"message":"good morning"})"#,
            "tool_result: good morning",
            "tool_use clock({})",
            r#"text "Ann""#,
            "chat.send as websocket/ann/work: What do you know of me?",
            "chat.send failed: token budget exceeded (session: ",
            "#11 chat.send as websocket/ann/main",
            "#12 chat.send as websocket/ann/work",
            "bo -> #1 chat.send as websocket/bo/main: !slow 100 100",
            "bo -> (close",
            "bo <- hello",
            "17. Goodbye, gateway",
            "ann <-   #13 done",
            "ann <- (close",
            "18. A router",
            "notes -> registers notes: Keeps notes and shopping lists.",
            "notes <- Client 'notes' registered successfully",
            "sieve <- Client 'sieve' registered successfully",
            r#"ann * says "Notes: buy milk""#,
            r#"notes <- #1 "buy milk" (direct)"#,
            "notes ->   #1 ack",
            "notes ->   #1 notification: Done: buy milk",
            "router * shows a notification of notes",
            r#"notes <- #2 "put bread on my shopping list" (voice, "#,
            "notes ->   #2 ack",
            r#"lights <- #3 "switch on the light" ("#,
            "lights ->   #3 reject: The bulb is broken.",
            r#"torch <- #3 "switch on the light" ("#,
            "torch ->   #3 ack",
            r#"alarm <- #4 "wake me"#,
            r#"diary <- #4 "wake me"#,
            "diary ->   #4 ack",
            "router * alarm did not answer in time",
            "23. Something for two",
            r#"says "note that it is dark and bring the torch""#,
            "24. A message",
            r#"sieve <- #6 "keep this" (direct)"#,
            "sieve ->   #6 reject: The client dropped the message without a response",
            "router * the client did not take the message",
            "router * no client was chosen",
            "26. Goodbye, router",
            "27. An agent",
            "ann -> CONNECT as 0x",
            r#"ann <- ONBOARD_REQUIRED ["invite_code"]"#,
            "ann -> ONBOARD_SUBMIT ***",
            "ann <- ERROR Invalid invite code",
            "ann <- ONBOARD_SUCCESS",
            "ann <- CONNECTED ",
            "28. A tool",
            r#"ann <-   tool_call calculate({"expression":"6 * 7"})"#,
            r#"ann <- OUTPUT "42""#,
            r#"ann <-   ask_user "Which colour I like?" ["red","green"]"#,
            r#"ann ->   ASK_USER_RESPONSE "green""#,
            "ann <-   approval_needed write_file(",
            "ann ->   APPROVAL_RESPONSE approved, once",
            "ann <-   tool_result wrote 8 bytes to notes.txt",
            "ann ->   APPROVAL_RESPONSE refused",
            r#"ann <- OUTPUT "buy milk""#,
            "31. The line is cut",
            "ann * the connection was lost",
            ", after the last event",
            ", running",
            "ann <-   tool_result 2",
            r#"ann <-   ask_user "Shall I go on?""#,
            r#"ann <- OUTPUT "2; yes; 6""#,
            r#"ann -> INPUT "Count to 2!""#,
            "ann <-   RUNTIME_INPUT_ACK",
            r#"ann <-   user_input "Count to 2!""#,
            r#"ann <- OUTPUT "I count: 1 2 - done""#,
            "ann -> INTERRUPT",
            r#"ann <- OUTPUT "What would you like me to do?""#,
            "eve -> CONNECT as 0x",
            "eve <- CONNECTED ",
            "35. Goodbye, agent",
            "36. A coding agent",
            "eve * the key is refused",
            "ann <-   #1 status: version 1",
            r#"ann -> #2 chat.start "edit poem.txt: red -> blue""#,
            "ann <-   #2 accepted",
            r#"ann <-   #2 file-edit({"find":"red","path":"poem.txt","replace":"blue"})"#,
            "ann <-   #2   1 - roses are red",
            "ann <-   #2   1 + roses are blue",
            "ann <-   #2 file-edit ok",
            r#"ann <-   #2 done "changed poem.txt (+1 -1)""#,
            "ann <-   #3 file-read failed: E_SANDBOX_VIOLATION",
            "ann <-   #4 checklist: [x] search roses  [~] run cat poem.txt  [ ] rest",
            "ann <-   #4   | roses are blue",
            "ann <-   #6 queued, place 1",
            "ann <-   #7 queued, place 2",
            "ann -> #8 chat.abort #6",
            "ann <-   #6 error",
            "ann <-   #7 queued, place 1",
            "ann <-   #8 aborted",
            "ann -> #9 chat.abort #5",
            "ann <-   #5 error",
            "ann <-   #7 started",
            r#"ann <-   #7 done "I count: 1 2 - done""#,
            "ann <-   #10 task cancelled",
            "42. Goodbye, coding agent",
            "All as expected",
            "1 token refused",
            "7 messages to a router, delivered 9 times, 2 of them again, 6 notifications",
            "8 runs of an agent, 4 questions to a human, 1 line lost and resumed, 2 strangers let in",
            "7 chats of a coding agent, 2 of them aborted, 1 over HTTP, 1 key refused",
        ],
    );
    // Two clients with one message answer in any order.
    for client in ["notes", "torch"] {
        for line in [
            "<- #5 \"note that",
            "->   #5 ack",
            "->   #5 notification: Done: note",
        ] {
            let line = format!("{client} {line}");
            assert!(out.contains(&line), "no {line:?} in\n{out}");
        }
    }
}

#[test]
fn a_chapter_can_be_seen_alone() {
    let out = tour(&["chapters", "acolyte"]);
    assert_in_order(
        &out,
        &["36. A coding agent", "42. Goodbye", "All as expected"],
    );
    assert!(!out.contains("35. "), "{out}");
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
    let (story, chapters) = (tour(&[]), tour(&["chapters"]));
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
        for out in [&story, &chapters] {
            assert!(!out.contains(hidden), "{hidden:?} in\n{out}");
        }
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
    for wrong in [&["--fast"][..], &["chapters", "morse"]] {
        let mut tour = switchboard("tour");
        tour.args(wrong);
        assert_eq!(outcome(tour).0, Some(2), "{wrong:?}");
    }
}
