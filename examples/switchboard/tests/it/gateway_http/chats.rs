//! The chats of the page.

use super::*;

#[tokio::test]
async fn all_pages_of_a_chat_see_the_same_and_later_ones_its_history() {
    let gateway = start(None, None, None).await;
    let (mut one, past) = gateway.looks("").await;
    assert_eq!(past, json!([]));
    let (mut other, _) = gateway.looks("").await;
    assert_eq!(gateway.asks(FIRST, "count to 2").await, "202");
    for page in [&mut one, &mut other] {
        let mut asked = page.next().await;
        assert!(asked["data"]["at"].take().is_u64(), "{asked}");
        let data = json!({ "id": FIRST, "content": "count to 2", "at": null });
        assert_eq!(asked, json!({ "event": "asked", "data": data }));
        assert_eq!(page.until("done").await, "I count: 1 2 - done");
    }
    let (_, mut past) = gateway.looks("").await;
    for member in ["at", "asked", "usage"] {
        assert!(!past[0][member].take().is_null(), "{member}: {past}");
    }
    let turn = json!({
        "id": FIRST, "user": "count to 2", "assistant": "I count: 1 2 - done", "mark": null,
        "at": null, "asked": null, "usage": null,
    });
    assert_eq!(past, json!([turn]));
}

#[tokio::test]
async fn an_edited_question_begins_a_chat_with_the_turns_before_it() {
    const OTHER: &str = "000000000000000000000000000000ff";
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    for (id, content) in [(FIRST, "count to 2"), (SECOND, "count to 3")] {
        assert_eq!(gateway.asks(id, content).await, "202");
        page.until("done").await;
    }
    let from = json!({ "chat": OWN, "turn": SECOND });
    let edited = json!({ "id": OTHER, "content": "count to 4", "from": from }).to_string();
    assert_eq!(gateway.chat("POST", OTHER, "", &edited).await.0, "202");
    let peer = |id: &str| {
        let mut session = SessionRef::new("web", "browser");
        session.peer = Some(id.into());
        session
    };
    gateway.engine.ended(&peer(OTHER)).await.unwrap();
    for (id, expected) in [
        (OTHER, ["count to 2", "count to 4"]),
        (OWN, ["count to 2", "count to 3"]),
    ] {
        let kept = gateway.engine.kept(&peer(id), 9).await.unwrap();
        let said: Vec<_> = kept.iter().map(|turn| &*turn.user).collect();
        assert_eq!(said, expected, "{id}");
    }
    let words = json!({ "words": "1 2 3 4", "chats": [OWN, OTHER, "no id"] }).to_string();
    let request = format!(
        "POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    let found = gateway.request(&request).await;
    assert!(found.1.ends_with(&json!([OTHER]).to_string()));
}

#[tokio::test]
async fn a_model_that_the_provider_does_not_list_is_refused_and_the_question_kept() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    let asked = json!({ "id": FIRST, "content": "hello", "model": "gpt-0" }).to_string();
    assert_eq!(gateway.chat("POST", OWN, "", &asked).await.0, "202");
    page.until("error").await;
    let (_, past) = gateway.looks("").await;
    assert_eq!(past[0]["user"], "hello");
    let mark = past[0]["mark"].as_str().unwrap();
    assert!(
        mark.starts_with("failed: the provider lists no model \"gpt-0\""),
        "{mark}"
    );
    let about = "GET /models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let about = gateway.request(about).await.1;
    assert!(
        about.ends_with(&json!({ "model": "scripted", "models": [] }).to_string()),
        "{about}"
    );
}

#[tokio::test]
async fn an_answer_continues_without_its_page_until_it_is_stopped() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    assert_eq!(gateway.asks(FIRST, "!slow 1000").await, "202");
    page.until("text").await;
    drop(page);
    assert_eq!(gateway.asks(SECOND, "more").await, "409");
    let (mut page, past) = gateway.looks("").await;
    assert_eq!(past, json!([]), "it is not complete");
    assert_eq!(page.next().await["data"]["id"], FIRST);
    page.until("text").await;
    let path = format!("{OWN}/answer");
    assert_eq!(gateway.chat("DELETE", &path, "", "").await.0, "204");
    page.until("stopped").await;
    let (_, past) = gateway.looks("").await;
    assert!(
        past[0]["assistant"].as_str().unwrap().starts_with('1'),
        "{past}"
    );
    assert_eq!(past[0]["mark"], "stopped");
}

#[tokio::test]
async fn a_question_that_is_asked_again_takes_the_place_of_the_first() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    for (id, content) in [
        (FIRST, "My name is Ann."),
        (SECOND, "hello"),
        (SECOND, "My name is Eve."),
    ] {
        assert_eq!(gateway.asks(id, content).await, "202");
        page.until("done").await;
    }
    let (_, past) = gateway.looks("").await;
    let said: Vec<_> = past
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["user"])
        .collect();
    assert_eq!(said, ["My name is Ann.", "My name is Eve."]);
}

#[tokio::test]
async fn a_page_shows_and_forgets_what_is_known_from_its_chat() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    let order = r#"/call remember {"subject":"user","relation":"name","value":"Ann"}"#;
    gateway.asks(FIRST, order).await;
    page.until("done").await;
    let memory = format!("{OWN}/memory");
    let known = async || {
        let (_, known) = gateway.chat("GET", &memory, "", "").await;
        serde_json::from_str::<Value>(&known).unwrap()
    };
    while known().await == json!([]) {
        tokio::task::yield_now().await;
    }
    assert_eq!(known().await[0]["value"], "Ann");
    let other = format!("{}/memory", OWN.replace('0', "1"));
    assert_eq!(gateway.chat("GET", &other, "", "").await.1, "[]");
    for (body, status) in [
        ("{}", "400"),
        (r#"{"subject":"user","relation":"home"}"#, "404"),
        (r#"{"subject":"user","relation":"name"}"#, "204"),
    ] {
        assert_eq!(gateway.chat("DELETE", &memory, "", body).await.0, status);
    }
    assert_eq!(known().await, json!([]));
    assert_eq!(gateway.chat("PUT", &memory, "", "").await.0, "405");
}

#[tokio::test]
async fn a_chat_that_is_deleted_is_forgotten() {
    let gateway = start(None, None, None).await;
    let (mut page, _) = gateway.looks("").await;
    gateway.asks(FIRST, "My name is Ann.").await;
    page.until("done").await;
    gateway.asks(SECOND, "!slow 1000").await;
    page.until("text").await;
    assert_eq!(gateway.chat("DELETE", OWN, "", "").await.0, "204");
    page.until("past").await;
    assert_eq!(gateway.engine.sessions().await.unwrap(), []);
    gateway.asks(FIRST, "What do you know of me?").await;
    let known = page.until("done").await;
    assert!(!known.contains("Ann"), "{known}");
}

#[tokio::test]
async fn the_chats_are_for_their_own_page_with_a_token_only() {
    let gateway = start(Some("s3cret"), Some("t0ken"), None).await;
    let token = "authorization: Bearer t0ken\r\n";
    gateway.looks(token).await;
    let question = json!({ "id": FIRST, "content": "hi" }).to_string();
    for method in ["GET", "POST", "DELETE"] {
        for wrong in ["", "authorization: Bearer s3cret\r\n", SECRET] {
            let (status, _) = gateway.chat(method, OWN, wrong, &question).await;
            assert_eq!(status, "401", "{method} {wrong}");
        }
        let foreign = format!("{token}origin: https://evil.test\r\n");
        assert_eq!(
            gateway.chat(method, OWN, &foreign, &question).await.0,
            "403"
        );
        assert_eq!(
            gateway.chat(method, "main", token, &question).await.0,
            "404"
        );
    }
    for body in [
        "",
        "[]",
        r#"{"id":"1","content":"hi"}"#,
        &question.replace("hi", " "),
    ] {
        assert_eq!(
            gateway.chat("POST", OWN, token, body).await.0,
            "400",
            "{body}"
        );
    }
    assert_eq!(gateway.chat("PUT", OWN, token, &question).await.0, "405");
    let text = format!(
        "POST /chats/{OWN} HTTP/1.1\r\nhost: localhost\r\n{token}connection: close\r\n\r\n"
    );
    assert_eq!(gateway.request(&text).await.0, "415");
}
