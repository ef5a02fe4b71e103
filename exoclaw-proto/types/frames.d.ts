// The frames of the exoclaw protocol. Generated from the Rust types of exoclaw-proto: do not edit.
//
// A member that peers may leave out is optional, and null if some of them send that: leave it out.
// Ignore frames of other types, and other members.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** One frame of the client. */
export type ClientFrame =
  /** The token, usually the first frame. */
  | Token
  /** A request. */
  | Request;

/**
 * One frame of the server. Ids are texts; a number becomes its digits. Exoclaw specification,
 * *Response Format*.
 */
export type ServerFrame =
  /** The connection is ready. */
  | Hello
  /** The token was refused; the server closes next. */
  | {
      /** The server's error text: `auth_failed`. */
      error: string;
      /** The server's code: 4001. */
      code?: number | null;
    }
  /** A request has succeeded. */
  | {
      /** The request's id. */
      id: string;
      /** The raw value; may be null. */
      result: Json;
    }
  /** A request has failed. */
  | {
      /** The request's id; `"0"` or absent if the server could not read it. */
      id?: string | null;
      /** The server's error text. */
      error: string;
    }
  /** One step of a streamed answer. */
  | {
      /** The request's id. */
      id: string;
    } & StreamEvent;

/** The parameters of `chat.send`. Exoclaw specification, *Methods*. */
export type ChatSend = { content: string } & SessionRef;

/**
 * The `id` of a request: a JSON string or number, kept as it was sent.
 *
 * Answers carry its text, as with the known gateway: a number is returned as a
 * string.
 */
export type WireId = string | number;

/** The parameters of `budget.status`. */
export type BudgetOf = Partial<SessionRef>;

/** A method and its parameters. Exoclaw specification, *Methods*. */
export type Call =
  /** Check that the gateway responds. */
  | { method: "ping"; params?: Json }
  /** Get version, plugins and sessions. */
  | { method: "status"; params?: Json }
  /** Send a chat message and get a streamed answer. */
  | { method: "chat.send"; params: ChatSend }
  /** List the loaded plugins. */
  | { method: "plugin.list"; params?: Json }
  /** Get the last turns of a session. */
  | { method: "chat.history"; params: ChatHistory }
  /** List the sessions. */
  | { method: "session.list"; params?: Json }
  /** Forget the turns and the facts of a session. */
  | { method: "session.clear"; params: SessionRef }
  /** Get the use of the token budgets. */
  | { method: "budget.status"; params?: BudgetOf }
  /** Search what is remembered of a session. */
  | { method: "memory.search"; params: MemorySearch };

/** The parameters of `chat.history`. */
export type ChatHistory = {
  /** Most turns to return; absent leaves it to the gateway. */
  limit?: number | null;
} & SessionRef;

/** The parameters of `memory.search`. */
export type MemorySearch = {
  /** The words to search for. */
  query: string;
  /** Most facts to return; absent leaves it to the gateway. */
  limit?: number | null;
} & SessionRef;

/** The parameters that name a session: those of a chat, without the content. */
export type SessionRef = {
  /** The channel. */
  channel: string;
  /** The account within the channel. */
  account: string;
  /** The peer; absent is `main`. */
  peer?: string | null;
  /** The guild or server, in channels that have them. */
  guild?: string | null;
  /** The team within a guild. */
  team?: string | null;
};

/** A request: `{"id", "method", "params"}`. Exoclaw specification, *Request Format*. */
export type Request = {
  /** The id that the answers carry. */
  id: WireId;
} & Call;

/** The frame that logs a client in: `{"token"}`. Exoclaw specification, *Authentication*. */
export type Token = { token: string };

/** One step of a streamed answer. Exoclaw specification, *Streaming Response*. */
export type StreamEvent =
  /** A chunk of the model's text, as the provider sent it; may be empty. */
  | { event: "text"; data: string }
  /** A tool call of the model. */
  | { event: "tool_use"; data: ToolUse }
  /** The result of a tool call. */
  | { event: "tool_result"; data: ToolResult }
  /** The usage of one call of the model. A chat may have several: add them up. */
  | { event: "usage"; data: Usage }
  /** The stream is complete; nothing follows. */
  | { event: "done" }
  /** The chat has failed. A gateway sends `Done` after it, or nothing. */
  | { event: "error"; data: string };

/** The result of a tool call. */
export type ToolResult = {
  /** The id of the `ToolUse`. */
  tool_use_id: string;
  /** The output of the tool. */
  content: string;
  /**
   * Whether the tool failed. The model learns of it, and continues. Always encoded, as in the
   * known gateway.
   */
  is_error?: boolean | null;
};

/** A tool call of the model. */
export type ToolUse = {
  /** The id of the call, which the result repeats. */
  id: string;
  /** The tool's name. */
  name: string;
  /** The input of the tool: any JSON value, usually an object. */
  input: Json;
};

/** The usage of a model, in tokens. */
export type Usage = {
  /** Tokens that the model read. */
  input_tokens: number;
  /** Tokens that the model wrote. */
  output_tokens: number;
};

/** A method of the specification, under *Methods* or *Future Methods*. */
export type Method =
  /** Check that the gateway responds. */
  | "ping"
  /** Get version, plugins and sessions. */
  | "status"
  /** Send a chat message and get a streamed answer. */
  | "chat.send"
  /** List the loaded plugins. */
  | "plugin.list"
  /** Get the turns of a session. Reserved for the future. */
  | "chat.history"
  /** List the sessions. Reserved for the future. */
  | "session.list"
  /** Forget the turns of a session. Reserved for the future. */
  | "session.clear"
  /** Load a plugin. Reserved for the future. */
  | "plugin.load"
  /** Unload a plugin. Reserved for the future. */
  | "plugin.unload"
  /** Get the use of the token budgets. Reserved for the future. */
  | "budget.status"
  /** Search the remembered facts. Reserved for the future. */
  | "memory.search";

/**
 * The first frame of a server that admits the client: `{"ok":true,"version":"0.1.0"}`. Exoclaw
 * specification, *Connection Lifecycle*.
 */
export type Hello = { ok: true; version?: string | null; extensions?: string[] | null };

/** The result of `budget.status`. Not in the specification, which only reserves the method. */
export type BudgetStatus = {
  /** The session's budget, if a session was named. */
  session?: BudgetUse | null;
  /** The day's budget. */
  daily: BudgetUse;
  /** The month's budget. */
  monthly: BudgetUse;
};

/**
 * One token budget, in the result of `budget.status`. Not in the specification, which only
 * reserves the method.
 */
export type BudgetUse = {
  /** The tokens used. */
  used: number;
  /** The limit; absent if there is none. */
  limit?: number | null;
};

/** The result of `session.clear`. Not in the specification, which only reserves the method. */
export type Cleared = {
  /** The number of forgotten turns. */
  turns: number;
  /** The number of forgotten facts. */
  facts?: number;
};

/**
 * Something remembered of a session, in the result of `memory.search`: a fact, or what the user said. Not in the
 * specification, which only reserves the method.
 */
export type Fact = {
  /** The fact as a sentence, or the user's message. */
  text: string;
  /** When the user said it, in seconds since 1970. */
  at: number;
  /** What the fact is about, such as `user`. absent if it is a message. */
  subject?: string | null;
  /** What it says of the subject, such as `name`. absent if it is a message. */
  relation?: string | null;
};

/** A plugin, in the result of `plugin.list`. Exoclaw specification, *Methods*. */
export type Plugin = {
  /** Its name. */
  name: string;
};

/**
 * A session, in the result of `session.list`. Not in the specification, which only reserves the
 * method.
 */
export type Session = {
  /** The key. */
  key: string;
  /** The number of remembered turns. */
  turns: number;
  /** When it was last used, in seconds since 1970. */
  last_active: number;
};

/** The result of `status`. Exoclaw specification, *Methods*. */
export type Status = {
  /** The gateway's version. */
  version: string;
  /** The number of loaded plugins. */
  plugins: number;
  /** The number of active sessions. */
  sessions: number;
};

/**
 * A turn of a session, in the result of `chat.history`: the user's message and the answer. Not in
 * the specification, which only reserves the method.
 */
export type Turn = {
  /** The user's message. */
  user: string;
  /** The model's answer. */
  assistant: string;
  /** When the turn ended, in seconds since 1970. */
  at: number;
  /** The outcome of an answer that is not whole, in words, such as `stopped`. absent if it is whole. */
  mark?: string | null;
};
