//! What stays of a conversation, and what goes back to the provider that gave it.

use super::*;

#[tokio::test]
async fn a_tool_is_called_by_any_spelling_and_an_unknown_one_is_answered_with_all() {
    let model = Prepared::new(vec![
        vec![
            call("a", "functions.Time", "{}"),
            call("b", "fly\" to=\"x", "{}"),
        ],
        vec![text("so")],
    ]);
    let assistant = Assistant::new(model.clone());
    let (answer, outcome) = answered(&assistant, "how late?").await;
    assert_eq!((answer.as_str(), outcome), ("so", Ok(())));
    let said = history(&assistant);
    assert!(said[2].starts_with("tool|it is "), "{said:?}");
    let expected = r#"tool|Error: there is no tool "fly\" to=\"x"; there are: search, time"#;
    assert_eq!(said[3], expected);
}

#[tokio::test]
async fn what_a_model_gave_is_kept_with_its_origin_and_its_ids() {
    let extra = serde_json::json!({ "r": "so" })
        .as_object()
        .unwrap()
        .clone();
    let model = Prepared {
        origin: "me",
        answers: Mutex::new(
            [
                vec![Ok(Delta::Extra(None, extra)), call("own", "time", "{}")],
                vec![text("so")],
            ]
            .into(),
        ),
        ..Prepared::default()
    };
    let assistant = Assistant::new(Arc::new(model));
    answered(&assistant, "how late?").await.1.unwrap();
    let messages = assistant.conversations.add("c", Vec::new());
    let stored = serde_json::to_value(&*messages[1]).unwrap();
    assert_eq!(
        (&stored["r"], &stored["switchboard_from"]),
        (&"so".into(), &"me".into())
    );
    let call = &stored["tool_calls"][0];
    assert_eq!(
        (&call["id"], &call["switchboard_id"]),
        (&"call_1".into(), &"own".into())
    );
    assert_eq!(messages[3].extra.len(), 0);
    // It is forgotten before messages are.
    let limits = ConversationLimits::default().with_tokens(50);
    let turn = Turn::new(
        limits,
        many_rounds(9),
        messages,
        ChatMessage::user("x".repeat(30)),
    );
    assert_eq!((turn.past().len(), turn.past()[1].extra.len()), (4, 0));
}

#[tokio::test]
async fn a_question_without_an_answer_leaves_the_conversation() {
    let refused = |status, refusal| ModelError::Refused {
        status: Some(status),
        refusal,
        message: "no".to_owned(),
    };
    for (error, is_refused) in [
        (refused(400, Refusal::Request), true),
        (refused(422, Refusal::Request), true),
        (refused(401, Refusal::Key), false),
        (ModelError::Cut, false),
    ] {
        let model = Prepared::new(vec![vec![Err(error.clone())], vec![text("two")]]);
        let assistant = Assistant::new(model.clone());
        assistant.remember("c", "Bo", "tea", None);
        answered(&assistant, "bad").await.1.unwrap_err();
        answered(&assistant, "good").await.1.unwrap();
        let said: Vec<_> = model.asked()[1]
            .0
            .iter()
            .map(|it| it.content.text().into_owned())
            .collect();
        assert_eq!(said[1..], ["Bo: tea", "Ann: good"], "{error:?}");
        // With what came after it, if it is refused later on.
        let past = ["a", "b"].map(|text| Arc::new(ChatMessage::user(text)));
        let (limits, config) = (ConversationLimits::default(), many_rounds(9));
        let mut turn = Turn::new(limits, config.clone(), Vec::new(), ChatMessage::user("c"));
        turn.add_messages([ChatMessage::user("d"), ChatMessage::assistant("e")]);
        let told = turn.on_error(error, false).to_string();
        assert_eq!(told.contains("left out"), is_refused);
        let said = ["c", "d"].map(|text| Arc::new(ChatMessage::user(text)));
        let marks = turn.take_messages().into_iter().map(Arc::new);
        let all = [
            &past[..1],
            &[Arc::new(ChatMessage::assistant("x"))],
            &past[1..],
            &said,
        ]
        .concat();
        let turn = Turn::new(
            limits,
            config,
            all.into_iter().chain(marks).collect(),
            ChatMessage::user("f"),
        );
        assert_eq!(turn.past().len(), if is_refused { 2 } else { 5 });
    }
}
