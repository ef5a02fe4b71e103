//! The tour, as a newcomer starts it.

use crate::programs::{outcome, program};

#[test]
fn the_tour_shows_a_bot_and_a_gateway_and_ends_well() {
    let (code, out, err) = outcome(program(env!("CARGO_BIN_EXE_tour")));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let mut rest = out.as_str();
    for expected in [
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
        "All as expected",
        "1 token refused",
    ] {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("no {expected:?} where it belongs in\n{out}"));
        rest = &rest[at + expected.len()..];
    }
}

#[test]
fn the_tour_shows_no_secret_and_no_colours_in_a_pipe() {
    let (_, out, _) = outcome(program(env!("CARGO_BIN_EXE_tour")));
    for hidden in ["password", "wonderland", "sesame", "a guess", "\x1b"] {
        assert!(!out.contains(hidden), "{hidden:?} in\n{out}");
    }
}

#[test]
fn the_tour_explains_itself_and_refuses_what_it_does_not_know() {
    let mut help = program(env!("CARGO_BIN_EXE_tour"));
    help.arg("--help");
    let (code, out, _) = outcome(help);
    assert_eq!(code, Some(0));
    assert!(out.contains("Examples:"), "{out}");
    let mut wrong = program(env!("CARGO_BIN_EXE_tour"));
    wrong.arg("--fast");
    assert_eq!(outcome(wrong).0, Some(2));
}
