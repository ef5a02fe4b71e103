//! The assistant with models that follow a script of whole answers.

mod history;

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use snek_proto::llm::chat::Role;
use snek_proto::llm::tool::ToolDefinition;

use super::*;
use crate::assistant::conversation::{ConversationLimits, estimate};
use crate::model::{CallPiece, ChatRequest, Deltas};

type Piece = Result<Delta, ModelError>;

/// Gives prepared answers and keeps what it was asked.
#[derive(Debug, Default)]
struct Prepared {
    origin: &'static str,
    answers: Mutex<VecDeque<Vec<Piece>>>,
    asked: Mutex<Vec<(Vec<ChatMessage>, usize)>>,
}

impl Prepared {
    fn new(answers: Vec<Vec<Piece>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into()),
            ..Self::default()
        })
    }

    fn asked(&self) -> Vec<(Vec<ChatMessage>, usize)> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl ChatModel for Prepared {
    fn origin(&self) -> String {
        self.origin.to_owned()
    }

    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let messages = request.messages.into_iter().cloned().collect();
        let asked = (messages, request.tools.len());
        self.asked.lock().unwrap().push(asked);
        match self.answers.lock().unwrap().pop_front() {
            Some(answer) => Ok(stream::iter(answer).boxed()),
            None => Err(ModelError::Unreachable {
                message: "connection refused".to_owned(),
            }),
        }
    }
}

fn text(text: &str) -> Piece {
    Ok(Delta::Text(text.to_owned()))
}

fn call(id: &str, name: &str, arguments: &str) -> Piece {
    Ok(Delta::ToolCall(CallPiece {
        index: None,
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        arguments: arguments.to_owned(),
        ..CallPiece::default()
    }))
}

fn question(text: &str) -> Question {
    Question {
        channel: "c".to_owned(),
        nick: "Ann".to_owned(),
        text: text.to_owned(),
        images: Vec::new(),
    }
}

async fn answered(assistant: &Assistant, asked: &str) -> (String, Result<(), AnswerError>) {
    let (sender, mut pieces) = mpsc::channel(1000);
    let outcome = assistant.answer(question(asked), &sender).await;
    drop(sender);
    let mut whole = String::new();
    while let Some(piece) = pieces.recv().await {
        whole.push_str(&piece);
    }
    (whole, outcome)
}

fn history(assistant: &Assistant) -> Vec<String> {
    let messages = assistant.conversations.add("c", Vec::new());
    let line = |message: &Arc<ChatMessage>| {
        let role = serde_json::to_value(message.role).unwrap();
        format!("{}|{}", role.as_str().unwrap(), message.content.text())
    };
    messages.iter().map(line).collect()
}

#[tokio::test]
async fn a_tool_is_run_and_its_result_answered() {
    let model = Prepared::new(vec![
        vec![call("a", "search", "{\"query\":\"tea\"}")],
        vec![text("so")],
    ]);
    let assistant = Assistant::new(model);
    assistant.remember("c", "Bo", "tea is ready", Some("thanks"));
    assistant.remember("other", "Bo", "more tea", None);
    let (answer, outcome) = answered(&assistant, "tea?").await;
    assert_eq!((answer.as_str(), outcome), ("so", Ok(())));
    assert_eq!(
        history(&assistant),
        [
            "user|Bo: tea is ready",
            "assistant|thanks",
            "user|Ann: tea?",
            "assistant|",
            r#"tool|{"found":["Bo: tea is ready"]}"#,
            "assistant|so",
        ]
    );
}

#[tokio::test]
async fn text_before_a_tool_call_has_its_own_line() {
    let model = Prepared::new(vec![
        vec![text("let me "), text("see"), call("a", "time", "")],
        vec![text("it is"), text(" late")],
    ]);
    let assistant = Assistant::new(model.clone());
    let (answer, outcome) = answered(&assistant, "how late?").await;
    assert_eq!(
        (answer.as_str(), outcome),
        ("let me see\n\nit is late", Ok(()))
    );
    let asked = model.asked();
    let roles: Vec<_> = asked[1].0.iter().map(|message| message.role).collect();
    let expected = [Role::System, Role::User, Role::Assistant, Role::Tool];
    assert_eq!((roles.as_slice(), asked[1].1), (&expected[..], 2));
}

#[tokio::test]
async fn the_next_question_has_the_conversation() {
    let model = Prepared::new(vec![vec![text("one")], vec![text("two")]]);
    let mut assistant = Assistant::new(model.clone());
    "be brief".clone_into(&mut assistant.system);
    answered(&assistant, "first").await.1.unwrap();
    answered(&assistant, "second").await.1.unwrap();
    let last = model.asked().pop().unwrap().0;
    let texts: Vec<_> = last
        .iter()
        .map(|message| message.content.text().into_owned())
        .collect();
    assert_eq!(texts, ["be brief", "Ann: first", "one", "Ann: second"]);
}

#[tokio::test]
async fn a_failure_is_one_friendly_line_after_the_partial_answer() {
    let failure = || ModelError::Refused {
        status: None,
        refusal: Refusal::Broken,
        message: "internal: sk-1".to_owned(),
    };
    let model = Prepared::new(vec![
        vec![text("so far"), Err(failure())],
        vec![Err(ModelError::Cut)],
    ]);
    let assistant = Assistant::new(model);
    let (answer, outcome) = answered(&assistant, "1").await;
    assert_eq!(
        answer,
        "so far\n\nsorry, I lost my thread; please ask again"
    );
    assert_eq!(outcome, Err(AnswerError::Model(failure())));
    let (answer, _) = answered(&assistant, "2").await;
    assert_eq!(answer, "sorry, I lost my thread; please ask again");
    let (answer, _) = answered(&assistant, "3").await;
    assert!(answer.contains("try again later"), "{answer}");
    assert_eq!(history(&assistant), [""; 0]);
}

#[tokio::test]
async fn an_answer_without_text_does_not_count() {
    let model = Prepared::new(vec![vec![], vec![text("  ")]]);
    let assistant = Assistant::new(model);
    for _ in 0..2 {
        let (answer, outcome) = answered(&assistant, "?").await;
        assert!(answer.trim().starts_with(NOTHING), "{answer:?}");
        assert_eq!(outcome, Ok(()));
    }
}

#[tokio::test]
async fn an_answer_cut_by_the_model_is_marked() {
    let end = Ok(Delta::Finish(Finish::Length));
    let assistant = Assistant::new(Prepared::new(vec![vec![text("long"), end]]));
    assert_eq!(answered(&assistant, "?").await.0, "long […]");
}

#[tokio::test]
async fn a_refusal_of_the_model_is_the_reason() {
    let end = || Ok(Delta::Finish(Finish::ContentFilter));
    let model = Prepared::new(vec![vec![text("I"), end()], vec![end()]]);
    let assistant = Assistant::new(model);
    assert_eq!(answered(&assistant, "?").await.0, format!("I\n\n{REFUSED}"));
    assert_eq!(answered(&assistant, "?").await.0, REFUSED);
}

#[tokio::test]
async fn a_conversation_that_outgrows_the_model_is_reported_once() {
    let limits = ConversationLimits::default().with_tokens(20);
    let answers = || vec![text("yes")];
    let model = Prepared::new(vec![answers(), answers(), answers()]);
    let mut assistant = Assistant::new(model);
    assistant.conversations = Conversations::new(limits);
    assert_eq!(answered(&assistant, "short").await.0, "yes");
    let long = "a very long question about flowers";
    let (answer, outcome) = answered(&assistant, long).await;
    assert_eq!((answer, outcome), (format!("{FORGOTTEN}\n\nyes"), Ok(())));
    assert_eq!(answered(&assistant, long).await.0, "yes");
}

#[tokio::test]
async fn a_shortened_conversation_is_reported_once() {
    let cut = || Ok(Delta::Notice(Notice::Shortened { left_out: 3 }));
    let answers = || vec![cut(), text("yes")];
    let assistant = Assistant::new(Prepared::new(vec![answers(), answers()]));
    assert_eq!(
        answered(&assistant, "?").await.0,
        format!("{FORGOTTEN}\n\nyes")
    );
    assert_eq!(answered(&assistant, "?").await.0, "yes");
}

/// Plays a turn to its answer. Returns it, and the number of calls that were made.
async fn play(turn: &mut Turn, model: &Prepared, result: &str) -> (String, usize) {
    let tools = ["t", "write"].map(|name| ToolDefinition::new(name, ""));
    let mut made = 0;
    loop {
        match turn.next(&tools) {
            Step::Ask { .. } => {
                let mut answer = turn.ask(turn.context(), model, None, &tools).await.unwrap();
                while answer.next().await.is_some() {}
                turn.on_answer(answer);
            }
            Step::Call(call) => {
                made += 1;
                turn.on_result(&call.id, Ok(result.into()));
            }
            Step::Done(text) => return (text, made),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn results_longer_than_the_context_are_shortened_and_not_lost() {
    let calls = |calls: Vec<Piece>| [calls, vec![Ok(Delta::Finish(Finish::ToolCalls))]].concat();
    let model = Prepared::new(vec![
        calls(vec![call("a", "t", "{}")]),
        calls(vec![call("b", "t", "{}"), call("c", "t", "{}")]),
        vec![text("done"), Ok(Delta::Finish(Finish::Stop))],
    ]);
    let limits = ConversationLimits::default().with_tokens(2_000);
    let question = ChatMessage::user("go");
    let mut turn = Turn::new(limits, many_rounds(9), Vec::new(), question);
    let long = format!("first {} last", "x".repeat(1 << 20));
    let played = play(&mut turn, &model, &long).await;
    assert_eq!(played, ("done".to_owned(), 3));
    for (told, _) in &model.asked()[1..] {
        assert!(told.iter().map(estimate).sum::<usize>() <= 2_000);
        let results: Vec<_> = told.iter().filter(|it| it.role == Role::Tool).collect();
        let calls: usize = told.iter().map(|it| it.tool_calls.len()).sum();
        assert_eq!(
            (results.len(), told.first().unwrap().role),
            (calls, Role::User)
        );
        for result in results {
            let result = result.content.text();
            assert!(result.contains("characters left out)"), "{result}");
            assert!(result.starts_with("first ") && result.ends_with(" last"));
        }
    }
    assert_eq!(model.asked()[2].0.len(), 6);
}

#[tokio::test]
async fn long_arguments_are_shortened_and_their_calls_not_forgotten() {
    let names = ["a.rs", "b.rs", "c.rs", "d.rs", "e.rs"];
    let text_of = "x".repeat(30_000);
    let write = |name: &&str| {
        let arguments = serde_json::json!({ "name": name, "text": text_of }).to_string();
        let end = Ok(Delta::Finish(Finish::ToolCalls));
        vec![call("a", "write", &arguments), end]
    };
    let mut answers: Vec<_> = names.iter().map(write).collect();
    answers.push(vec![text("done"), Ok(Delta::Finish(Finish::Stop))]);
    let model = Prepared::new(answers);
    let limits = ConversationLimits::default().with_tokens(8_192);
    let question = ChatMessage::user("go");
    let mut turn = Turn::new(limits, many_rounds(9), Vec::new(), question);
    let played = play(&mut turn, &model, "written").await;
    assert_eq!(played, ("done".to_owned(), 5));
    for (round, (told, _)) in model.asked().iter().enumerate() {
        assert!(told.iter().map(estimate).sum::<usize>() <= 8_192);
        let calls: Vec<_> = told.iter().flat_map(|it| &it.tool_calls).collect();
        assert_eq!(calls.len(), round);
        for (call, name) in calls.iter().zip(names) {
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
            assert_eq!(arguments["name"], name);
            assert!(arguments["text"].as_str().unwrap().starts_with("xxx"));
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cut_at_the_length_limit_is_called_that_and_five_end_the_turn() {
    let cut = || {
        let end = Ok(Delta::Finish(Finish::Length));
        vec![call("a", "write", "{\"text\":\"on and o"), end]
    };
    let model = Prepared::new((0..9).map(|_| cut()).collect());
    let question = ChatMessage::user("go");
    let limits = ConversationLimits::default();
    let mut turn = Turn::new(limits, many_rounds(300), Vec::new(), question);
    let (mut refused, mut asked) = (0, 0);
    let error = loop {
        match turn.next(&[]) {
            Step::Ask { .. } => {
                asked += 1;
                let mut answer = turn.ask(turn.context(), &*model, None, &[]).await.unwrap();
                while answer.next().await.is_some() {}
                turn.on_answer(answer);
            }
            Step::Refused { why, .. } => {
                refused += 1;
                assert_eq!(why, CUT_CALL);
            }
            Step::Stopped(error) => break error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((refused, asked), (5, 5));
    assert!(error.contains("max_tokens"), "{error}");
    let told = model.asked()[1]
        .0
        .last()
        .unwrap()
        .content
        .text()
        .into_owned();
    assert_eq!(told, format!("{FAILED}{CUT_CALL}"));
}

#[tokio::test]
async fn a_question_longer_than_the_context_is_told_once() {
    let model = Prepared::new(vec![vec![text("the end of it")]]);
    let limits = ConversationLimits::default().with_tokens(1_000);
    let question = ChatMessage::user("word ".repeat(2_000));
    let turn = Turn::new(limits, many_rounds(9), Vec::new(), question);
    let mut answer = turn.ask(turn.context(), &*model, None, &[]).await.unwrap();
    let first = answer.next().await.unwrap().unwrap();
    let max = 1_000;
    assert!(
        matches!(first, Delta::Notice(Notice::TooLong { tokens: 3_000.., max: told }) if told == max)
    );
}

#[tokio::test]
async fn calls_of_an_answer_that_is_withheld_are_not_made() {
    let withheld = vec![
        text("I"),
        call("a", "t", "{}"),
        Ok(Delta::Finish(Finish::ContentFilter)),
    ];
    let model = Prepared::new(vec![withheld]);
    let question = ChatMessage::user("go");
    let mut turn = Turn::new(
        ConversationLimits::default(),
        many_rounds(9),
        Vec::new(),
        question,
    );
    assert_eq!(play(&mut turn, &model, "x").await, ("I".to_owned(), 0));
    assert_eq!(turn.finish(), Some(&Finish::ContentFilter));
}

#[tokio::test]
async fn a_model_that_calls_tools_for_ever_is_stopped() {
    let round = |number: usize| vec![call("x", "search", &format!("{{\"query\":\"x{number}\"}}"))];
    let model = Prepared::new((0..40).map(round).collect());
    let assistant = Assistant::new(model.clone());
    let (answer, outcome) = answered(&assistant, "?").await;
    assert!(matches!(outcome, Err(AnswerError::Tools(_))), "{outcome:?}");
    assert!(is_apology(&answer), "{answer}");
    let asked = model.asked();
    assert_eq!(asked.iter().filter(|(_, tools)| *tools > 0).count(), 25);
    assert_eq!(asked.len(), 26);
    assert_eq!(assistant.conversations.add("c", Vec::new()).len(), 50);
}

#[tokio::test]
async fn three_wrong_calls_stop_the_loop_and_five_failures_the_tools() {
    let failing = Tools::new().with(
        ToolDefinition::new("fail", "Fails."),
        Arc::new(|_, _| Err("broken".to_owned())),
    );
    let wrong = vec![
        call("a", "fly", ""),
        call("b", "search", "{}"),
        call("c", "time", "nonsense"),
        call("d", "time", ""),
    ];
    let assistant = Assistant::new(Prepared::new(vec![wrong]));
    let (_, outcome) = answered(&assistant, "?").await;
    assert!(matches!(outcome, Err(AnswerError::Tools(_))), "{outcome:?}");
    assert_eq!(history(&assistant).len(), 1 + 1 + 4);
    assert!(assistant.limits.breaker.lock().unwrap().state() == rpc_core::breaker::State::Closed);

    let two = || vec![call("a", "fail", "{}"), call("b", "fail", "{}")];
    let rounds: Vec<_> = (0..6)
        .map(|round| {
            if round % 2 == 0 {
                two()
            } else {
                vec![text("ok")]
            }
        })
        .collect();
    let mut assistant = Assistant::new(Prepared::new(rounds));
    assistant.tools = failing;
    for number in 0..3 {
        assert_eq!(
            answered(&assistant, "?").await,
            ("ok".to_owned(), Ok(())),
            "{number}"
        );
    }
    let state = assistant.limits.breaker.lock().unwrap().state();
    assert_eq!(state, rpc_core::breaker::State::Open);
    assert!(
        history(&assistant)
            .iter()
            .any(|line| line.contains("circuit breaker"))
    );
}

#[tokio::test]
async fn a_dropped_answer_changes_neither_the_breaker_nor_the_history() {
    #[derive(Debug)]
    struct Silent;
    #[async_trait]
    impl ChatModel for Silent {
        async fn stream(&self, _: ChatRequest<'_>) -> Result<Deltas, ModelError> {
            std::future::pending().await
        }
    }
    let assistant = Assistant::new(Arc::new(Silent));
    let (sender, _pieces) = mpsc::channel(1);
    {
        let mut answer = std::pin::pin!(assistant.answer(question("?"), &sender));
        assert!(futures_util::poll!(answer.as_mut()).is_pending());
    }
    assert_eq!(history(&assistant), ["user|Ann: ?"]);
}

#[tokio::test]
async fn an_answer_without_a_listener_costs_nothing() {
    let model = Prepared::new(vec![
        vec![text("a"), call("x", "time", "")],
        vec![text("b")],
    ]);
    let assistant = Assistant::new(model.clone());
    let (sender, pieces) = mpsc::channel(1);
    drop(pieces);
    let outcome = assistant.answer(question("?"), &sender).await;
    assert_eq!(outcome, Err(AnswerError::Unheard));
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn a_conversation_too_long_for_the_model_is_retried_with_half_of_it() {
    let too_long = || {
        vec![Err(ModelError::Refused {
            status: Some(400),
            refusal: Refusal::TooLong,
            message: "too long".to_owned(),
        })]
    };
    let past = (0..9).map(|number| match number {
        0 => ChatMessage::system("be kind"),
        odd if odd % 2 == 1 => ChatMessage::user(format!("question {odd} ").repeat(20)),
        even => ChatMessage::assistant(format!("answer {even} ").repeat(20)),
    });
    let past: Vec<_> = past.map(Arc::new).collect();
    let turn = Turn::new(
        ConversationLimits::default(),
        ToolLoopConfig::default(),
        past,
        ChatMessage::user("the last one"),
    );
    let model = Prepared::new(vec![too_long(), vec![text("yes")]]);
    let mut answer = turn.ask(turn.context(), &*model, None, &[]).await.unwrap();
    let told = answer.next().await.unwrap();
    let asked = model.asked();
    let left_out = asked[0].0.len() - asked[1].0.len();
    assert!((1..9).contains(&left_out), "{left_out}");
    assert_eq!(told, Ok(Delta::Notice(Notice::Shortened { left_out })));
    assert_eq!(answer.next().await, Some(text("yes")));
    let begins = [0, 1].map(|at| asked[1].0.get(at).unwrap().content.text().into_owned());
    assert_eq!(begins[0], "be kind");
    assert!(!begins[1].contains("question 1 "), "{begins:?}");
    assert_eq!(asked[1].0.last().unwrap().content.text(), "the last one");
    // A second time it is an error.
    let model = Prepared::new(vec![too_long(), too_long(), vec![text("yes")]]);
    let mut answer = turn.ask(turn.context(), &*model, None, &[]).await.unwrap();
    assert!(answer.next().await.unwrap().is_ok());
    assert_eq!(answer.next().await, Some(too_long().remove(0)));
}
