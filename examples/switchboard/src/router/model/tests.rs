//! [`ModelRouter`] with a model that does as it is told, and with a provider that refuses.
#![allow(clippy::unwrap_used, reason = "tests")]

use smarthole_proto::router::Rejection;

use super::*;
use crate::model::scripted::Scripted;

fn candidates(names: &[&str]) -> Vec<Candidate> {
    let candidate = |name: &&str| Candidate::new(*name, "does something");
    names.iter().map(candidate).collect()
}

fn tool_names(names: &[&str]) -> Vec<String> {
    let tools = tools(&candidates(names));
    tools.iter().map(|tool| tool.name().to_owned()).collect()
}

/// What comes of these calls of a model.
async fn routed(calls: &str, names: &[&str]) -> Result<Vec<Choice>, RouterError> {
    let router = ModelRouter::new(Arc::new(Scripted::default().with_commands(true)));
    let request = RouteRequest {
        candidates: candidates(names).into_iter().collect(),
        ..RouteRequest::new(calls)
    };
    router.route(&request).await
}

#[test]
fn each_client_is_a_tool_with_its_description() {
    let notes = Candidate {
        capabilities: vec!["tasks".into(), "lists".into()].into(),
        ..Candidate::new("my-notes", "I keep notes.")
    };
    let tools = tools(&[notes, Candidate::new("lights", "I switch lamps.")]);
    let first = serde_json::to_value(&tools[0]).unwrap();
    let function = &first["function"];
    assert_eq!(function["name"], "route_to_my_notes");
    assert_eq!(
        function["description"],
        "I keep notes.\nCapabilities: tasks, lists"
    );
    let parameters = &function["parameters"];
    assert_eq!(parameters["required"], serde_json::json!(["message"]));
    assert_eq!(parameters["properties"]["message"]["type"], "string");
    assert_eq!(parameters["properties"]["reason"]["type"], "string");
    assert_eq!(tools[1].description(), "I switch lamps.");
}

#[test]
fn clients_with_the_same_tool_name_are_kept_apart() {
    assert_eq!(
        tool_names(&["a-b", "a_b", "a_b_2", "A-B", "a--b"]),
        [
            "route_to_a_b",
            "route_to_a_b_2",
            "route_to_a_b_2_2",
            "route_to_A_B",
            "route_to_a__b"
        ]
    );
}

#[test]
fn names_of_tools_are_no_longer_than_interfaces_take() {
    let long = "x".repeat(64);
    let longer: Vec<String> = (0..12)
        .map(|number| format!("{}{number:02}", "x".repeat(60)))
        .collect();
    let mut names = vec![long.as_str()];
    names.extend(longer.iter().map(String::as_str));
    let tools = tool_names(&names);
    assert!(tools.iter().all(|name| name.len() <= 64), "{tools:#?}");
    let different: HashSet<_> = tools.iter().collect();
    assert_eq!(different.len(), names.len());
}

#[test]
fn a_description_is_no_longer_than_interfaces_take() {
    let exact = Candidate::new("a", "ü".repeat(1024));
    assert_eq!(description(&exact).chars().count(), 1024);
    let longer = Candidate {
        capabilities: vec!["more".into()].into(),
        ..exact
    };
    let cut = description(&longer);
    assert_eq!(cut.chars().count(), 1024);
    assert!(cut.ends_with("ü…"));
}

#[test]
fn rejections_are_distinguished_from_the_text() {
    let request = RouteRequest::new("buy milk");
    assert_eq!(question(&request), "buy milk");
    let rejections = [
        Rejection::new("lights", "I only \"switch\" lamps"),
        Rejection::new("calendar", "Response timeout"),
    ];
    let request = RouteRequest {
        rejections: rejections.into(),
        ..request
    };
    let question = question(&request);
    let (text, context) = question.split_once("\n\n").unwrap();
    assert_eq!(text, "buy milk");
    for part in [
        r#""lights""#,
        r#""I only \"switch\" lamps""#,
        "Response timeout",
    ] {
        assert!(context.contains(part), "{context}");
    }
    assert!(
        context.starts_with('[') && context.ends_with(']'),
        "{context}"
    );
}

#[tokio::test]
async fn every_call_of_a_known_tool_is_a_choice() {
    let calls = concat!(
        r#"/call route_to_a_b {"message": "milk ", "reason": " it is a note"}"#,
        "\n",
        r#"/call route_to_c {"message": "light", "reason": ""}"#,
        "\n/call route_to_nobody {\"message\": \"x\"}",
        "\n/call route_to_d {\"text\": \"x\"}",
        "\n/call route_to_d {\"message\": 7}",
        "\n/call route_to_d not json",
        "\n/call route_to_d [\"message\"]",
    );
    let choices = routed(calls, &["a-b", "c", "d"]).await.unwrap();
    let expected = [
        Choice {
            text: Some("milk".into()),
            reason: Some("it is a note".into()),
            ..Choice::new("a-b")
        },
        Choice {
            text: Some("light".into()),
            ..Choice::new("c")
        },
        // Without a message, it gets the whole.
        Choice::new("d"),
    ];
    assert_eq!(choices, expected);
}

#[tokio::test]
async fn a_client_that_is_called_twice_gets_the_whole_text_once() {
    let calls = "/call route_to_a {\"message\": \"one\"}\n/call route_to_a {\"message\": \"two\"}";
    assert_eq!(routed(calls, &["a"]).await.unwrap(), [Choice::new("a")]);
}

#[test]
fn a_repeated_text_counts_as_written_by_the_user() {
    let request = RouteRequest {
        candidates: candidates(&["a"]).into_iter().collect(),
        ..RouteRequest::new("buy milk\n")
    };
    let tools = tools(&request.candidates);
    for message in ["buy milk", " buy milk ", "", "  "] {
        let arguments = serde_json::json!({ "message": message }).to_string();
        let calls = [ToolCall::new("1", "route_to_a", arguments)];
        assert_eq!(choices(&request, &tools, &calls), [Choice::new("a")]);
    }
}

#[tokio::test]
async fn a_model_that_answers_in_words_chooses_the_client_that_it_names_or_that_the_words_do() {
    let names = ["my-notes", "music", "does"];
    for (answer, client) in [
        ("how are you?", None),
        ("**My-Notes**", Some("my-notes")),
        ("The best one is `music`.", Some("music")),
        ("{\"client\": \"music\"}", Some("music")),
    ] {
        let choices = routed(answer, &names).await.unwrap();
        let clients: Vec<&str> = choices.iter().map(|it| &*it.client).collect();
        assert_eq!(clients, Vec::from_iter(client), "{answer}");
    }
    let lists = Candidate::new("lists", "Keeps shopping lists.");
    let request = RouteRequest {
        candidates: [Candidate::new("music", "Plays songs."), lists]
            .into_iter()
            .collect(),
        ..RouteRequest::new("go shopping")
    };
    let router = ModelRouter::new(Arc::new(Scripted::default().with_commands(true)));
    let choices = router.route(&request).await.unwrap();
    assert!(
        matches!(&*choices, [choice] if choice.client == "lists"),
        "{choices:?}"
    );
}

#[tokio::test]
async fn no_model_is_asked_without_candidates() {
    assert_eq!(routed("!fail", &[]).await.unwrap(), []);
}

#[tokio::test]
async fn a_failing_model_is_a_failing_router() {
    let error = routed("!fail out of order", &["a"]).await.unwrap_err();
    assert_eq!(error, RouterError::Unavailable("out of order".into()));
    assert!(error.is_retryable());
    let error = routed("!break", &["a"]).await.unwrap_err();
    assert!(matches!(error, RouterError::Unavailable(_)), "{error:?}");
}

#[test]
fn refused_keys_are_distinguished_from_a_busy_provider() {
    for (refusal, expected) in [
        (Refusal::Key, RouterError::Denied("no".into())),
        (Refusal::RateLimit, RouterError::RateLimited),
        (Refusal::Request, RouterError::Failed("no".into())),
        (Refusal::Quota, RouterError::Failed("no".into())),
        (Refusal::Unavailable, RouterError::Unavailable("no".into())),
    ] {
        let error = ModelError::Refused {
            status: None,
            refusal,
            message: "no".to_owned(),
        };
        assert_eq!(router_error(&error), expected);
    }
}

mod over_http {
    use rpc_core::backoff::Backoff;

    use super::*;
    use crate::model::config::ModelConfig;
    use crate::model::http::HttpModel;
    use crate::model::http::tests::testing::{Does, OK, Provider};
    use crate::model::provider::Provider as Kind;

    const CHOSEN: &str = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":",
        "{\"name\":\"route_to_notes\",\"arguments\":\"{\\\"message\\\": \\\"milk\\\"}\"}}]},",
        "\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    const BUSY: Does = Does::Answers("429 Too Many Requests\r\nretry-after: 0", "slow down", 100);

    async fn asked(behaviour: &'static [Does]) -> (Result<Vec<Choice>, RouterError>, Vec<String>) {
        let provider = Provider::start(behaviour).await;
        let config = ModelConfig::new(Kind::OpenAi, "toy")
            .with_base_url(&provider.url)
            .with_policy(policy());
        let router = ModelRouter::new(Arc::new(HttpModel::new(config).unwrap()));
        let request = RouteRequest {
            candidates: candidates(&["notes"]).into_iter().collect(),
            ..RouteRequest::new("buy milk")
        };
        (router.route(&request).await, provider.requests())
    }

    #[tokio::test]
    async fn a_busy_provider_is_retried_three_times() {
        let (choices, requests) = asked(&[BUSY, BUSY, BUSY, Does::Answers(OK, CHOSEN, 100)]).await;
        assert_eq!(
            choices,
            Ok(vec![Choice {
                text: Some("milk".into()),
                ..Choice::new("notes")
            }])
        );
        assert_eq!(requests.len(), 4);
        for part in ["route_to_notes", "does something", "buy milk"] {
            assert!(requests[3].contains(part), "{}", requests[3]);
        }
        let (choices, requests) = asked(&[BUSY, BUSY, BUSY, BUSY, BUSY]).await;
        assert_eq!(choices, Err(RouterError::RateLimited));
        assert_eq!(requests.len(), 4);
    }

    #[tokio::test]
    async fn a_refused_key_is_not_tried_again() {
        let refused = Does::Answers("401 Unauthorized", "bad key", 100);
        let (choices, requests) = asked(Vec::leak(vec![refused])).await;
        assert!(
            matches!(choices, Err(RouterError::Denied(_))),
            "{choices:?}"
        );
        assert_eq!(requests.len(), 1);
    }

    #[test]
    fn the_waits_between_the_attempts_are_1_2_and_4_seconds() {
        let policy = policy();
        let mut backoff = Backoff::new(policy.retry);
        let waits: Vec<_> = std::iter::from_fn(|| backoff.next_delay(0)).collect();
        assert_eq!(waits, [1, 2, 4].map(Duration::from_secs));
    }
}
