//! Tests: a chat with the skill `ask-first` asks before it edits or runs, and does what was decided.

use std::time::UNIX_EPOCH;

use acolyte_proto::frame::{HistoryItem, Role, Skill};
use serde_json::json;
use tokio::time::{advance, pause};

use super::*;

/// A chat of the session that asks first.
async fn chat(place: &Fixture, text: &str) -> (Vec<String>, Reply) {
    let (events, outcome) = place.ask(&asking(text), &Seen::new()).await;
    (told(&events), outcome.unwrap())
}

fn asking(text: &str) -> ChatRequest {
    let mut request = ChatRequest::new(text.to_owned(), "scripted");
    request.session_id = Some("sess_a".parse().unwrap());
    request.active_skills = vec![Skill::new(ASK_FIRST, ask_first::INSTRUCTIONS)];
    request
}

/// What a client says who was told this last.
fn after(said: &str, text: &str) -> ChatRequest {
    let id = "msg_a".parse().unwrap();
    let item = HistoryItem::new(id, Role::Assistant, said.to_owned(), UNIX_EPOCH);
    asking(text).with_history_item(&item).unwrap()
}

fn is_question(reply: &Reply) -> bool {
    reply.state.as_deref() == Some(AWAITING_INPUT)
}

/// The chat asks, in these words among others.
#[track_caller]
fn assert_asks(reply: &Reply, part: &str) {
    let output = &reply.output;
    assert!(is_question(reply) && output.contains(part), "{output}");
}

/// The chat asks nothing, and this happens.
#[track_caller]
fn assert_does((events, reply): &(Vec<String>, Reply), part: &str) {
    assert!(!is_question(reply) && has(events, part), "{events:?}");
}

fn file_create(content: &str) -> String {
    let call = json!({ "path": "b.txt", "content": content });
    format!("/call file-create {call}")
}

fn file_edit(find: &str, replace: &str) -> String {
    let call = json!({ "path": "a.txt", "find": find, "replace": replace });
    format!("/call file-edit {call}")
}

fn has(told: &[String], part: &str) -> bool {
    told.iter().any(|line| line.contains(part))
}

#[tokio::test]
async fn a_file_is_changed_after_a_yes_only() {
    let place = Fixture::new();
    let file = || fs::read_to_string(place.0.join("a.txt")).unwrap();
    let (events, reply) = chat(&place, &file_edit("two", "2")).await;
    assert!(is_question(&reply) && reply.output_streamed == Some(false));
    assert!(
        reply
            .output
            .starts_with("I want to change `a.txt` (+1 -1):")
    );
    assert!(
        reply.output.contains("```diff\n--- a/a.txt\n"),
        "{}",
        reply.output
    );
    assert!(reply.output.contains("\n-two\n+2\n```"), "{}", reply.output);
    assert!(!has(&events, "file-edit") && reply.tool_calls.is_empty());
    assert_eq!(file(), "one\ntwo\n");
    let done = chat(&place, "yes").await;
    assert_does(&done, "call_1 ok");
    assert_eq!((done.1.tool_calls.len(), file().as_str()), (1, "one\n2\n"));
    // The answer was for that one.
    let (_, reply) = chat(&place, &file_edit("one", "1")).await;
    assert!(is_question(&reply));
    let declined = chat(&place, "no, rather not").await;
    assert_does(&declined, "call_1 E_DECLINED");
    let (_, reply) = declined;
    assert!(reply.output.contains("rather not"), "{}", reply.output);
    assert_eq!(file(), "one\n2\n");
}

#[tokio::test]
async fn a_declined_step_is_reported_with_its_arguments() {
    let place = Fixture::new();
    chat(&place, "/call shell-run {\"command\":\"echo one\"}").await;
    let (events, _) = place.ask(&asking("no"), &Seen::new()).await;
    let calls = events.iter().filter_map(|event| match event {
        Event::ToolCall(call) => Some(call.args.get()),
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), [r#"{"command":"echo one"}"#]);
}

#[tokio::test]
async fn tools_that_change_nothing_need_no_approval() {
    let place = Fixture::new();
    let (events, reply) = chat(&place, &file_create("hello\n")).await;
    assert!(is_question(&reply), "{events:?}");
    chat(&place, "yes").await;
    assert_does(&chat(&place, &file_create("hello\n")).await, "call_1 ok");
}

#[tokio::test]
async fn a_change_after_the_question_needs_another_approval() {
    let place = Fixture::new();
    let file = place.0.join("a.txt");
    let edit = "/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}";
    chat(&place, edit).await;
    fs::write(&file, "mine\ntwo\n").unwrap();
    let (_, reply) = chat(&place, "yes").await;
    assert_asks(&reply, " mine\n-two\n+2");
    let (_, reply) = chat(&place, "yes").await;
    assert!(!is_question(&reply), "{}", reply.output);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n2\n");
    // What is new by now is overwritten by nobody.
    chat(&place, &file_create("new\n")).await;
    fs::write(place.0.join("b.txt"), "mine\n").unwrap();
    let (events, _) = chat(&place, "yes").await;
    assert!(has(&events, "call_1 E_FILE_CHANGED"), "{events:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn always_covers_one_kind_of_step_in_one_session() {
    let place = Fixture::new();
    let plan = "/call file-read {\"path\":\"a.txt\"}\n/call shell-run {\"command\":\"echo one\"}\n/call shell-run {\"command\":\"echo two\"}\n/call file-create {\"path\":\"c.txt\",\"content\":\"c\\n\"}";
    let (events, reply) = chat(&place, plan).await;
    assert!(
        is_question(&reply) && has(&events, "file-read"),
        "{events:?}"
    );
    assert!(
        reply.output.contains("```sh\necho one\n```"),
        "{}",
        reply.output
    );
    let (events, reply) = chat(&place, "always").await;
    assert!(
        has(&events, "echo one") && has(&events, "echo two"),
        "{events:?}"
    );
    assert_asks(&reply, "create `c.txt`");
    let mut other = ChatRequest::new(
        "/call shell-run {\"command\":\"ls\"}".to_owned(),
        "scripted",
    );
    other.session_id = Some("sess_b".parse().unwrap());
    other.active_skills = vec![Skill::new(ASK_FIRST, "")];
    let (_, outcome) = place.ask(&other, &Seen::new()).await;
    assert!(is_question(&outcome.unwrap()));
    // A new task is no answer to the question that is open, whether it may ask or not.
    other.session_id = Some("sess_a".parse().unwrap());
    for skills in [vec![Skill::new(ASK_FIRST, "")], Vec::new()] {
        other.active_skills = skills;
        let error = place.ask(&other, &Seen::new()).await.1.unwrap_err();
        assert!(error.message.contains("create `c.txt`"), "{error:?}");
    }
    let (_, outcome) = place.ask(&after(&reply.output, "yes"), &Seen::new()).await;
    assert!(!is_question(&outcome.unwrap()) && place.0.join("c.txt").exists());
}

#[tokio::test]
async fn an_answer_belongs_to_the_question_that_its_chat_has_seen() {
    let place = Fixture::new();
    let (_, reply) = chat(&place, "/call shell-run {\"command\":\"touch mine\"}").await;
    let strangers = [
        after("I have asked nothing.", "yes"),
        asking("use b.txt instead"),
        asking("yes"),
    ];
    for request in strangers {
        let (_, outcome) = place.ask(&request, &Seen::new()).await;
        assert!(outcome.unwrap_err().message.contains("another question"));
    }
    // Who has seen it may say anything.
    let (events, outcome) = place
        .ask(&after(&reply.output, "use b.txt instead"), &Seen::new())
        .await;
    assert!(has(&told(&events), "call_1 E_DECLINED"), "{events:?}");
    assert!(outcome.unwrap().output.contains("use b.txt"));
    assert!(!place.0.join("mine").exists());
}

#[tokio::test]
async fn a_long_change_is_read_to_its_end_before_a_yes_counts() {
    let place = Fixture::new();
    let content: String = (0..300).map(|line| format!("line {line}\\n")).collect();
    let call = format!("/call file-create {{\"path\":\"b.txt\",\"content\":\"{content}\"}}");
    let (_, reply) = chat(&place, &call).await;
    assert_asks(&reply, "It has 303 lines");
    let (_, reply) = chat(&place, "yes").await;
    assert_asks(&reply, "lines 1 to 200 of 303");
    let (_, reply) = chat(&place, "yes").await;
    assert_asks(&reply, "+line 299");
    assert!(!place.0.join("b.txt").exists());
    chat(&place, "yes").await;
    assert!(place.0.join("b.txt").exists());
}

#[tokio::test]
async fn an_undo_puts_back_what_the_session_has_changed_last() {
    let place = Fixture::new();
    let edit = |find, put| {
        let call = json!({ "path": "a.txt", "find": find, "replace": put });
        let mut request = asking(&format!("/call file-edit {call}"));
        request.active_skills.clear();
        request
    };
    let file = || fs::read_to_string(place.0.join("a.txt")).unwrap();
    for (find, put) in [("one", "1"), ("two", "2")] {
        place.ask(&edit(find, put), &Seen::new()).await.1.unwrap();
    }
    let undo = |session: Option<&str>| {
        let mut request = ChatRequest::new(UNDO.to_owned(), "scripted");
        request.session_id = session.map(|id| id.parse().unwrap());
        request
    };
    let said =
        async |request: ChatRequest| place.ask(&request, &Seen::new()).await.1.unwrap().output;
    assert!(
        said(undo(Some("sess_b")))
            .await
            .contains("no file was changed")
    );
    assert_eq!(said(undo(Some("sess_a"))).await, "put back a.txt (+1 -1)");
    assert_eq!(file(), "1\ntwo\n");
    assert_eq!(said(undo(None)).await, "put back a.txt (+1 -1)");
    assert_eq!(file(), "one\ntwo\n");
}

#[tokio::test]
async fn a_question_expires_and_a_call_that_would_fail_is_not_asked_about() {
    let place = Fixture::new();
    chat(&place, &file_create("new\n")).await;
    pause();
    advance(Duration::from_secs(60 * 60)).await;
    let (_, reply) = chat(&place, "yes").await;
    assert!(!is_question(&reply) && !place.0.join("b.txt").exists());
    assert_does(
        &chat(&place, &file_edit("nothing", "2")).await,
        "E_EDIT_NO_MATCH",
    );
}
