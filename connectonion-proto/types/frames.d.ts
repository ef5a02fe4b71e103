// The frames of the connectonion protocol. Generated from the Rust types of connectonion-proto: do not edit.
//
// A member that peers may leave out is optional, and null if some of them send that: leave it out.
// Ignore frames of other types, and other members.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** One frame of the client, as a server reads it. ConnectOnion specification, *Client → Server*. */
export type ClientFrame =
  /** Identifies the client and requests a session. */
  | Connect
  /** A prompt. */
  | Input
  /** Answers a PING. */
  | { type: "PONG" }
  /** Answers a question of the agent. */
  | Response
  /** Changes the mode. */
  | ModeChange
  /** Changes the goal. */
  | PromptUpdate
  /** Stops the agent after its current step. Not in the specification. */
  | { type: "INTERRUPT" }
  /** Requests the status of a session. */
  | SessionQuery
  /** A stranger's onboarding. */
  | OnboardSubmit
  /** An administrator's command. */
  | AdminRequest;

/** One frame of the server, as a client reads it. ConnectOnion specification, *Server → Client*. */
export type ServerFrame =
  /** The client is admitted. */
  | Connected
  /** The run has ended. */
  | Output
  /** Asks for a PONG. */
  | { type: "PING" }
  /** One step of the agent's work. */
  | StreamEvent
  /** A prompt is queued. */
  | RuntimeInputAck
  /** An error. */
  | ErrorFrame
  /** The status of a session. */
  | SessionStatus
  /** The client is a stranger. */
  | OnboardRequired
  /** The client is a contact now. */
  | OnboardSuccess
  /** The result of an administrator's command. */
  | AdminResult;

/** An administrator's command: the types of the frames ADMIN_*. Not in the specification. */
export type AdminAction = `ADMIN_${string}`;

/**
 * A session as sent in CONNECT, CONNECTED, OUTPUT and `session_sync`: an object whose members,
 * known or not, are kept in order and as they were sent. ConnectOnion specification, *CONNECT*.
 *
 * Frames hold it raw, so that a session of megabytes that is only passed on costs nothing; read it
 * with `parse`. The messages and the trace stay raw in this type, too.
 */
export type Session = { messages?: Json[]; trace?: Json[]; turn?: number; mode?: Mode; [name: string]: unknown };

/** One item of a session for display, in CONNECTED and OUTPUT (`chat_items`). */
export type ChatItem = {
  /** Its id: `msg-0`, or a tool's id. */
  id?: string | null;
} & ChatItemKind;

/** The kind of a `ChatItem`. */
export type ChatItemKind =
  /** The user's words: a text, or a list of parts if there were images. */
  | { type: "user"; content: Json }
  /** The agent's words, usually a text. */
  | { type: "agent"; content: Json }
  /** A tool and its result. */
  | { type: "tool_call" } & ToolResult
  /** The agent's thoughts. */
  | { type: "thinking" } & Thinking
  /** How the agent understood a prompt. */
  | { type: "intent" } & Intent
  /** How the agent judged its work. */
  | { type: "eval" } & Eval
  /** Files that came with a prompt. */
  | { type: "files_received" } & FilesReceived;

/**
 * An administrator's command: a frame ADMIN_*, whose payload names the client that it is about.
 * Not in the specification.
 */
export type AdminRequest = {
  /** The command: the frame's type. */
  type: AdminAction;
} & Signed;

/**
 * The first frame of a client: its identity, the requested session, and the conversation.
 * ConnectOnion specification, *CONNECT*.
 */
export type Connect = {
  type: "CONNECT";
  /** The session to resume; absent for a new one. An empty text is read as absent. */
  session_id?: string | null;
  /** The id of the last event that the client has shown. The events after it are replayed. */
  last_msg_id?: string | null;
  /** The conversation as the client has it: a `Session`, as it was sent. */
  session?: Session | null;
  /** A newer client's description of itself, as it was sent. */
  protocol?: Json | null;
} & Signed;

/**
 * A stranger's offer to become a contact: `invite_code` or `payment` in the signed payload.
 * ConnectOnion specification, *Trust Gate*.
 */
export type OnboardSubmit = { type: "ONBOARD_SUBMIT" } & Signed;

/**
 * A request for the status of a session, before or after CONNECT. Not in the specification; both
 * known clients send it.
 */
export type SessionQuery = {
  type: "SESSION_STATUS";
  /** The session. On the wire `session`, an object with this member. */
  session?: { session_id?: string } | null;
};

/** A tool waits for the user's approval. ConnectOnion specification, *Stream Events*. */
export type ApprovalNeeded = {
  /** The tool. */
  tool: string;
  /** The tool's arguments, as they were sent, usually an object. */
  arguments?: Json | null;
  /** The purpose of the tool; often empty. */
  description?: string | null;
  /** The tools that wait behind it: an array of `BatchItem`s, as it was sent. */
  batch_remaining?: BatchItem[] | null;
  /** The `tool_id` of the call. Newer hosts only. */
  tool_call_id?: string | null;
  /** The rule that requires the approval, as it was sent. Newer hosts only. */
  policy?: Json | null;
};

/** A field to fill in. */
export type AskField = {
  /** Its name in the answer. */
  name: string;
  /** Its label for people. */
  label?: string | null;
  /** The kind of text, in the agent's own words. */
  type?: string | null;
};

/**
 * The agent waits for the user's answer. ConnectOnion specification, *Stream Events*.
 *
 * On the wire the question is in `question`, where hosts write it, and in `text`, where the known
 * older clients read it. Both are read and both are written.
 */
export type AskUser = {
  /**
   * Answers to choose from: an array of texts, as it was sent. See
   * `with_options`.
   */
  options?: string[] | null;
  /** Whether several of them may be chosen. */
  multi_select?: boolean | null;
  /** The form to fill in: an array of `AskField`s, as it was sent. */
  fields?: AskField[] | null;
} & { question: string; text?: string };

/** A tool that waits behind another. */
export type BatchItem = {
  /** The tool. */
  tool: string;
  /**
   * Its arguments: JSON in a text, as hosts write it; an object is read as its text, and an
   * absent value as `{}`.
   */
  arguments?: string;
};

/**
 * The conversation is compacted, because the model's window is nearly full. ConnectOnion
 * specification, *Stream Events*. The start and the end have the same id.
 */
export type Compact = {
  /** `compacting`, `done` or `error`. */
  status: string;
  /** The used part of the model's window, in percent. At the start. */
  context_percent?: number | null;
  /** The used part before, in percent. At the end. */
  context_before?: number | null;
  /** The used part now, in percent. At the end. */
  context_after?: number | null;
  /** A message for people. At the end. */
  message?: string | null;
  /** The error message, for people. */
  error?: string | null;
};

/** The resources that a run has used. */
export type Complete = {
  /** The tools, as they were sent. */
  tools_used?: Json | null;
  /** The number of calls of a model. */
  llm_calls?: number | null;
  /** The number of iterations. */
  iterations?: number | null;
};

/** The change that a tool would make to a file. */
export type DiffPreview = {
  /** The file. */
  path: string;
  /** The change, for people. */
  preview?: string | null;
  /** Whether the preview is incomplete. */
  truncated?: boolean | null;
  /** Whether the file already exists. */
  file_exists?: boolean | null;
};

/** How the agent judges its work. The start and the end have the same id. */
export type Eval = {
  /** `evaluating` or `done`. */
  status?: string | null;
  /** Whether the work passed. */
  passed?: boolean | null;
  /** The judgement. */
  summary?: string | null;
  /** The expected result. */
  expected?: string | null;
  /** The file with the expected result. */
  eval_path?: string | null;
};

/**
 * The kind of a `StreamEvent`. The specification names seven of them; agents may send any
 * others, which are `Unknown`.
 */
export type EventKind =
  /** The agent has read a prompt. */
  | { type: "user_input" } & UserInput
  /** The agent's words. */
  | { type: "assistant"; content: string }
  /** More of the agent's words. */
  | { type: "assistant_delta" } & TextDelta
  /** A model is called. */
  | { type: "llm_call" } & LlmCall
  /** A model has answered. */
  | { type: "llm_result" } & LlmCall
  /** The agent's thoughts. */
  | { type: "thinking" } & Thinking
  /** More of the agent's thoughts. */
  | { type: "thinking_delta" } & TextDelta
  /** A tool starts. */
  | { type: "tool_call" } & ToolCall
  /** A tool has ended. */
  | { type: "tool_result" } & ToolResult
  /** The agent waits for the user's answer. */
  | { type: "ask_user" } & AskUser
  /** A tool waits for the user's approval. */
  | { type: "approval_needed" } & ApprovalNeeded
  /** A plan waits for the user's review. */
  | { type: "plan_review" } & PlanReview
  /** The conversation is compacted. */
  | { type: "compact" } & Compact
  /** The agent's mode has changed. */
  | { type: "mode_changed" } & ModeChanged
  /** The turns of the mode `ulw` are used up; the agent waits. */
  | { type: "ulw_turns_reached" } & UlwTurnsReached
  /** Files were saved. */
  | { type: "files_received" } & FilesReceived
  /** How the agent understands the prompt. */
  | { type: "intent" } & Intent
  /** How the agent judges its work. */
  | { type: "eval" } & Eval
  /** A tool may not run. */
  | { type: "tool_blocked" } & ToolBlocked
  /** An image of the agent: a data URL. */
  | { type: "agent_image"; image: string }
  /** The change that a tool would make. */
  | { type: "diff_preview" } & DiffPreview
  /** The resources that a run has used. */
  | { type: "complete" } & Complete
  /**
   * The whole conversation as it is now: a `Session`, as it was sent. Hosts send it after every
   * event, and it may be newer than the event before it.
   */
  | { type: "session_sync"; session: Session };

/** Files that came with the prompt were saved. */
export type FilesReceived = {
  /** An array of `ReceivedFile`s, as it was sent. */
  files: ReceivedFile[];
  /** The number of the prompt within the session. */
  turn?: number | null;
};

/** How the agent understands a prompt. The start and the end have the same id. */
export type Intent = {
  /** `analyzing` or `understood`. */
  status?: string | null;
  /** The agent's reply to it. */
  ack?: string | null;
  /** Whether the prompt asks to build something. */
  is_build?: boolean | null;
};

/**
 * A call of a model, and its answer, which comes in an event with the id of the call. Clients show
 * the call as thinking.
 */
export type LlmCall = {
  /** The name of the model. */
  model?: string | null;
  /** The number of the call within the turn. */
  iteration?: number | null;
  /** How long it took, in milliseconds. In the answer. */
  duration_ms?: number | null;
  /** The number of tools that the model wants to call. In the answer. */
  tool_calls_count?: number | null;
  /** The cost: a `Usage`, as it was sent. In the answer. */
  usage?: Usage & { [name: string]: unknown } | null;
  /** How much of the model's window is used, in percent. In the answer. */
  context_percent?: number | null;
  /** `running`, or in the answer `success`. */
  status?: string | null;
};

/** The agent's mode has changed. */
export type ModeChanged = {
  /** The new mode. */
  mode: Mode;
  /** Who changed it: `agent`, `user`, or `ulw_checkpoint` when the turns of the mode `ulw` are used up. */
  triggered_by?: string | null;
  /** The remaining turns. Newer hosts only. */
  turns_left?: number | null;
};

/** A plan waits for the user's review. ConnectOnion specification, *Stream Events*. */
export type PlanReview = {
  /** The plan. */
  plan_content: string;
};

/** A file that was saved. */
export type ReceivedFile = {
  /** Its name on the disk of the server. */
  name: string;
  /** Its absolute path there. Hosts of this crate always say it. */
  path?: string | null;
};

/**
 * One step of an agent's work. ConnectOnion specification, *Stream Events*.
 *
 * Hosts send all three common members with every event, and so does this crate's server; each
 * may be absent in a received event.
 */
export type StreamEvent = {
  /**
   * The event's id, from which a client can resume. Not unique: a start and its end may
   * share one.
   */
  id?: string | null;
  /** Its time, in seconds since 1970. */
  ts?: number | null;
  /** The session. */
  session_id?: string | null;
} & EventKind;

/**
 * More of a text that an agent is writing: a part of its answer, or of its thoughts. An event of
 * this crate, see *Deviations* in `spec`.
 *
 * The parts of one text have the same `message_id`. If an event with the whole text follows, that
 * is its `id`; the text of an `OUTPUT` replaces the parts of the last answer.
 */
export type TextDelta = {
  /** The text that follows the earlier parts. */
  content: string;
  /** The text that this is a part of. */
  message_id: string;
};

/** The agent's thoughts. ConnectOnion specification, *Stream Events*. */
export type Thinking = {
  /** The text. */
  content?: string | null;
  /** The source, in the agent's own words. */
  kind?: string | null;
  /** The progress: `running`, `done` or `error`. In chat items. */
  status?: string | null;
};

/** A tool was not allowed to run. */
export type ToolBlocked = {
  /** The tool. */
  tool: string;
  /** The reason, in the host's own words. */
  reason?: string | null;
  /** A message for people. */
  message?: string | null;
  /** The blocked command. */
  command?: string | null;
};

/** A tool starts. ConnectOnion specification, *Stream Events*. */
export type ToolCall = {
  /**
   * The id that its result refers to. If the host sends none, a received event has its own id
   * here.
   */
  tool_id?: string | null;
  /** The tool. */
  name: string;
  /** The tool's arguments, as they were sent, usually an object. */
  args?: Json | null;
  /** The status. Newer hosts only. */
  status?: ToolStatus | null;
};

/** A tool has ended. ConnectOnion specification, *Stream Events*. Also a tool in a list of chat items. */
export type ToolResult = {
  /** The id of its `ToolCall`. If the host sends none, a received event has its own id here. */
  tool_id?: string | null;
  /** The tool. */
  name?: string | null;
  /** The tool's arguments, as they were sent. */
  args?: Json | null;
  /** The final status. */
  status?: ToolStatus | null;
  /** The result; a value other than a text as JSON. */
  result?: string | null;
  /** How long it took, in milliseconds. */
  timing_ms?: number | null;
  /** The error message, for people. */
  error?: string | null;
  /** The kind of failure, in the host's own words. */
  error_type?: string | null;
  /** The result before it was converted to a text, as it was sent. Newer hosts only. */
  raw_output?: Json | null;
  /** The kind of tool, in the host's own words. Newer hosts only. */
  class?: string | null;
  /** Whether the user declined the call. Newer hosts only. */
  declined?: boolean | null;
};

/** The turns of the mode `ulw` are used up; the agent waits. */
export type UlwTurnsReached = {
  /** The number of used turns. */
  turns_used?: number | null;
  /** The number of allowed turns. */
  max_turns?: number | null;
};

/** The cost of a model's call. Absent members are 0. */
export type Usage = {
  /** Input tokens. */
  input_tokens?: number | null;
  /** Output tokens. */
  output_tokens?: number | null;
  /** Input tokens that came from a cache. */
  cached_tokens?: number | null;
  /** Input tokens that were written to a cache. */
  cache_write_tokens?: number | null;
  /** The price in US dollars. */
  cost?: number | null;
};

/** The agent has read a prompt: the one that started the run, or a later one. */
export type UserInput = {
  /** The user's words. */
  content: string;
  /** The number of the prompt within the session. */
  turn?: number | null;
  /** The number of the model's call that will see it. */
  iteration?: number | null;
  /**
   * Whether it came while the agent was running. The event then has the id of the
   * `RuntimeInputAck`.
   */
  runtime_input?: boolean | null;
};

/** A file attached to a prompt. ConnectOnion specification, *File Upload Protocol*. */
export type Attachment = {
  /** The client's name for it. Never a path to write to. */
  name: string;
  /** Its contents: a base64 data URL, or base64 alone. */
  data: string;
};

/** A prompt for the agent. ConnectOnion specification, *INPUT*. */
export type Input = {
  type: "INPUT";
  /** The user's words. Absent in malformed frames only: a server replies `prompt required`. */
  prompt?: string | null;
  /** Images for the model: an array of data URLs, as it was sent. */
  images?: string[] | null;
  /** Files for the agent's tools: an array of `Attachment`s, as it was sent. */
  files?: Attachment[] | null;
  /** The client's id for it. The known clients send one; no reply mentions it. */
  input_id?: string | null;
  /** The conversation, from clients before the specification's version, which send it here. */
  session?: Session | null;
} & Signed;

/** The result of an `AdminRequest`. Not in the specification. */
export type AdminResult = {
  type: "ADMIN_RESULT";
  /** The command: `promote`, `add_admin` and so on. */
  action: string;
  /** Whether it succeeded. */
  success?: boolean | null;
  /** For people. */
  message?: string | null;
  /** The error, for people. */
  error?: string | null;
  /** The client's level. */
  level?: string | null;
  /** The client. */
  client_id?: string | null;
};

/**
 * The client is a stranger, and this is how it can become a contact. ConnectOnion specification,
 * *Trust Gate*.
 */
export type OnboardRequired = {
  type: "ONBOARD_REQUIRED";
  /** The client's address. */
  identity?: string | null;
  /** The methods: an array of `OnboardMethod`s, as it was sent. */
  methods: OnboardMethod[];
  /** The required payment. */
  payment_amount?: number | null;
  /** The address for payments. */
  payment_address?: string | null;
};

/** The stranger is a contact now; CONNECTED follows. ConnectOnion specification, *Trust Gate*. */
export type OnboardSuccess = {
  type: "ONBOARD_SUCCESS";
  /** The client's address. */
  identity?: string | null;
  /** The client's level, usually `contact`. */
  level?: string | null;
  /** For people. */
  message?: string | null;
};

/** The client is admitted. ConnectOnion specification, *CONNECTED*. */
export type Connected = {
  type: "CONNECTED";
  /** The client's session, which may differ from the requested one. */
  session_id: string;
  /** The state of the session. */
  status: SessionState;
  /** Whether a conversation follows. */
  server_newer?: boolean | null;
  /**
   * The server's conversation, if it is newer than the client's: a `Session`,
   * as it was sent.
   */
  session?: Session | null;
  /**
   * The same for display: an array of `ChatItem`s, as it was sent; empty if a
   * server has left it out.
   */
  chat_items?: ChatItem[] | null;
  /** A newer host's description of itself, as it was sent. */
  protocol?: Json | null;
  /** The modes of a newer host, as they were sent. */
  session_modes?: Json | null;
  /**
   * Whether the host applies every answer only to the question that it names, and refuses late
   * ones, so that an answer may safely be sent twice. Not in the specification; this crate's
   * host sets it when a run goes on.
   */
  bound_answers?: boolean | null;
  /**
   * Whether the host recommends to sign, because it let the client in without a signature. Not
   * on the wire of the specification, which says that a host at `careful` recommends it.
   */
  signature_recommended?: boolean | null;
};

/** An error; the connection stays open. ConnectOnion specification, *ERROR*. */
export type ErrorFrame = {
  type: "ERROR";
  /** The error message, for people. Also read from `error`; a value other than a text as JSON. */
  message: string;
  /** The beginning of the unreadable text. */
  received?: string | null;
  /** The code, for programs: a number or a word, as it was sent. Newer hosts only. */
  code?: Json | null;
  /** The reason, for programs. Newer hosts only. */
  reason?: string | null;
  /** The id of the event that was answered too late. Newer hosts only. */
  request_id?: string | null;
  /** The session, where relevant. */
  session_id?: string | null;
  /** Whether the same frame may succeed later. Newer hosts only. */
  retryable?: boolean | null;
};

/** The agent is done. ConnectOnion specification, *OUTPUT*. */
export type Output = {
  type: "OUTPUT";
  /** The agent's result; a value other than a text as JSON, and null as an empty text. */
  result: string;
  /** The session. */
  session_id?: string | null;
  /** How long it took, in milliseconds. */
  duration_ms?: number | null;
  /** The conversation: a `Session`, as it was sent. */
  session?: Session | null;
  /**
   * The same for display: an array of `ChatItem`s, as it was sent. Not in the
   * specification; hosts always send it.
   */
  chat_items?: ChatItem[] | null;
  /**
   * Why the host has not stored the result, for people: it may forget it. Not in the specification;
   * hosts of this crate send it.
   */
  not_stored?: string | null;
};

/**
 * A prompt that came while the agent was running is queued. ConnectOnion specification,
 * *`RUNTIME_INPUT_ACK`*.
 */
export type RuntimeInputAck = {
  type: "RUNTIME_INPUT_ACK";
  /** The session. */
  session_id?: string | null;
  /** The id of the later `user_input` event, sent when the agent reads the prompt. */
  id: string;
};

/**
 * The state of a session. ConnectOnion specification, *CONNECTED*. Exhaustive: these are the states
 * of the specification, and the reply about a session that is not there.
 */
export type SessionState =
  /** The session is new. */
  | "new"
  /** The session's agent is running. Also read from its old name, `executing`. */
  | "running"
  /** The session does not exist, or is not the caller's: only in a `SessionStatus`. */
  | "not_found"
  /** The session existed and was idle. An unknown word counts as this one. */
  | "connected";

/**
 * The status of a session, in reply to a `SessionQuery`. Not in the
 * specification.
 */
export type SessionStatus = {
  type: "SESSION_STATUS";
  /** The session; null if the query named none. */
  session_id?: string | null;
  /** Its status. */
  status: SessionState;
};

/** An answer, by the type of its frame. */
export type Answer =
  /** To `ask_user`: a text, or any other value. ConnectOnion specification, *`ASK_USER_RESPONSE`*. */
  | { type: "ASK_USER_RESPONSE"; answer: Json }
  /** To `approval_needed`. ConnectOnion specification, *`APPROVAL_RESPONSE`*. */
  | { type: "APPROVAL_RESPONSE" } & Approval
  /** To `plan_review`: the return value of the tool that asked. Not in the specification. */
  | { type: "PLAN_REVIEW_RESPONSE"; message: string }
  /** To `ulw_turns_reached`. Not in the specification. */
  | { type: "ULW_RESPONSE" } & Ulw;

/** Whether a tool may run. ConnectOnion specification, *`APPROVAL_RESPONSE`*. */
export type Approval = {
  /** Whether the user approves. */
  approved: boolean;
  /** How long that holds; once, if absent. */
  scope?: Scope | null;
  /** The consequence of a refusal; if absent, the agent stops. Not in the specification. */
  mode?: Rejection | null;
  /** The reason for a refusal, for the agent. Not in the specification. */
  feedback?: string | null;
};

/** A change of the agent's mode. Not in the specification. */
export type ModeChange = {
  type: "mode_change";
  /** The new mode. */
  mode: Mode;
  /** The number of turns, in the mode `ulw`. */
  turns?: number | null;
};

/** A change of the goal of the mode `ulw`. Not in the specification. */
export type PromptUpdate = {
  type: "prompt_update";
  /** The goal. */
  prompt: string;
};

/** The user's answer to a question of the agent. */
export type Response = {
  /**
   * The id of the event that asked. The specification's clients do not send it; this crate's
   * client does.
   */
  request_id?: string | null;
} & Answer;

/** How to continue when the turns of the mode `ulw` are used up. */
export type Ulw = {
  /** The action; an unknown word stops the agent. */
  action: UlwAction;
  /** The number of additional turns. */
  turns?: number | null;
  /** The new mode. */
  mode?: Mode | null;
};

/**
 * The sender of a frame, with proof: `payload`, `from` and `signature`. ConnectOnion
 * specification, *Authentication*.
 *
 * Each may be absent: the server reports what is missing, in the words that clients know. The
 * payload stays as it was sent, because the signature covers its text.
 */
export type Signed = {
  /** The signed payload: a JSON object, as it was sent. */
  payload?: { [name: string]: Json } | null;
  /** The sender's address, as it was sent. */
  from?: string | null;
  /** The signature in hex, as it was sent. */
  signature?: string | null;
};

/** The actions that an agent may take without asking. ConnectOnion specification, *CONNECT* (`session.mode`). */
export type Mode =
  /** It asks before it changes anything. */
  | "safe"
  /** It only makes a plan. */
  | "plan"
  /** It may change files. */
  | "accept_edits"
  /** It works on its own for a number of turns. */
  | "ulw"
  /** The newer name of `Safe`. */
  | "read-only"
  /** The newer name of `AcceptEdits`. */
  | "auto"
  /** It may do everything. Newer hosts only. */
  | "full-access"
  | (string & {});

/** How a stranger may become a contact. ConnectOnion specification, *Trust Gate*. */
export type OnboardMethod =
  /** With an invite code. */
  | "invite_code"
  /** By a payment. */
  | "payment"
  | (string & {});

/** The consequence of a refused approval. Not in the specification. */
export type Rejection =
  /** The agent goes on without the tool. */
  | "reject_soft"
  /** The agent stops. The default of a response without a mode. */
  | "reject_hard"
  /** The agent explains what it wanted. */
  | "reject_explain"
  | (string & {});

/** How long an approval holds. ConnectOnion specification, *`APPROVAL_RESPONSE`*. */
export type Scope =
  /** For this call only. */
  | "once"
  /** For this tool until the session ends. */
  | "session"
  | (string & {});

/** The status of a tool, in events and chat items. */
export type ToolStatus =
  /** It is running. In chat items. */
  | "running"
  /** It succeeded. In chat items. */
  | "done"
  /** It succeeded. */
  | "success"
  /** It failed. */
  | "error"
  /** The tool does not exist. */
  | "not_found"
  /** It is running. Newer hosts. */
  | "in_progress"
  /** It succeeded. Newer hosts. */
  | "completed"
  /** It failed. Newer hosts. */
  | "failed"
  | (string & {});

/**
 * How to continue when the turns of the mode `ulw` are used up. Any other word stops the
 * agent.
 */
export type UlwAction =
  /** Go on for some more turns. */
  | "continue"
  /** Go on in another mode. */
  | "switch_mode"
  | (string & {});
