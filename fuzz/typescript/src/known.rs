//! What the derives do not say: types that are written by hand, and members that are raw in Rust.

/// What a type or a member is in TypeScript: the crate, the name, the text.
type Known = (&'static str, &'static str, &'static str);

/// Types that a hand-written `Serialize` writes, and unions that are read by hand.
pub(crate) const TYPES: [Known; 8] = [
    ("acolyte", "Extra", "{ [name: string]: unknown }"),
    // Any type with this start is read as one.
    ("connectonion", "AdminAction", "`ADMIN_${string}`"),
    ("connectonion", "Number", "number"),
    (
        "connectonion",
        "Session",
        "{ messages?: Json[]; trace?: Json[]; turn?: number; mode?: Mode; [name: string]: unknown }",
    ),
    ("exoclaw", "WireId", "string | number"),
    ("snek", "OtherEvent", "{ event: string; [name: string]: unknown }"),
    // An event, or the answer to a call.
    (
        "snek",
        "ServerFrame",
        "Event | { callId: WireId; success?: boolean; data?: Json; error?: Json }",
    ),
    ("snek", "WireId", "string | number | boolean"),
];

/// Members and variants with a writer of their own, and members that the Rust types keep as they
/// were sent: `Json` would be right, but of no use.
pub(crate) const MEMBERS: [Known; 26] = [
    ("acolyte", "ChatRequest.history", "HistoryItem[]"),
    ("acolyte", "Reply.model", "string"),
    ("acolyte", "Reply.output_streamed", "boolean"),
    ("connectonion", "AskUser.question", "{ question: string; text?: string }"),
    ("connectonion", "AskUser.options", "string[]"),
    ("connectonion", "AskUser.fields", "AskField[]"),
    ("connectonion", "ApprovalNeeded.batch_remaining", "BatchItem[]"),
    ("connectonion", "ClientFrame.Interrupt", "{ type: \"INTERRUPT\" }"),
    ("connectonion", "ClientFrame.Pong", "{ type: \"PONG\" }"),
    ("connectonion", "Connect.session", "Session"),
    ("connectonion", "Connected.chat_items", "ChatItem[]"),
    ("connectonion", "Connected.session", "Session"),
    ("connectonion", "EventKind.SessionSync", "Session"),
    ("connectonion", "FilesReceived.files", "ReceivedFile[]"),
    ("connectonion", "Input.files", "Attachment[]"),
    ("connectonion", "Input.images", "string[]"),
    ("connectonion", "Input.session", "Session"),
    ("connectonion", "LlmResult.usage", "Usage"),
    ("connectonion", "OnboardRequired.methods", "OnboardMethod[]"),
    ("connectonion", "Output.chat_items", "ChatItem[]"),
    ("connectonion", "Output.session", "Session"),
    ("connectonion", "ServerFrame.Ping", "{ type: \"PING\" }"),
    ("connectonion", "SessionQuery.session_id", "{ session_id?: string }"),
    ("exoclaw", "Hello.extensions", "string[]"),
    ("smarthole", "ClientFrame.Registration", "Registration"),
    ("snek", "ClientFrame.args", "Json[]"),
];
