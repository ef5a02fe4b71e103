//! Tests: a chat with the skill `ask-first` asks before it edits or runs, and does what was decided.

use acolyte_proto::frame::Skill;
use tokio::time::{advance, pause};

use super::*;

/// A chat of the session that asks first.
async fn chat(place: &Place, text: &str) -> (Vec<String>, Reply) {
    let (events, outcome) = place.ask(&asking(text), &Seen::new()).await;
    (told(&events), outcome.unwrap())
}

fn asking(text: &str) -> ChatRequest {
    let mut request = ChatRequest::new(text.to_owned(), "scripted");
    request.session_id = Some("sess_a".parse().unwrap());
    request.active_skills = vec![Skill::new(ASK_FIRST, ask_first::INSTRUCTIONS)];
    request
}

fn is_question(reply: &Reply) -> bool {
    reply.state.as_deref() == Some(AWAITING_INPUT)
}

fn has(told: &[String], part: &str) -> bool {
    told.iter().any(|line| line.contains(part))
}

#[tokio::test]
async fn a_file_is_changed_after_a_yes_only() {
    let place = Place::new("ask-edit");
    let file = || fs::read_to_string(place.0.join("a.txt")).unwrap();
    let (events, reply) = chat(
        &place,
        "/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}",
    )
    .await;
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
    let (events, reply) = chat(&place, "yes").await;
    assert!(
        !is_question(&reply) && has(&events, "call_1 ok"),
        "{events:?}"
    );
    assert_eq!((reply.tool_calls.len(), file().as_str()), (1, "one\n2\n"));
    // The answer was for that one.
    let (_, reply) = chat(
        &place,
        "/call file-edit {\"path\":\"a.txt\",\"find\":\"one\",\"replace\":\"1\"}",
    )
    .await;
    assert!(is_question(&reply));
    let (events, reply) = chat(&place, "rather not").await;
    assert!(
        !is_question(&reply) && has(&events, "call_1 E_DECLINED"),
        "{events:?}"
    );
    assert!(reply.output.contains("rather not"), "{}", reply.output);
    assert_eq!(file(), "one\n2\n");
}

#[tokio::test]
async fn a_declined_step_is_reported_with_its_arguments() {
    let place = Place::new("ask-declined");
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
    let place = Place::new("ask-nothing");
    let (events, reply) = chat(
        &place,
        "/call file-create {\"path\":\"a.txt\",\"content\":\"hello\\n\"}",
    )
    .await;
    assert!(is_question(&reply), "{events:?}");
    chat(&place, "yes").await;
    let (events, reply) = chat(
        &place,
        "/call file-create {\"path\":\"a.txt\",\"content\":\"hello\\n\"}",
    )
    .await;
    assert!(
        !is_question(&reply) && has(&events, "call_1 ok"),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_change_after_the_question_needs_another_approval() {
    let place = Place::new("ask-again");
    chat(
        &place,
        "/call file-create {\"path\":\"b.txt\",\"content\":\"new\\n\"}",
    )
    .await;
    fs::write(place.0.join("b.txt"), "mine\n").unwrap();
    let (_, reply) = chat(&place, "yes").await;
    assert!(
        is_question(&reply) && reply.output.contains("-mine"),
        "{}",
        reply.output
    );
    let (_, reply) = chat(&place, "yes").await;
    assert!(!is_question(&reply), "{}", reply.output);
    assert_eq!(fs::read_to_string(place.0.join("b.txt")).unwrap(), "new\n");
}

#[cfg(unix)]
#[tokio::test]
async fn always_covers_one_kind_of_step_in_one_session() {
    let place = Place::new("ask-always");
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
    assert!(is_question(&reply) && reply.output.contains("create `c.txt`"));
    let mut other = ChatRequest::new(
        "/call shell-run {\"command\":\"ls\"}".to_owned(),
        "scripted",
    );
    other.session_id = Some("sess_b".parse().unwrap());
    other.active_skills = vec![Skill::new(ASK_FIRST, "")];
    let (_, outcome) = place.ask(&other, &Seen::new()).await;
    assert!(is_question(&outcome.unwrap()));
    // Who does not ask for questions gets none, and what waited is forgotten.
    other.session_id = Some("sess_a".parse().unwrap());
    other.active_skills.clear();
    assert!(!is_question(
        &place.ask(&other, &Seen::new()).await.1.unwrap()
    ));
    let (_, reply) = chat(&place, "yes").await;
    assert!(!is_question(&reply) && !place.0.join("c.txt").exists());
}

#[tokio::test]
async fn a_question_expires_and_a_call_that_would_fail_is_not_asked_about() {
    let place = Place::new("ask-expired");
    chat(
        &place,
        "/call file-create {\"path\":\"b.txt\",\"content\":\"new\\n\"}",
    )
    .await;
    pause();
    advance(Duration::from_secs(60 * 60)).await;
    let (_, reply) = chat(&place, "yes").await;
    assert!(!is_question(&reply) && !place.0.join("b.txt").exists());
    let (events, reply) = chat(
        &place,
        "/call file-edit {\"path\":\"a.txt\",\"find\":\"nothing\",\"replace\":\"2\"}",
    )
    .await;
    assert!(
        !is_question(&reply) && has(&events, "E_EDIT_NO_MATCH"),
        "{events:?}"
    );
}
