//! Tests: what a chat tells, in order, and how it ends.

mod ask;
mod memory;

use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;

use super::*;
use crate::daemon::command::{CommandConfig, Commands, Confinement};
use crate::model::scripted::Scripted;
use crate::scratch::Folder;

/// A workspace that is removed with the value, and an agent for it.
struct Fixture(Folder, Worker);

impl Fixture {
    fn new() -> Self {
        let path = Folder::new();
        fs::create_dir_all(path.join("inner")).unwrap();
        fs::write(path.join("a.txt"), "one\ntwo\n").unwrap();
        let worker = worker(&path);
        Self(path, worker)
    }

    /// Another agent for it, which knows nothing of the first one.
    fn worker(&self) -> Worker {
        worker(&self.0)
    }

    async fn chat(&self, text: &str) -> (Vec<Event>, Outcome) {
        self.ask(&ChatRequest::new(text.to_owned(), "scripted"), &Seen::new())
            .await
    }

    async fn ask(&self, request: &ChatRequest, seen: &Seen) -> (Vec<Event>, Outcome) {
        let outcome = self.1.chat(request, seen).await;
        (seen.events(), outcome)
    }
}

fn worker(path: &std::path::Path) -> Worker {
    let workspace = Workspace::open(path).unwrap();
    let config = CommandConfig::default().with_confinement(Confinement::Open);
    let toolbox = Toolbox::new(Commands::new(config));
    let model = Scripted::default().with_commands(true).with_echo(true);
    Worker::new(Arc::new(model), "scripted", workspace, toolbox)
}

type Outcome = Result<Reply, AppError>;

/// Keeps what it is told, and aborts when it has been told some event.
struct Seen {
    events: Mutex<Vec<Event>>,
    abort_at: Option<&'static str>,
    aborted: watch::Sender<bool>,
}

impl Seen {
    fn new() -> Self {
        Self {
            events: Mutex::default(),
            abort_at: None,
            aborted: watch::Sender::new(false),
        }
    }

    fn until(tag: &'static str) -> Self {
        let abort_at = Some(tag);
        Self {
            abort_at,
            ..Self::new()
        }
    }

    fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

#[async_trait]
impl Watch for Seen {
    async fn emit(&self, event: Event) {
        assert!(!self.is_aborted(), "{event:?} after the abort");
        if self.abort_at == Some(event.tag()) {
            self.aborted.send_replace(true);
        }
        self.events.lock().unwrap().push(event);
    }

    async fn aborted(&self) {
        let _ = self.aborted.subscribe().wait_for(|aborted| *aborted).await;
    }

    fn is_aborted(&self) -> bool {
        *self.aborted.borrow()
    }
}

/// The events in short, without what they cost.
fn told(events: &[Event]) -> Vec<String> {
    let short = |event: &Event| match event {
        Event::Usage(_) => None,
        Event::Reasoning(text) => Some(format!("thinks {text}")),
        Event::TextDelta(text) => Some(format!("text {text}")),
        Event::ToolCall(call) => Some(format!("{} {} {}", call.id, call.name, call.args.get())),
        Event::ToolOutput(output) => Some(format!("{} {}", output.id, output.content.tag())),
        Event::ToolResult(result) => {
            let code = result.code.as_deref();
            Some(format!("{} {}", result.id, code.unwrap_or("ok")))
        }
        Event::Checklist(list) => {
            let items = list.items.iter();
            let items: Vec<_> = items.map(|item| item.status.name().to_owned()).collect();
            Some(items.join(" "))
        }
        other => Some(other.tag().to_owned()),
    };
    events.iter().filter_map(short).collect()
}

#[tokio::test]
async fn a_chat_reports_every_step_in_order() {
    let place = Fixture::new();
    let (events, reply) = place
        .chat("/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}")
        .await;
    let expected = [
        r#"call_1 file-edit {"find":"two","path":"a.txt","replace":"2"}"#,
        "call_1 edit-header",
        "call_1 diff",
        "call_1 diff",
        "call_1 diff",
        "call_1 ok",
        "text changed ",
        "text a.txt ",
        "text (+1 ",
        "text -1)",
    ];
    assert_eq!(told(&events), expected);
    let reply = reply.unwrap();
    assert_eq!(
        (&*reply.output, &*reply.model),
        ("changed a.txt (+1 -1)", "scripted")
    );
    assert_eq!(
        (reply.output_streamed, reply.error.as_deref()),
        (Some(true), None)
    );
    assert_eq!(
        (reply.tool_calls, reply.model_calls),
        (vec!["file-edit".into()], Some(2))
    );
    let usage = reply.usage.unwrap();
    assert_eq!(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    assert!(usage.output_tokens > 0);
    assert_eq!(
        fs::read_to_string(place.0.join("a.txt")).unwrap(),
        "one\n2\n"
    );
}

#[tokio::test]
async fn calls_at_once_are_announced_before_the_first_runs() {
    let place = Fixture::new();
    let text =
        "/call file-read {\"path\": \"a.txt\"}\n/call file-read {\"path\": \"../b\"}\n/call fly";
    let (events, reply) = place.chat(text).await;
    let told = told(&events);
    let expected = [
        r#"call_1 file-read {"path":"a.txt"}"#,
        r#"call_2 file-read {"path":"../b"}"#,
        "call_3 fly {}",
        "call_1 file-header",
        "call_1 ok",
        "call_2 file-header",
        "call_2 E_SANDBOX_VIOLATION",
        "call_3 E_TOOL_CALL",
    ];
    assert_eq!(told[..8], expected);
    assert!(reply.unwrap().output.contains("leads out of the workspace"));
}

#[tokio::test]
async fn a_call_whose_arguments_cannot_be_read_has_a_header_too() {
    let place = Fixture::new();
    let (events, _) = place.chat("/call file-edit {oops\n/call fly {oops").await;
    let expected = [
        "call_1 file-edit {}",
        "call_2 fly {}",
        "call_1 tool-header",
        "call_1 E_TOOL_CALL",
        "call_2 E_TOOL_CALL",
    ];
    assert_eq!(told(&events)[..5], expected);
}

#[tokio::test]
async fn accepts_unambiguous_numbers_and_booleans_only() {
    let place = Fixture::new();
    for (tool, arguments, code) in [
        (
            "file-read",
            r#"{"path":"a.txt","from":2.0,"lines":"1"}"#,
            "ok",
        ),
        ("file-read", r#"{"path":"a.txt","from":1.5}"#, "E_TOOL_CALL"),
        (
            "file-read",
            r#"{"path":"a.txt","from":"two"}"#,
            "E_TOOL_CALL",
        ),
        (
            "file-edit",
            r#"{"path":"a.txt","find":"two","replace":"2","all":"true"}"#,
            "ok",
        ),
        (
            "file-create",
            r#"{"path":"n.txt","content":"A"#,
            "E_TOOL_CALL",
        ),
        (
            "file-create",
            r#"{}{"path":"n.txt","content":"A"}"#,
            "E_TOOL_CALL",
        ),
    ] {
        let (events, _) = place.chat(&format!("/call {tool} {arguments}")).await;
        let told = told(&events);
        assert!(told.contains(&format!("call_1 {code}")), "{told:?}");
    }
    assert!(!place.0.join("n.txt").exists());
}

#[tokio::test]
async fn a_checklist_is_shown_as_it_grows() {
    let place = Fixture::new();
    let (events, _) = place.chat("/call checklist {\"title\":\"T\",\"items\":\"[!] a\\n[~] b\\n[ ] c\"}\n/call checklist {\"title\":\"T\",\"items\":\"[!] a\\n[x] b\\n[x] c\"}").await;
    let lists = events
        .iter()
        .filter(|event| matches!(event, Event::Checklist(_)));
    let lists = told(&lists.cloned().collect::<Vec<_>>());
    assert_eq!(lists, ["failed in_progress pending", "failed done done"]);
}

#[tokio::test]
async fn shows_thoughts_apart_from_the_answer() {
    let place = Fixture::new();
    let (events, reply) = place.chat("!think yes").await;
    assert_eq!(told(&events), [r#"thinks shall I say "yes"?"#, "text yes"]);
    assert_eq!(reply.unwrap().output, "yes");
}

#[tokio::test]
async fn ids_differ_from_call_to_call() {
    let place = Fixture::new();
    let (events, _) = place.chat("/call checklist {\"title\":\"T\",\"items\":\"[ ] a\"}\n/call file-read {\"path\":\"a.txt\"}\n/call file-read {\"path\":\"a.txt\"}").await;
    let mut ids = HashSet::new();
    for event in &events {
        if let Event::ToolCall(call) = event {
            assert!(ids.insert(call.id.clone()), "{}", call.id);
        }
    }
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn an_abort_stops_the_model_and_the_tools() {
    let place = Fixture::new();
    let request = |text: &'static str| ChatRequest::new(text, "scripted");
    for (text, until) in [
        ("!slow 1000 1000", "usage"),
        (
            "/call shell-run {\"command\": \"sleep 60\"}\n/call file-create {\"path\": \"b\", \"content\": \"\"}",
            "tool-output",
        ),
        (
            "/call file-create {\"path\":\"b\",\"content\":\"x\\n\"}",
            "tool-call",
        ),
    ] {
        let seen = Seen::until(until);
        let request = request(text);
        let chat = place.ask(&request, &seen);
        let (_, outcome) = tokio::time::timeout(Duration::from_secs(20), chat)
            .await
            .unwrap();
        assert_eq!(
            outcome.unwrap_err().code.as_deref(),
            Some(code::ABORTED),
            "{text}"
        );
        assert!(!place.0.join("b").exists(), "{text}");
    }
}

/// A model that makes so many calls at once, none of them twice.
#[derive(Debug)]
struct Endless(usize);

#[async_trait]
impl ChatModel for Endless {
    async fn stream(
        &self,
        mut request: crate::model::ChatRequest<'_>,
    ) -> Result<crate::model::Deltas, ModelError> {
        let round = request.messages.len();
        let calls = (0..self.0).map(|n| format!("/call file-find {{\"glob\":\"{round}-{n}\"}}\n"));
        let told = ChatMessage::user(calls.collect::<String>());
        request.messages = vec![&told];
        Scripted::default()
            .with_commands(true)
            .stream(request)
            .await
    }
}

#[tokio::test]
async fn stops_a_chat_without_end() {
    let mut place = Fixture::new();
    // Seven more than 294 would be more than 300.
    for (at_once, most) in [(1, 300), (7, 294)] {
        place.1.model = Arc::new(Endless(at_once));
        let (events, reply) = place.chat("go").await;
        let calls = events
            .iter()
            .filter(|event| event.tag() == "tool-call")
            .count();
        assert_eq!(calls, most);
        let reply = reply.unwrap();
        assert!(reply.error.unwrap().contains("more tools"));
        assert_eq!(reply.tool_calls.len(), most);
    }
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_with_a_code() {
    let place = Fixture::new();
    for text in ["!fail it hurts", "!break"] {
        let (_, outcome) = place.chat(text).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.code.as_deref(), Some(code::UNKNOWN));
        let detail = error.detail.unwrap();
        assert_eq!(detail.source.as_deref(), Some("generate"));
    }
    let (_, outcome) = place.ask(&ChatRequest::new("hi", ""), &Seen::new()).await;
    let code = outcome.unwrap_err().code;
    assert_eq!(code.as_deref(), Some(code::MODEL_NOT_CONFIGURED));
}

/// A model of many names, which notes by which it was asked.
#[derive(Debug, Default)]
struct Named(Mutex<Vec<String>>);

#[async_trait]
impl ChatModel for Arc<Named> {
    async fn stream(
        &self,
        request: crate::model::ChatRequest<'_>,
    ) -> Result<crate::model::Deltas, ModelError> {
        let name = request.model.unwrap_or("its own").to_owned();
        self.0.lock().unwrap().push(name);
        Scripted::default().with_echo(true).stream(request).await
    }
}

#[tokio::test]
async fn a_chat_names_any_model_of_the_provider_and_no_other() {
    let mut place = Fixture::new();
    let refusal = Some(code::MODEL_PROVIDER_UNAVAILABLE);
    let other = ChatRequest::new("hi", "gpt-5-mini");
    let (events, outcome) = place.ask(&other, &Seen::new()).await;
    assert_eq!(outcome.unwrap_err().code.as_deref(), refusal);
    assert_eq!(events, [], "the scripted model has one name");
    let asked = Arc::new(Named::default());
    place.1.model = Arc::new(Arc::clone(&asked));
    for (provider, wanted, name) in [
        ("openai", "scripted", Some("scripted")),
        ("openai", " gpt-5-mini ", Some("gpt-5-mini")),
        ("openai", "OpenAI/gpt-5-mini", Some("gpt-5-mini")),
        ("openai", "openai-compatible/qwen/q3", Some("qwen/q3")),
        ("openai", "meta/llama-4", Some("meta/llama-4")),
        ("openai", "claude-opus-4", None),
        ("openai", "google/gemini-3", None),
        ("openai", "Gemini-3", None),
        ("openai", "vercel/x", None),
        ("openai", "openai/", None),
        ("anthropic", "claude-opus-4", Some("claude-opus-4")),
        (
            "anthropic",
            "anthropic/claude-opus-4",
            Some("claude-opus-4"),
        ),
        ("anthropic", "gpt-5-mini", None),
        ("", "anthropic/claude-opus-4", None),
    ] {
        place.1.provider = provider;
        let request = ChatRequest::new("hi", wanted);
        let (events, outcome) = place.ask(&request, &Seen::new()).await;
        let asked: Vec<_> = std::mem::take(&mut *asked.0.lock().unwrap());
        match name {
            Some(name) => {
                assert_eq!(outcome.unwrap().model, wanted.trim(), "{provider}");
                assert_eq!(asked, [name], "{wanted} at {provider}");
            }
            None => {
                let error = outcome.unwrap_err();
                assert_eq!(error.code.as_deref(), refusal, "{wanted} at {provider}");
                assert!(error.message.contains("this server has \"scripted\""));
                assert!(events.is_empty() && asked.is_empty(), "nothing was done");
            }
        }
    }
}

#[tokio::test]
async fn a_request_may_name_a_folder_within_and_no_other() {
    let place = Fixture::new();
    let inner = place.1.workspace.path().join("inner");
    let inner = inner.display().to_string();
    let request = ChatRequest {
        workspace: Some(inner.into()),
        ..ChatRequest::new(
            "/call file-create {\"path\":\"c.txt\",\"content\":\"x\\n\"}",
            "scripted",
        )
    };
    let (_, outcome) = place.ask(&request, &Seen::new()).await;
    outcome.unwrap();
    assert!(place.0.join("inner/c.txt").exists());
    for outside in ["/", "/etc", ".."] {
        let request = ChatRequest {
            workspace: Some(outside.into()),
            ..ChatRequest::new("/call file-find", "scripted")
        };
        let (events, outcome) = place.ask(&request, &Seen::new()).await;
        let code = outcome.unwrap_err().code;
        assert_eq!(code.as_deref(), Some(code::SANDBOX_VIOLATION));
        assert_eq!(events, []);
    }
}

#[tokio::test]
async fn history_and_skills_reach_the_model() {
    let place = Fixture::new();
    let items = [
        r#"{"id":"msg_a","role":"user","content":"before","timestamp":"x"}"#,
        r#"{"role":"assistant","content":"shown","kind":"status"}"#,
        r#"{"role":"assistant","content":"answer","kind":"text"}"#,
        "null",
        r#"{"role":"robot","content":"beep"}"#,
        r#"{"role":"user","content":"what do you know?"}"#,
    ];
    let raw = items.map(|item| rpc_core::Json::new(item).unwrap());
    let skill = acolyte_proto::frame::Skill::new("facts", "tea is hot");
    let mut request = ChatRequest::new("what do you know?", "scripted");
    request.history = raw.into();
    request.active_skills = vec![skill.clone()];
    request.suggestions = vec!["rain is wet".into()];
    let said: Vec<_> = history::messages(&request);
    let expected = [
        ChatMessage::user("before"),
        ChatMessage::assistant("answer"),
    ];
    assert_eq!(said, expected);
    let text = place.1.instructions(&request).await;
    let more = "\n\nSkill facts:\ntea is hot\n\nHint: rain is wet";
    assert_eq!(text, format!("{SYSTEM}{more}"));
    let (events, reply) = place.ask(&request, &Seen::new()).await;
    assert_eq!(events[0], Event::SkillActivated(skill.clone()));
    assert_eq!(reply.unwrap().active_skills, vec![skill]);
}

#[tokio::test]
async fn a_model_that_is_silent_for_120_seconds_times_out() {
    use crate::model::http::HttpModel;
    use crate::model::http::tests::testing::{Does, Provider};
    let hangs = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let provider = Provider::start(Vec::leak(vec![Does::Hangs(hangs)])).await;
    let config =
        crate::model::config::ModelConfig::new(crate::model::provider::Provider::OpenAi, "toy")
            .with_base_url(&provider.url)
            .with_policy(policy());
    let mut place = Fixture::new();
    place.1.model = Arc::new(HttpModel::new(config).unwrap());
    let seen = Seen::new();
    let request = ChatRequest::new("hello", "scripted");
    let mut chat = std::pin::pin!(place.ask(&request, &seen));
    while seen.events.lock().unwrap().is_empty() {
        assert!(futures_util::poll!(chat.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let since = tokio::time::Instant::now();
    let (_, outcome) = chat.await;
    assert_eq!(outcome.unwrap_err().code.as_deref(), Some("E_TIMEOUT"));
    let waited = since.elapsed().as_secs();
    assert!((119..=120).contains(&waited), "{waited}");
}

#[tokio::test]
async fn usage_is_reported_for_each_step_and_summed_in_the_reply() {
    let place = Fixture::new();
    let (events, reply) = place.chat("/call file-read {\"path\":\"a.txt\"}").await;
    let mut steps = vec![Usage::default()];
    for event in events {
        match event {
            Event::Usage(usage) => *steps.last_mut().unwrap() = usage,
            Event::ToolResult(_) => steps.push(Usage::default()),
            _ => {}
        }
    }
    let sum = |part: fn(&Usage) -> u64| steps.iter().map(part).sum::<u64>();
    let usage = reply.unwrap().usage.unwrap();
    assert_eq!(steps.len(), 2);
    assert!(
        steps
            .iter()
            .all(|step| step.input_tokens > 0 && step.output_tokens > 0)
    );
    assert_eq!(sum(|step| step.input_tokens), usage.input_tokens);
    assert_eq!(sum(|step| step.output_tokens), usage.output_tokens);
}

#[tokio::test]
async fn repeats_text_that_it_does_not_understand() {
    let place = Fixture::new();
    let (_, reply) = place.chat("well, hello").await;
    assert_eq!(reply.unwrap().output, "well, hello");
    let (_, reply) = place.chat("").await;
    assert!(reply.unwrap().error.is_none());
}
