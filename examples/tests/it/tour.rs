//! The tour, as a newcomer starts it.

use crate::programs::{outcome, program};

#[test]
fn the_tour_shows_a_lost_line_that_heals_and_ends_well() {
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
        "All as expected",
    ] {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("no {expected:?} where it belongs in\n{out}"));
        rest = &rest[at + expected.len()..];
    }
}

#[test]
fn the_tour_shows_no_password_and_no_colours_in_a_pipe() {
    let (_, out, _) = outcome(program(env!("CARGO_BIN_EXE_tour")));
    for hidden in ["password", "wonderland", "\x1b"] {
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
