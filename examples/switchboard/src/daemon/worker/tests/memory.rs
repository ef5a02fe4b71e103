//! What a daemon remembers of its conversations.

use super::*;

/// Returns what is known in this conversation, about this resource.
fn known(place: &Place, session: Option<&str>, resource: Option<&str>) -> String {
    let mut request = ChatRequest::new("what do you know?", "scripted");
    request.session_id = session.map(|id| id.parse().unwrap());
    request.resource_id = resource.map(|id| id.parse().unwrap());
    place.1.instructions(&request)
}

#[tokio::test]
async fn a_conversation_is_remembered_and_found_by_all_of_its_resource() {
    let mut request = ChatRequest::new("hello\n you", "scripted");
    for (session, resource, knows) in [
        // Without a conversation nothing is kept.
        (None, Some("user_a"), &[][..]),
        (
            Some("sess_a"),
            Some("user_a"),
            &[(Some("sess_b"), Some("user_a")), (None, Some("user_a"))],
        ),
        (Some("sess_c"), None, &[(Some("sess_c"), None)]),
    ] {
        let place = Place::new("memory");
        let nothing = known(&place, None, None);
        request.session_id = session.map(|id: &str| id.parse().unwrap());
        request.resource_id = resource.map(|id: &str| id.parse().unwrap());
        let (_, reply) = place.ask(&request, &Seen::new()).await;
        reply.unwrap();
        for (session, resource) in knows {
            let told = known(&place, *session, *resource);
            let fact = "asked: hello you; done: hello you";
            assert!(told.contains(fact), "{session:?} {resource:?}: {told}");
        }
        for (session, resource) in [
            (None, None),
            (Some("sess_a"), None),
            (Some("sess_a"), Some("proj_other")),
        ] {
            assert_eq!(known(&place, session, resource), nothing);
        }
    }
}

#[tokio::test]
async fn a_history_is_not_recalled_twice() {
    let place = Place::new("recall");
    let mut request = ChatRequest::new("hello", "scripted");
    request.session_id = "sess_a".parse().ok();
    let (_, reply) = place.ask(&request, &Seen::new()).await;
    let reply = reply.unwrap();
    assert!(place.1.memory.recall(&request).is_some());
    request.history = vec![rpc_core::Json::EMPTY_OBJECT];
    assert_eq!(place.1.memory.recall(&request), None);
    for number in 0..1_000 {
        request.message = format!("question {number}").into();
        place.1.memory.keep(&request, &reply);
    }
    request.history.clear();
    let told = place.1.memory.recall(&request).unwrap();
    assert_eq!(told.lines().count(), 1 + 20);
    assert!(told.contains("question 999;") && told.contains("question 980;"));
    for number in 0..64 {
        request.session_id = format!("sess_x{number}").parse().ok();
        place.1.memory.keep(&request, &reply);
    }
    request.session_id = "sess_a".parse().ok();
    assert_eq!(place.1.memory.recall(&request), None);
}

#[test]
fn an_answer_in_a_history_has_what_its_provider_gave_with_it() {
    let memory = Memory::default();
    let session = |id: &str| id.parse::<SessionId>().unwrap();
    let (one, other) = (session("sess_a"), session("sess_b"));
    let mut answer = ChatMessage::assistant("so ");
    answer
        .extra
        .insert("reasoning_content".to_owned(), "hm".into());
    memory.keep_given(Some(&one), answer.clone());
    memory.keep_given(None, answer.clone());
    let plain = || [ChatMessage::user("so"), ChatMessage::assistant("so")];
    for (of, is_given) in [(Some(&one), true), (Some(&other), false), (None, false)] {
        let mut past = plain();
        memory.give_back(of, &mut past);
        assert_eq!(past[0], plain()[0]);
        assert_eq!(past[1] == answer, is_given, "{of:?}");
    }
    // The oldest goes first.
    let long = "x".repeat(1024 * 1024);
    for number in 0..16 {
        let mut answer = ChatMessage::assistant(format!("{number}"));
        answer.extra.insert("r".to_owned(), long.clone().into());
        memory.keep_given(Some(&one), answer);
    }
    let mut past = plain();
    memory.give_back(Some(&one), &mut past);
    assert_eq!(past, plain());
}
