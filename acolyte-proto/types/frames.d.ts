// The frames of the acolyte protocol. Generated from the Rust types of acolyte-proto: do not edit.
//
// A member that peers may leave out is optional, and null if some of them send that: leave it out.
// Ignore frames of other types, and other members.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** One frame of a client: `{"id", "type", "payload"}`. Acolyte specification, *RPC baseline*. */
export type ClientFrame = {
  /** The request's id: every answer carries it. */
  id: string;
} & Request;

/** One frame of a server: `{"id", "type", ...}`. Acolyte specification, *RPC baseline*. */
export type ServerFrame = {
  /** The request's id; `is_unreadable` if the server could not read it. */
  id: string;
} & Answer;

/** The unknown members of an open object, in order: at most 64. */
export type Extra = { [name: string]: unknown };

/**
 * One frame of a chat over HTTP. The stream ends with the first `Done` or
 * `Error` and cannot be resumed.
 */
export type StreamFrame = Event | { type: "done"; reply: Reply };

/**
 * The payload of a `chat.start`. Acolyte specification, *Contract shape*. The list of members is
 * complete: a server refuses any other, and null.
 */
export type ChatRequest = {
  /** The user's message; may be empty. */
  message: string;
  /** The conversation so far, oldest first: `HistoryItem`s, but servers do not check that. */
  history: HistoryItem[];
  /** The model to use. */
  model: string;
  /** The conversation; without it the server remembers nothing. */
  sessionId?: string;
  /** The owner of the memory. */
  resourceId?: string;
  /** The active skills. */
  activeSkills?: Skill[];
  /** Hints for the model. */
  suggestions?: string[];
  /** The folder in which tools work. */
  workspace?: string;
};

/** Instructions with a name. */
export type Skill = {
  /** The name; not empty. */
  name: string;
  /** The instructions for the model; not empty. */
  instructions: string;
};

/** A request of a client. Acolyte specification, *RPC baseline*. */
export type Request =
  /** Requests the server's status. */
  | { type: "status.get" }
  /** Starts a chat, or queues it. */
  | { type: "chat.start"; payload: { request: ChatRequest } }
  /** Aborts a chat of this connection, by the id of its request. */
  | { type: "chat.abort"; payload: { requestId: string } }
  /** Requests the state of a task, of any connection. */
  | { type: "task.status"; payload: { taskId: string } };

/** A message of a conversation, as the known client sends it. */
export type HistoryItem = {
  /** Its id. */
  id: string;
  /** The author. */
  role: Role;
  /** The text. */
  content: string;
  /** The kind of message. */
  kind?: HistoryKind;
  /** The time of the message. */
  timestamp: string;
};

/** The kind of a message in a history. */
export type HistoryKind =
  /** An ordinary message. */
  | "text"
  /** A message about a tool. */
  | "tool_payload"
  /** A status that the program showed. */
  | "status";

/** The author of a message. Exhaustive: the protocol has no other. */
export type Role =
  /** The program. */
  | "system"
  /** The user. */
  | "user"
  /** The model. */
  | "assistant";

/**
 * The end of a chat. Acolyte specification, *Contract shape*.
 *
 * A chat whose model failed ends with a reply too: check `error` first. Lists are
 * always written, and so are `outputStreamed` and the name of a model: without them known clients
 * wait for ever.
 */
export type Reply = {
  /** `done` or `awaiting-input`. Servers before 0.22 only. */
  state?: string;
  /** The model that answered. Empty if a server leaves it out; then written as `unknown`. */
  model?: string;
  /** The assistant's last answer. */
  output: string;
  /**
   * Whether the output was already sent as deltas; if not, show it now. absent from servers
   * before 0.22, and then written as `false`, so that no output is lost.
   */
  outputStreamed?: boolean | null;
  /** Why the model failed: the chat has then failed, whatever the output says. */
  error?: string | null;
  /** The names of the tools called, in order. */
  toolCalls?: string[];
  /** How often the model was called. */
  modelCalls?: number;
  /** The active skills. */
  activeSkills?: Skill[];
  /** The tokens that the chat used. */
  usage?: ReplyUsage;
  /** The parts of the prompt. */
  promptBreakdown?: Json;
};

/** The tokens that a chat used. */
export type ReplyUsage = {
  /** Input tokens. */
  inputTokens?: number;
  /** Output tokens. */
  outputTokens?: number;
  /** All tokens; the sum of the two if a server leaves it out. */
  totalTokens?: number;
  /** The budget of input tokens. */
  inputBudgetTokens?: number;
};

/** The result of an abort. */
export type AbortResult = {
  /** The id of the chat's request. */
  requestId: string;
  /** Whether there was a chat to abort. */
  aborted: boolean;
};

/** An answer of a server. Acolyte specification, *RPC baseline* and *Queue semantics*. */
export type Answer =
  /** Answers `status.get`. */
  | { type: "status.result"; status: Status }
  /** A chat was accepted, as this task; the first answer to a chat. */
  | { type: "chat.accepted"; taskId: string }
  /**
   * A chat waits at this position, from 1; the running chat does not count. Repeated
   * whenever the queue changes, possibly with the same position.
   */
  | { type: "chat.queued"; position: number }
  /** A chat is running. */
  | { type: "chat.started" }
  /** A step of a chat. */
  | { type: "chat.event"; event: Event }
  /** A chat has ended. It may have failed: see `Reply::error`. */
  | { type: "chat.done"; reply: Reply }
  /** A chat has failed. */
  | { type: "chat.error" } & AppError
  /** Answers `chat.abort`. */
  | { type: "chat.abort.result" } & AbortResult
  /** Answers `task.status`; absent if the server does not know the task. */
  | { type: "task.status.result"; task?: Task | null }
  /** The request was refused. */
  | { type: "error" } & Refusal;

/** The refusal of a request. */
export type Refusal = {
  /** The reason; `RpcError` recognizes the known ones. */
  error?: string | null;
};

/**
 * The identity and load of a server: `status.result`, and the body of `GET /v1/status`. Both
 * `provider_auth` and `tasks_detached` are written, because each known client requires one of
 * them.
 */
export type Status = {
  /** Whether the server is healthy; known servers always say so. */
  ok?: boolean;
  /** The models' providers; seen: `anthropic`, `google`, `openai`, `vercel`. */
  providers?: string[];
  /** The providers with a known key. Servers from 0.22. */
  provider_auth?: string[];
  /** The default model. */
  model?: string;
  /** The protocol's version, `1`. It proves nothing: all known servers report the same. */
  protocol_version?: string;
  /**
   * The server's capabilities, separated by commas. See
   * `capability_words`.
   */
  capabilities?: string;
  /** The server's own address. */
  service?: string;
  /** The number of remembered tasks. */
  tasks_total?: number;
  /** The number of running tasks. */
  tasks_running?: number;
  /** The number of running tasks without a client. Servers up to 0.21. */
  tasks_detached?: number;
  /** The number of waiting chats, of all connections. */
  rpc_queue_length?: number;
} & Extra;

/** One step of a chat. Acolyte specification, *Event model*. */
export type Event =
  /** The activity of the chat. Servers send `RunState::new(RunKind::Running)` once, when it starts. */
  | { type: "status"; state: RunState }
  /** The model's reasoning. */
  | { type: "reasoning"; text: string }
  /**
   * More of the model's text. Together, these are not the reply's output: they include what
   * the model says beside tool calls.
   */
  | { type: "text-delta"; text: string }
  /** The model calls a tool. */
  | { type: "tool-call" } & ToolCall
  /** A tool has output. */
  | { type: "tool-output" } & ToolOutput
  /** A tool has run. */
  | { type: "tool-result" } & ToolResult
  /**
   * The cost of the model's current step. Known servers send an estimate of it, again and
   * again: keep the last, never add them up, and trust the reply's.
   */
  | { type: "usage" } & Usage
  /**
   * A whole checklist, which replaces the one of its group. The name in the specification
   * and in all releases.
   */
  | { type: "checklist" } & Checklist
  /**
   * The same under the name that servers after 0.22 use: `checklist`
   * returns either.
   */
  | { type: "tasklist" } & Checklist
  /** The chat has failed. This ends a chat over HTTP; on a WebSocket, `chat.error` does. */
  | { type: "error" } & AppError
  /** A message that does not end the chat. */
  | { type: "notice" } & Notice
  /** A skill was switched on. */
  | { type: "skill-activated"; skill: Skill }
  /** The skill of this name was switched off. */
  | { type: "skill-deactivated"; name: string };

/**
 * A failure of a chat: `chat.error`, the event `error`, and the end of a failed stream over HTTP.
 * Acolyte specification, *Event model* and *Invariants*.
 *
 * It does not say whether repeating the chat is safe: its tools may have done their work.
 */
export type AppError = {
  /** The message for people. */
  errorMessage?: string;
  /** The id of the failure in the server's log. An id of another form is left out. */
  errorId?: string;
  /** The kind of failure: see `error::code`, an open set. */
  errorCode?: string;
  /** Details. */
  error?: ErrorDetail;
};

/**
 * A server's record of an accepted chat, kept until the server restarts or forgets it.
 *
 * Times are written in milliseconds and with `Z`: known clients refuse an offset.
 */
export type Task = {
  /** Its id. */
  id: string;
  /** Its state. */
  state: TaskState;
  /** When the chat was accepted. */
  createdAt: string;
  /** When the state last changed. */
  updatedAt: string;
};

/** The activity of a chat. */
export type RunState = {
  /** The kind of activity. */
  kind: RunKind;
  /** How many tools the chat has called. */
  toolCalls?: number;
  /** Its place in the queue, from 1. */
  position?: number;
};

/** The model calls a tool. Acolyte specification, *Event model*. */
export type ToolCall = {
  /** The id that the tool's outputs and its result refer to. */
  toolCallId: string;
  /** The tool. */
  toolName: string;
  /** The tool's arguments, an object; `{}` if absent. */
  args?: { [name: string]: Json };
};

/** A tool has output. Results that a server has stored come without output. */
export type ToolOutput = {
  /** The id of the call. For a tool without one, known servers send the tool's name. */
  toolCallId: string;
  /** The tool. */
  toolName: string;
  /** The output. */
  content: Part;
};

/**
 * A tool has run. The result that the model sees is not included. If the tool failed, the model gets
 * the error and continues.
 */
export type ToolResult = {
  /** The call. */
  toolCallId: string;
  /** The tool. */
  toolName: string;
  /** `true` or absent: see `told`. */
  isError?: boolean | null;
  /** The kind of failure: see `code`, an open set. */
  errorCode?: string;
  /** Details of the failure. */
  error?: ErrorDetail;
} & Extra;

/** The cost of a chat's current step, in tokens. */
export type Usage = {
  /** Input tokens. */
  inputTokens?: number;
  /** Output tokens. */
  outputTokens?: number;
};

/** A list of things to do. */
export type Checklist = {
  /** The id of the list. */
  groupId: string;
  /** The title of the list. */
  groupTitle?: string;
  /** Its items, as they were sent; see `ChecklistItem::order`. */
  items: ChecklistItem[];
};

/** A message for people that does not end the chat. Sent by servers from 0.22. */
export type Notice = {
  /** Its severity. */
  level?: NoticeLevel;
  /** The message to show. */
  message: string;
  /** Where it comes from. */
  source?: string;
};

/**
 * The details of an error. All values are open sets, and `kind` and `category` of known servers
 * are often wrong: show them, but do not rely on them.
 */
export type ErrorDetail = {
  /** The same as `AppError::code`. */
  code?: string;
  /** Seen: `timeout`, `file-not-found`, `budget-exhausted`, `other`. */
  category?: string;
  /** Seen: `timeout`, `file_not_found`, `budget_exhausted`, `sandbox_violation`, `unknown`. */
  kind?: string;
  /** Seen: `generate`, `tool-result`, `tool-error`, `server`. */
  source?: string;
  /** The tool that failed. */
  tool?: string;
} & Extra;

/** The state of a chat. Exhaustive: these are the states of the protocol. */
export type TaskState =
  /** It was accepted. */
  | "accepted"
  /** It is waiting. */
  | "queued"
  /** It is running. */
  | "running"
  /** It has ended with a reply, possibly one with an error. */
  | "completed"
  /** It has failed. */
  | "failed"
  /** It was aborted, or its connection was lost. */
  | "cancelled";

/** The activity of a chat. Known servers send `running` only. */
export type RunKind =
  /** It runs. */
  | "running"
  /** It waits for its turn. */
  | "queued"
  /** It was accepted. */
  | "accepted"
  /** It waits for the user. Servers up to 0.21 only. */
  | "awaiting-input";

/**
 * A piece of a tool's output, for people to read: the `content` of a
 * `ToolOutput`. The `label_key` of a header is the key of a translation,
 * such as `tool.label.file_read`.
 */
export type Part =
  /** The action of the tool. */
  | { kind: "tool-header" } & ToolHeader
  /** Text. A bare string as `content` is read as this. */
  | { kind: "text"; text: string }
  /** Files that are read. */
  | { kind: "file-header" } & FileHeader
  /** A search. */
  | { kind: "scope-header" } & ScopeHeader
  /** A file that is changed; `Diff` lines follow. */
  | { kind: "edit-header" } & EditHeader
  /** A line of a diff. */
  | { kind: "diff" } & Diff
  /** Output of a program, sent when it has ended. */
  | { kind: "shell-output" } & ShellOutput
  /** There is nothing to show. */
  | { kind: "no-output" }
  /** Something was left out. */
  | { kind: "truncated" } & Truncated;

/** An item of a `Checklist`. */
export type ChecklistItem = {
  /** The id of the item. */
  id: string;
  /** The text of the item. */
  label: string;
  /** Its progress. */
  status?: ItemStatus;
  /** Its position in the list. */
  order?: number;
};

/** The severity of a notice. */
export type NoticeLevel =
  /** Something may be wrong. */
  | "warn"
  /** Something is wrong. */
  | "error"
  | (string & {});

/** The action of a tool. */
export type ToolHeader = {
  /** The name of the action. */
  labelKey: string;
  /** The object of the action. */
  detail?: string;
  /** `on` or `off`, for tools that switch something. */
  state?: string;
};

/** Files that are read. */
export type FileHeader = {
  /** The name of the action. */
  labelKey: string;
  /** How many files. */
  count?: number;
  /** Their paths, possibly not all. */
  targets?: string[];
};

/** A search. */
export type ScopeHeader = {
  /** The name of the action. */
  labelKey: string;
  /** Where the search looks. */
  scope: string;
  /** The search patterns. */
  patterns?: string[];
  /** The number of matches. */
  matches?: number;
};

/** A file that is changed. */
export type EditHeader = {
  /** The name of the action. */
  labelKey: string;
  /** The file. */
  path: string;
  /** The number of files. Servers up to 0.21 only. */
  files?: number;
  /** The number of added lines. */
  added?: number;
  /** The number of removed lines. */
  removed?: number;
};

/** A line of a diff. */
export type Diff = {
  /** Whether the line is new, gone or unchanged. */
  marker: DiffMarker;
  /** The line's number, from 1. */
  lineNumber: number;
  /** The line. */
  text: string;
};

/** Output of a program. */
export type ShellOutput = {
  /** The output stream. */
  stream: ShellStream;
  /** The output. */
  text: string;
};

/** A note that something was left out. */
export type Truncated = {
  /** How much. */
  count?: number;
  /** The unit, such as `lines`. */
  unit?: string;
};

/** The progress of an item. */
export type ItemStatus =
  /** Not started. */
  | "pending"
  /** In progress. */
  | "in_progress"
  /** Done. */
  | "done"
  /** Failed. */
  | "failed"
  | (string & {});

/** The marker of a line. Exhaustive: a line with another marker is an unknown part. */
export type DiffMarker =
  /** The line is new. */
  | "add"
  /** The line is gone. */
  | "remove"
  /** The line is unchanged. */
  | "context";

/** An output stream of a program. Exhaustive: there are two. */
export type ShellStream =
  /** The standard output. */
  | "stdout"
  /** The standard error. */
  | "stderr";
