//! A runtime under virtual time: clients that say what they are told, over lines in memory.

use connectonion_proto::limits::AUTHENTICATE_FIRST;
use serde_json::json;

use crate::staff::{Client, client_key, connect, input, now, runtime, types};

#[tokio::test(start_paused = true)]
async fn a_prompt_is_answered() {
    let runtime = runtime();
    let (mut client, connected) = Client::inside(&runtime, json!({})).await;
    assert_eq!(connected["status"], "new");
    client.send(&input("hello")).await;
    let frames = client.recv_until("OUTPUT").await;
    assert_eq!(types(&frames), ["user_input", "OUTPUT"]);
    let event = &frames[0];
    assert_eq!(event["content"], "hello");
    assert_eq!(event["turn"], 1);
    assert_eq!(event["session_id"], connected["session_id"]);
    assert!(event["id"].is_string() && event["ts"].is_number());
    let output = &frames[1];
    assert_eq!(output["result"], "echo: hello");
    assert_eq!(output["session_id"], connected["session_id"]);
    assert!(output["duration_ms"].is_u64());
    assert_eq!(
        output["session"]["messages"],
        json!([{"role":"user","content":"hello"},{"role":"assistant","content":"echo: hello"}])
    );
    assert_eq!(output["session"]["turn"], 1);
    assert_eq!(output["session"]["iteration"], 1);
    assert_eq!(
        output["chat_items"],
        json!([{"id":"msg-0","type":"user","content":"hello"},
               {"id":"msg-1","type":"agent","content":"echo: hello"}])
    );
    assert_eq!(client.ask("count").await, "3 messages");
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_and_its_timed_result_are_sent() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("break the cup")).await;
    let frames = client.recv_until("OUTPUT").await;
    let expected = ["user_input", "tool_call", "tool_result", "OUTPUT"];
    assert_eq!(types(&frames), expected);
    assert_eq!(frames[1]["name"], "break");
    let result = &frames[2];
    assert_eq!(
        (&result["tool_id"], &result["name"]),
        (&json!("c1"), &json!("break"))
    );
    assert_eq!(
        (&result["status"], &result["args"]),
        (&json!("error"), &json!([]))
    );
    assert_eq!(
        (&result["result"], &result["error"]),
        (&json!("the cup"), &json!("the cup"))
    );
    assert_eq!(result["timing_ms"], 1000);
    assert_eq!(frames[3]["result"], "the cup");
    client.send(&input("tool")).await;
    let frames = client.recv_until("OUTPUT").await;
    let result = frames
        .iter()
        .find(|it| it["type"] == "tool_result")
        .unwrap();
    assert_eq!(
        (&result["status"], &result["result"]),
        (&json!("success"), &json!("5"))
    );
    assert!(result.get("error").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_reads_the_conversation_as_values_of_its_own_type() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.ask("hello").await;
    let said = client.ask("recall").await;
    assert_eq!(said, "user: hello, assistant: echo: hello, user: recall");
    let refused = client.ask("recall numbers").await;
    assert!(refused.starts_with("invalid message: "), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn only_connect_is_accepted_first() {
    let runtime = runtime();
    let mut client = Client::open(&runtime);
    for kind in ["INPUT", "INTERRUPT", "ONBOARD_SUBMIT"] {
        assert_eq!(
            client.refused(&json!({"type": kind, "prompt": "x"})).await,
            AUTHENTICATE_FIRST
        );
    }
    client.send(&json!({"type": "SEAL"})).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "unknown message type: 'SEAL'");
    client.send(&connect(&client_key(), json!({}))).await;
    client.recv_type("CONNECTED").await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_frame_is_answered_and_the_connection_stays() {
    let runtime = runtime();
    let mut client = Client::open(&runtime);
    client.send_text("{type: 'INPUT'}").await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(
        error["message"],
        "Invalid JSON: not valid JSON at line 1 col 2 (pos 1)"
    );
    assert_eq!(error["received"], "{type: 'INPUT'}");
    for text in ["[1]", "null", "\"x\"", "", "{}", r#"{"type":7}"#] {
        client.send_text(text).await;
        client.recv_type("ERROR").await;
    }
    client.send(&connect(&client_key(), json!({}))).await;
    client.recv_type("CONNECTED").await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_signature_is_refused_and_a_good_one_may_follow() {
    let runtime = runtime();
    let mut client = Client::open(&runtime);
    let mut bad = connect(&client_key(), json!({}));
    bad["payload"]["timestamp"] = json!(now() + 1.0);
    client.send(&bad).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "unauthorized: invalid signature");
    client.send(&connect(&client_key(), json!({}))).await;
    client.recv_type("CONNECTED").await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_gets_what_it_missed() {
    let runtime = runtime();
    let (mut first, connected) = Client::inside(&runtime, json!({})).await;
    let id = connected["session_id"].clone();
    first.send(&input("listen")).await;
    let seen = first.recv_type("user_input").await;
    drop(first);
    // All of the run, without an id; nothing, with the last one.
    let (mut all, connected) = Client::inside(&runtime, json!({"session_id": id})).await;
    assert_eq!(connected["status"], "running");
    assert!(connected.get("session").is_none());
    assert_eq!(all.recv().await, seen);
    let known = json!({"session_id": id, "last_msg_id": seen["id"]});
    let (mut rest, _) = Client::inside(&runtime, known).await;
    rest.recv_nothing().await;
    rest.send(&input("psst")).await;
    let ack = rest.recv_type("RUNTIME_INPUT_ACK").await;
    assert_eq!(ack["session_id"], id);
    for client in [&mut all, &mut rest] {
        let frames = client.recv_until("OUTPUT").await;
        assert_eq!(types(&frames), ["user_input", "OUTPUT"]);
        assert_eq!(frames[0]["id"], ack["id"]);
        assert_eq!(frames[0]["runtime_input"], true);
        assert_eq!(frames[1]["result"], "heard psst");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_away_gets_the_newer_conversation() {
    let runtime = runtime();
    let (mut client, connected) = Client::inside(&runtime, json!({})).await;
    let id = connected["session_id"].clone();
    client.send(&input("sleep 5")).await;
    client.recv_type("user_input").await;
    drop(client);
    tokio::time::sleep(crate::staff::SECOND * 10).await;
    let old = json!({"session_id": id, "session": {"messages": []}});
    let (mut client, connected) = Client::inside(&runtime, old).await;
    assert_eq!(connected["status"], "connected");
    assert_eq!(connected["server_newer"], true);
    assert_eq!(connected["session"]["messages"][1]["content"], "slept 5");
    assert_eq!(connected["chat_items"][1]["content"], "slept 5");
    client.send(&input("count")).await;
    let output = client.output().await;
    assert_eq!(output["result"], "3 messages");
    drop(client);
    // Who has missed the last turn gets it, and who has the newest gets nothing.
    let stale = json!({"session_id": id, "session": connected["session"]});
    let (client, connected) = Client::inside(&runtime, stale).await;
    assert_eq!(connected["session"], output["session"]);
    drop(client);
    let newest = json!({"session_id": id, "session": output["session"]});
    let (_client, connected) = Client::inside(&runtime, newest).await;
    for member in ["server_newer", "session", "chat_items"] {
        assert!(connected.get(member).is_none(), "{member}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_agent_sees_the_clients_conversation() {
    let runtime = runtime();
    let session = json!({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],
        "turn": 1, "mode": "plan", "theirs": {"z": 1}});
    let (mut client, connected) = Client::inside(&runtime, json!({"session": session})).await;
    assert!(connected.get("server_newer").is_none());
    assert_eq!(client.ask("count").await, "3 messages");
    client.send(&input("mode")).await;
    let output = client.output().await;
    assert_eq!(output["result"], "mode plan");
    assert_eq!(output["session"]["theirs"], json!({"z": 1}));
    assert_eq!(output["session"]["turn"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_comes_with_the_prompt_is_used_if_connect_brought_none() {
    let runtime = runtime();
    let theirs = |said: &str| json!({"messages": [{"role": "user", "content": said}], "turn": 1});
    let with_session = |said| {
        let mut frame = input("count");
        frame["session"] = theirs(said);
        frame
    };
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&with_session("a")).await;
    let output = client.output().await;
    assert_eq!(output["session"]["messages"][0]["content"], "a");
    assert_eq!(output["session"]["turn"], 2);

    let (mut client, _) = Client::inside(&runtime, json!({"session": theirs("b")})).await;
    client.send(&with_session("c")).await;
    let output = client.output().await;
    assert_eq!(output["session"]["messages"][0]["content"], "b");
}

#[tokio::test(start_paused = true)]
async fn prompts_an_agent_never_reads_are_still_answered() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("sleep 2")).await;
    client.recv_type("user_input").await;
    client.send(&input("and")).await;
    client.recv_type("RUNTIME_INPUT_ACK").await;
    let frames = client.recv_until("OUTPUT").await;
    assert_eq!(types(&frames), ["assistant", "user_input", "OUTPUT"]);
    assert_eq!(frames[2]["result"], "echo: and");
    let messages = frames[2]["session"]["messages"].as_array().unwrap();
    let said: Vec<_> = messages
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["sleep 2", "slept 2", "and", "echo: and"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_survives_its_connection() {
    let runtime = runtime();
    let (mut client, connected) = Client::inside(&runtime, json!({})).await;
    let id = connected["session_id"].clone();
    client.send(&input("approve /etc")).await;
    client.recv_until("approval_needed").await;
    drop(client);
    let (mut client, connected) = Client::inside(&runtime, json!({"session_id": id})).await;
    assert_eq!(connected["status"], "running");
    let question = client.recv_until("approval_needed").await.pop().unwrap();
    let answer = json!({"type":"APPROVAL_RESPONSE","approved":true,"request_id":question["id"]});
    client.send(&answer).await;
    assert_eq!(client.output().await["result"], "approved true");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_run_after_its_step() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&json!({"type":"INTERRUPT"})).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "interrupt requires an active turn");
    client.send(&input("wait")).await;
    client.recv_type("user_input").await;
    client.send(&json!({"type":"INTERRUPT"})).await;
    let output = client.output().await;
    assert_eq!(output["result"], "What would you like me to do?");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_leaves_a_question_open() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client.send(&input("ask sure?")).await;
    client.recv_until("ask_user").await;
    client.send(&json!({"type":"INTERRUPT"})).await;
    client
        .send(&json!({"type":"ASK_USER_RESPONSE","answer":"yes"}))
        .await;
    assert_eq!(client.output().await["result"], "answer \"yes\"");
}

#[tokio::test(start_paused = true)]
async fn a_mode_change_applies_at_once_to_all_clients() {
    let runtime = runtime();
    let (mut one, connected) = Client::inside(&runtime, json!({})).await;
    let same = json!({"session_id": connected["session_id"]});
    let (mut other, _) = Client::inside(&runtime, same).await;
    one.send(&json!({"type":"mode_change","mode":"accept_edits"}))
        .await;
    for client in [&mut one, &mut other] {
        let changed = client.recv_type("mode_changed").await;
        assert_eq!(changed["mode"], "accept_edits");
        assert_eq!(changed["triggered_by"], "user");
    }
    assert_eq!(one.ask("mode").await, "mode accept_edits");
    other.output().await;
    one.send(&input("switch")).await;
    let frames = one.recv_until("OUTPUT").await;
    assert_eq!(types(&frames), ["user_input", "mode_changed", "OUTPUT"]);
    assert_eq!(frames[2]["session"]["mode"], "plan");
}

#[tokio::test(start_paused = true)]
async fn a_returning_client_gets_the_current_mode() {
    let runtime = runtime();
    let send = |mode: &str| json!({"type": "mode_change", "mode": mode});
    let (mut client, connected) = Client::inside(&runtime, json!({})).await;
    client.send(&send("ulw")).await;
    client.recv_type("mode_changed").await;
    client.send(&input("hello")).await;
    let output = client.output().await;
    assert_eq!(output["session"]["mode"], "ulw");
    client.send(&send("plan")).await;
    client.send(&send("safe")).await;
    client.recv_type("mode_changed").await;
    client.recv_type("mode_changed").await;
    drop(client);
    // It says what it knows.
    let same = json!({"session_id": connected["session_id"], "session": output["session"]});
    let (mut client, connected) = Client::inside(&runtime, same).await;
    assert_eq!(connected["session"]["mode"], "safe");
    let messages = &output["session"]["messages"];
    assert_eq!(connected["session"]["messages"], *messages);
    assert_eq!(client.ask("mode").await, "mode safe");
}

#[tokio::test(start_paused = true)]
async fn an_agent_gets_the_allowed_number_of_turns() {
    let runtime = runtime();
    let (mut client, connected) = Client::inside(&runtime, json!({})).await;
    assert_eq!(client.ask("turns").await, "turns None");
    // Between two runs, and during one; with the number that was said last.
    client
        .send(&json!({"type": "mode_change", "mode": "ulw", "turns": 7}))
        .await;
    assert_eq!(client.recv_type("mode_changed").await["turns_left"], 7);
    assert_eq!(client.ask("turns").await, "turns Some(7)");
    client.send(&input("ask more?")).await;
    client.recv_until("ask_user").await;
    client
        .send(&json!({"type": "mode_change", "mode": "ulw", "turns": 9}))
        .await;
    client
        .send(&json!({"type": "ASK_USER_RESPONSE", "answer": "yes"}))
        .await;
    let output = client.output().await;
    assert_eq!(output["session"]["ulw_turns"], 9);
    // A client that was away has them too.
    drop(client);
    let same = json!({"session_id": connected["session_id"], "session": output["session"]});
    let (mut client, _) = Client::inside(&runtime, same).await;
    assert_eq!(client.ask("turns").await, "turns Some(9)");
    for (change, expected) in [
        (json!({"mode": "safe", "turns": 3}), "turns None"),
        (json!({"mode": "ulw", "turns": 2}), "turns Some(2)"),
        (json!({"mode": "ulw"}), "turns None"),
    ] {
        let mut change = change;
        change["type"] = json!("mode_change");
        client.send(&change).await;
        client.recv_type("mode_changed").await;
        assert_eq!(client.ask("turns").await, expected, "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_mode_is_refused() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    client
        .send(&json!({"type": "mode_change", "mode": "plan"}))
        .await;
    client.recv_type("mode_changed").await;
    let long = "x".repeat(5000);
    for (mode, shown) in [("wild", "'wild'"), ("Plan", "'Plan'"), (&long, "'xxx")] {
        client
            .send(&json!({"type": "mode_change", "mode": mode}))
            .await;
        let error = client.recv_type("ERROR").await;
        let words = error["message"].as_str().unwrap();
        assert!(words.starts_with(&format!("Unsupported mode: {shown}")));
        assert!(words.len() < 100, "{words}");
    }
    assert_eq!(client.ask("mode").await, "mode plan");
    // Nor is one the answer to what is to become of the mode; the question stays open.
    client.send(&input("reached")).await;
    client.recv_until("ulw_turns_reached").await;
    let answer =
        |mode: &str| json!({"type": "ULW_RESPONSE", "action": "switch_mode", "mode": mode});
    client.send(&answer("wild")).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "Unsupported mode: 'wild'");
    client.send(&answer("plan")).await;
    assert_eq!(client.output().await["result"], "go on: switch_mode");
}
