//! Decoding, encoding and decoding again gives the same frame, whatever the text.

use std::time::{Duration, SystemTime};

use acolyte_proto::error::AppError;
use acolyte_proto::error::ErrorDetail;
use acolyte_proto::event::{
    Checklist, ChecklistItem, Diff, DiffMarker, EditHeader, FileHeader, ItemStatus, Notice,
    RunKind, RunState, ScopeHeader, ShellOutput, ShellStream, ToolCall, ToolHeader, ToolOutput,
    ToolResult, Truncated, Usage,
};
use acolyte_proto::event::{Event, Part};
use acolyte_proto::frame::{
    AbortResult, Answer, ChatRequest, ClientFrame, Reply, ReplyUsage, Request, ServerFrame, Skill,
    Status,
};
use acolyte_proto::id::{ErrorId, ResourceId, RpcId, SessionId, TaskId};
use acolyte_proto::task::{Task, TaskState};
use acolyte_proto::{codec, limits};
use proptest::option;
use proptest::prelude::*;
use rpc_core::{Json, Str};

fn text() -> impl Strategy<Value = Str> {
    any::<String>().prop_map(Str::from)
}

fn maybe() -> impl Strategy<Value = Option<Str>> {
    option::of(text())
}

fn texts() -> impl Strategy<Value = Vec<Str>> {
    prop::collection::vec(text(), 0..3)
}

fn rpc_id() -> impl Strategy<Value = RpcId> {
    prop_oneof![
        any::<u64>().prop_map(RpcId::random),
        "rpc_[a-z0-9]{1,40}".prop_map(|id| id.parse::<RpcId>().unwrap()),
    ]
}

fn task_id() -> impl Strategy<Value = TaskId> {
    any::<u64>().prop_map(TaskId::random)
}

fn raw() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(r#"{"a":[1, null,{"b":"\ud83d\ude00"}]}"#.to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ]
    .prop_map(|json| Json::new(&json).unwrap())
}

fn detail() -> impl Strategy<Value = ErrorDetail> {
    (maybe(), maybe(), option::of(raw())).prop_map(|(code, tool, extra)| {
        let mut detail = ErrorDetail::default();
        (detail.code, detail.tool) = (code, tool);
        if let Some(extra) = extra {
            detail.extra.set("later", extra);
        }
        detail
    })
}

fn chat_error() -> impl Strategy<Value = AppError> {
    (
        text(),
        option::of(any::<u64>()),
        maybe(),
        option::of(detail()),
    )
        .prop_map(|(message, id, code, detail)| {
            let mut error = AppError::failed(message);
            error.id = id.map(ErrorId::random);
            (error.code, error.detail) = (code, detail.map(Box::new));
            error
        })
}

fn skill() -> impl Strategy<Value = Skill> {
    (".{1,9}", ".{1,9}").prop_map(|(name, instructions)| Skill::new(name, instructions))
}

fn part() -> impl Strategy<Value = Part> {
    let marker = prop::sample::select(vec![
        DiffMarker::Add,
        DiffMarker::Remove,
        DiffMarker::Context,
    ]);
    let stream = prop::sample::select(vec![ShellStream::Stdout, ShellStream::Stderr]);
    prop_oneof![
        (text(), maybe(), maybe()).prop_map(|(label_key, detail, state)| Part::ToolHeader(
            ToolHeader {
                label_key,
                detail,
                state
            }
        )),
        text().prop_map(Part::text),
        (text(), any::<u64>(), texts()).prop_map(|(label_key, count, targets)| Part::FileHeader(
            FileHeader {
                label_key,
                count,
                targets
            }
        )),
        (text(), text(), texts(), any::<u64>()).prop_map(
            |(label_key, scope, patterns, matches)| Part::ScopeHeader(ScopeHeader {
                label_key,
                scope,
                patterns,
                matches
            })
        ),
        (
            text(),
            text(),
            any::<u64>(),
            any::<u64>(),
            option::of(any::<u64>())
        )
            .prop_map(|(label_key, path, added, removed, files)| Part::EditHeader(
                EditHeader {
                    label_key,
                    path,
                    added,
                    removed,
                    files
                }
            )),
        (marker, any::<u64>(), text()).prop_map(|(marker, line_number, text)| Part::Diff(Diff {
            marker,
            line_number,
            text
        })),
        (stream, text()).prop_map(|(stream, text)| Part::ShellOutput(ShellOutput { stream, text })),
        Just(Part::NoOutput),
        (option::of(any::<u64>()), maybe())
            .prop_map(|(count, unit)| Part::Truncated(Truncated { count, unit })),
    ]
}

fn checklist() -> impl Strategy<Value = Checklist> {
    let status = prop::sample::select(vec![
        ItemStatus::Pending,
        ItemStatus::InProgress,
        ItemStatus::Done,
        ItemStatus::Failed,
        ItemStatus::Other("later".into()),
    ]);
    let item = (text(), text(), any::<u64>(), status).prop_map(|(id, label, order, status)| {
        ChecklistItem {
            status,
            ..ChecklistItem::new(id, label, order)
        }
    });
    (text(), text(), prop::collection::vec(item, 0..3)).prop_map(|(id, title, items)| Checklist {
        items,
        ..Checklist::new(id, title)
    })
}

fn event() -> impl Strategy<Value = Event> {
    let count = || option::of(any::<u64>());
    let state = prop::sample::select(RunKind::ALL.to_vec());
    let failure = (maybe(), option::of(detail())).prop_map(|(code, detail)| {
        let mut failed = ToolResult::failed("", "");
        (failed.code, failed.detail) = (code, detail.map(Box::new));
        failed
    });
    let result =
        (text(), text(), option::of(failure)).prop_map(|(id, name, failure)| match failure {
            Some(mut failed) => {
                (failed.id, failed.name) = (id.into(), name);
                failed
            }
            None => ToolResult::ok(id, name),
        });
    prop_oneof![
        (state, count(), count()).prop_map(|(kind, tool_calls, position)| Event::Status(
            RunState {
                kind,
                tool_calls,
                position
            }
        )),
        text().prop_map(Event::Reasoning),
        text().prop_map(Event::TextDelta),
        (text(), text(), raw())
            .prop_map(|(id, name, args)| Event::ToolCall(ToolCall::new(id, name, args))),
        (text(), text(), part())
            .prop_map(|(id, name, part)| Event::ToolOutput(ToolOutput::new(id, name, part))),
        result.prop_map(Event::ToolResult),
        any::<(u64, u64)>().prop_map(|(read, wrote)| Event::Usage(Usage::new(read, wrote))),
        checklist().prop_map(Event::Checklist),
        checklist().prop_map(Event::Tasklist),
        chat_error().prop_map(Event::Error),
        text().prop_map(|message| Event::Notice(Notice::warn(message))),
        (text(), text()).prop_map(|(message, source)| {
            let mut notice = Notice::error(message);
            notice.source = Some(source);
            Event::Notice(notice)
        }),
        skill().prop_map(Event::SkillActivated),
        text().prop_map(Event::SkillDeactivated),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    // Without a name it would be given one.
    let model = text().prop_filter("a name", |name| !name.is_empty());
    let usage = any::<(u64, u64, u64)>().prop_map(|(read, wrote, budget)| {
        let mut usage = ReplyUsage::new(read, wrote);
        usage.input_budget_tokens = Some(budget);
        usage
    });
    (
        (text(), model, any::<bool>(), maybe(), maybe()),
        (texts(), option::of(any::<u64>())),
        prop::collection::vec(skill(), 0..2),
        option::of(usage),
    )
        .prop_map(
            |((output, model, streamed, error, state), (tools, calls), skills, usage)| {
                let mut reply = Reply {
                    output_streamed: Some(streamed),
                    ..Reply::new(output, model)
                };
                (reply.error, reply.state, reply.tool_calls) = (error, state, tools);
                (reply.model_calls, reply.active_skills, reply.usage) = (calls, skills, usage);
                reply
            },
        )
}

fn answer() -> impl Strategy<Value = Answer> {
    let state = prop::sample::select(TaskState::ALL.to_vec());
    let task = (task_id(), state, 0..4_000_000_000_000_u64).prop_map(|(id, state, at)| {
        let mut task = Task::new(id, SystemTime::UNIX_EPOCH + Duration::from_millis(at));
        task.state = state;
        task
    });
    prop_oneof![
    1 => (text(), text(), texts()).prop_map(|(model, service, providers)| {
        let status = Status::new(model, service);
        Answer::Status(Box::new(Status { providers, ..status }))
    }),
    1 => task_id().prop_map(Answer::Accepted),
    1 => any::<u32>().prop_map(Answer::Queued),
    1 => Just(Answer::Started),
    8 => event().prop_map(Answer::Event),
    2 => reply().prop_map(|reply| Answer::Done(Box::new(reply))),
    2 => chat_error().prop_map(|error| Answer::Failed(Box::new(error))),
    1 => (rpc_id(), any::<bool>()).prop_map(|(id, aborted)| Answer::AbortResult(AbortResult::new(id, aborted))),
    1 => option::of(task).prop_map(Answer::TaskStatus),
    1 => text().prop_map(Answer::error),
            ]
}

fn request() -> impl Strategy<Value = Request> {
    let chat = (
        (text(), text(), prop::collection::vec(raw(), 0..3)),
        (option::of(any::<u64>()), option::of(any::<u64>())),
        prop::collection::vec(skill(), 0..2),
        texts(),
        maybe(),
    )
        .prop_map(
            |((message, model, history), (session, resource), skills, hints, workspace)| {
                let mut chat = ChatRequest::new(message, model);
                chat.history = history;
                chat.session_id = session.map(SessionId::random);
                chat.resource_id = resource.map(ResourceId::random);
                (chat.active_skills, chat.suggestions, chat.workspace) = (skills, hints, workspace);
                Request::ChatStart(Box::new(chat))
            },
        );
    prop_oneof![
        1 => Just(Request::StatusGet),
        3 => chat,
        1 => rpc_id().prop_map(Request::ChatAbort),
        1 => task_id().prop_map(Request::TaskStatus),
    ]
}

proptest! {
    #[test]
    fn replies_round_trip(id in rpc_id(), answer in answer()) {
        let frame = ServerFrame::new(id, answer);
        let text = codec::encode(&frame).unwrap();
        prop_assert_eq!(&ServerFrame::decode(text.as_str(), &limits::defaults()).unwrap(), &frame);
    }

    #[test]
    fn requests_round_trip(id in rpc_id(), request in request()) {
        let frame = ClientFrame::new(id, request);
        let text = codec::encode(&frame).unwrap();
        prop_assert_eq!(&ClientFrame::decode(text.as_str(), &limits::defaults()).unwrap(), &frame);
        if let Request::ChatStart(request) = &frame.request {
            let body = codec::encode(&**request).unwrap();
            let lax = ChatRequest::decode_lax(body.as_str(), &limits::defaults());
            prop_assert_eq!(&lax.unwrap(), &**request);
        }
    }

    #[test]
    fn truncated_replies_never_panic(
        id in rpc_id(),
        answer in answer(),
        at in any::<prop::sample::Index>(),
    ) {
        let text = codec::encode(&ServerFrame::new(id, answer)).unwrap();
        let chars: Vec<char> = text.as_str().chars().collect();
        let cut: String = chars[..at.index(chars.len())].iter().collect();
        let error = ServerFrame::decode(&cut, &limits::defaults()).unwrap_err();
        prop_assert_eq!(error.id, None);
    }
}
