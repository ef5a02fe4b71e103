//! What the derives do not say: types that are written by hand, and members that are raw in Rust.

/// What a type or a member is in TypeScript: the crate, the name, the text.
type Known = (&'static str, &'static str, &'static str);

/// Types that a hand-written `Serialize` writes, and unions that are read by hand.
pub(crate) const TYPES: [Known; 10] = [
    ("acolyte", "Extra", "{ [name: string]: unknown }"),
    (
        "acolyte",
        "StreamFrame",
        "Event | { type: \"done\"; reply: Reply }",
    ),
    // Any type with this start is read as one.
    ("connectonion", "AdminAction", "`ADMIN_${string}`"),
    ("connectonion", "Number", "number"),
    (
        "connectonion",
        "Session",
        "{ messages?: Json[]; trace?: Json[]; turn?: number; mode?: Mode; [name: string]: unknown }",
    ),
    ("exoclaw", "ChatSend", "{ content: string } & SessionRef"),
    ("exoclaw", "WireId", "string | number"),
    (
        "snek",
        "OtherEvent",
        "{ event: string; [name: string]: unknown }",
    ),
    // An event, also as the platform sends it, or the answer to a call.
    (
        "snek",
        "ServerFrame",
        "Event | { event: \"new_message\"; channel_uid?: string; data: Partial<Message> } \
         | { callId: WireId; success?: boolean | null; data?: Json; error?: Json }",
    ),
    ("snek", "WireId", "string | number | boolean"),
];

/// Members and variants with a writer of their own, and members that the Rust types keep as they
/// were sent: `Json` would be right, but of no use. `?` is for one that may be absent.
pub(crate) const MEMBERS: [Known; 33] = [
    ("acolyte", "ChatRequest.history", "HistoryItem[]"),
    ("acolyte", "Reply.model", "string"),
    ("acolyte", "Reply.output_streamed", "boolean"),
    (
        "connectonion",
        "AskUser.question",
        "{ question: string; text?: string }",
    ),
    ("connectonion", "AskUser.multi_select", "?boolean | null"),
    ("connectonion", "AskUser.options", "string[]"),
    ("connectonion", "AskUser.fields", "AskField[]"),
    (
        "connectonion",
        "ApprovalNeeded.batch_remaining",
        "BatchItem[]",
    ),
    (
        "connectonion",
        "ClientFrame.Interrupt",
        "{ type: \"INTERRUPT\" }",
    ),
    ("connectonion", "ClientFrame.Pong", "{ type: \"PONG\" }"),
    ("connectonion", "Connect.session", "Session"),
    ("connectonion", "Connected.chat_items", "ChatItem[]"),
    ("connectonion", "Connected.session", "Session"),
    ("connectonion", "EventKind.SessionSync", "Session"),
    ("connectonion", "FilesReceived.files", "ReceivedFile[]"),
    ("connectonion", "Input.files", "Attachment[]"),
    ("connectonion", "Input.images", "string[]"),
    ("connectonion", "Input.session", "Session"),
    (
        "connectonion",
        "LlmCall.usage",
        "Usage & { [name: string]: unknown }",
    ),
    ("connectonion", "OnboardRequired.methods", "OnboardMethod[]"),
    ("connectonion", "Output.chat_items", "ChatItem[]"),
    ("connectonion", "Output.session", "Session"),
    ("connectonion", "ServerFrame.Ping", "{ type: \"PING\" }"),
    (
        "connectonion",
        "SessionQuery.session_id",
        "{ session_id?: string }",
    ),
    // Without parameters it is about the whole gateway.
    ("exoclaw", "Call.BudgetStatus", "?BudgetOf"),
    ("exoclaw", "Hello.ok", "true"),
    ("exoclaw", "Hello.extensions", "string[]"),
    ("smarthole", "ClientFrame.Registration", "Registration"),
    ("snek", "ClientFrame.args", "Json[] | null"),
    (
        "snek",
        "ClientFrame.kwargs",
        "{ [name: string]: Json } | null",
    ),
    ("snek", "Event.SetTyping.data", "?Typing | null"),
    ("snek", "Message.is_final", "?boolean | null"),
    ("snek", "Message.user_nick", "?string | null"),
];

/// Recorded frames that a crate reads, although a member is not of its type: a host refuses it later,
/// or a client does without it. The types must not allow them.
pub(crate) const WRONG: [(&str, &str); 7] = [
    (
        "connectonion",
        r#"{"files":["text"],"prompt":"echo upload","type":"INPUT"}"#,
    ),
    (
        "connectonion",
        r#"{"files":[{"data":"aGVsbG8="}],"prompt":"echo upload","type":"INPUT"}"#,
    ),
    (
        "connectonion",
        r#"{"files":[{"name":"x"}],"prompt":"echo upload","type":"INPUT"}"#,
    ),
    ("exoclaw", r#"{"ok":true,"version":1}"#),
    (
        "snek",
        r#"{"channel_uid":5,"data":{"channel_uid":"c","message":"m","username":"u"},"event":"new_message"}"#,
    ),
    (
        "snek",
        r#"{"data":{"channel_uid":1,"color":false,"user_nick":{},"username":[]},"event":"set_typing"}"#,
    ),
    // Another name of `user_nick`.
    ("snek", r#"{"data":{"nick":"n"},"event":"set_typing"}"#),
];
