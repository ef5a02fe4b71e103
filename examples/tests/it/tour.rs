//! The tour, as a newcomer starts it.

use crate::programs::{outcome, program};

#[test]
fn the_tour_shows_five_protocols_and_ends_well() {
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
    ] {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("no {expected:?} where it belongs in\n{out}"));
        rest = &rest[at + expected.len()..];
    }
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
fn the_tour_shows_no_secret_and_no_colours_in_a_pipe() {
    let (_, out, _) = outcome(program(env!("CARGO_BIN_EXE_tour")));
    for hidden in [
        "password",
        "wonderland",
        "sesame",
        "a guess",
        "red onion",
        "blue onion",
        "0pen-sesam1",
        "0pen-barley",
        "\x1b",
    ] {
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
