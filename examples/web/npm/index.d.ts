// The classes of the package, and their options. `package.mjs` of the checks holds the methods against the module.
import type * as acolyte from "./types/acolyte.js";
import type * as connectonion from "./types/connectonion.js";
import type * as exoclaw from "./types/exoclaw.js";
import type * as smarthole from "./types/smarthole.js";
import type * as snek from "./types/snek.js";
export type { acolyte, connectonion, exoclaw, smarthole, snek };

/** What a call, or a wait, takes beside its arguments. */
export interface CallOptions {
  /** The most milliseconds to wait. Then it rejects with the code `TIMED_OUT`. */
  timeout?: number;
  /** Ends the wait, with the signal's reason. Of a stream, it also ends the work of the peer, if the protocol can. */
  signal?: AbortSignal;
}

/** What every client takes. `timeout` and `signal` are for the first connection. */
export interface ClientOptions extends CallOptions {
  /** Whether `connect` resolves at once, and keeps trying: for servers that start later. Else it tries once. */
  lazy?: boolean;
  /** Whether secrets may go to another machine without encryption. */
  insecure?: boolean;
  /** The milliseconds that each call waits for its answer. */
  callTimeout?: number;
  /** Gets each frame, without its secrets. */
  onframe?: (direction: "in" | "out", text: string) => void;
}

export interface SnekOptions extends ClientOptions {
  username: string;
  password: string;
}

export interface ExoclawOptions extends ClientOptions {
  token?: string;
  /** The channel, the account and the peer of chats: together they name the conversation. */
  channel?: string;
  account?: string;
  peer?: string;
  /** The milliseconds that a chat waits for its next piece. */
  idleTimeout?: number;
}

export interface SmartHoleOptions extends Omit<ClientOptions, "insecure" | "callTimeout"> {
  /** The name, unique among the clients of a router. */
  name: string;
  /** What the client is for: the router chooses clients by it. */
  description: string;
  version?: string;
  capabilities?: string[];
}

export interface ConnectOnionOptions extends ClientOptions {
  /** The private key, of `generateKey`. */
  key: Uint8Array;
  /** The agent's address. Newer hosts require it. */
  host?: string;
  /** For agents that ask strangers for one. */
  inviteCode?: string;
  /** What `session` gave. */
  resume?: Session;
}

export interface AcolyteOptions extends ClientOptions {
  apiKey?: string;
  /** The milliseconds that a chat waits for its next piece. */
  idleTimeout?: number;
}

/** Why something failed. */
export interface ClientError extends Error {
  /** For programs, such as `NOT_CONNECTED`, `TIMED_OUT`, `AUTHENTICATION`, `CONNECT`, `LOST`; `REMOTE` is an error of the peer. */
  code: string;
  /** Whether the same may succeed later. */
  retryable: boolean;
  /** Whether it may have reached the peer. What has an effect is safe to repeat only after `NOT_SENT`. */
  delivery: "NOT_SENT" | "UNKNOWN" | "DELIVERED";
  /** With `REMOTE`, the peer's frame where it has more than a message. */
  detail?: connectonion.ErrorFrame;
}

export interface State {
  state: "connecting" | "ready" | "closing" | "lost" | "gave-up" | "closed";
  /** When connecting: how many attempts have failed. */
  attempt?: number;
  /** When ready: which connection this is, from 1. */
  generation?: number;
  /** Why it was lost or has ended. */
  error?: ClientError;
  /** When lost: the milliseconds until the next attempt. */
  retryIn?: number;
}

/** This many items were dropped here, because they were not taken in time. */
export interface Lagged {
  lagged: number;
  /** Items have one of these, by which they are told apart. */
  type?: undefined;
  event?: undefined;
}

/** What comes piece by piece: iterate over it, or await its `result`. */
export interface Stream<Item, Result> extends AsyncIterableIterator<Item> {
  /** Takes what is left, and resolves with what comes of it. */
  result(): Promise<Result>;
  /** Ends the work at the peer, if the protocol can; else only the stream. */
  abort(): Promise<void>;
}

/** The steps of an agent, and its output. `result` declines what the agent asks: iterate, and respond, to answer. */
export type Run = Stream<connectonion.StreamEvent | connectonion.RuntimeInputAck | Lagged, connectonion.Output>;

/** Where a client of an agent goes on. */
export interface Session {
  session_id?: string;
  last_msg_id?: string;
  session?: connectonion.Session;
}

/** What the methods of a gateway resolve with. */
export interface ExoclawResults {
  ping: exoclaw.Json;
  status: exoclaw.Status;
  "plugin.list": exoclaw.Plugin[];
  "chat.history": exoclaw.Turn[];
  "session.list": exoclaw.Session[];
  "session.clear": exoclaw.Cleared;
  "budget.status": exoclaw.BudgetStatus;
  "memory.search": exoclaw.Fact[];
}

/** What every client has. */
declare abstract class Client<Event> {
  protected constructor();
  /** What belongs to no call. To leave a loop ends nothing, and another loop goes on. */
  [Symbol.asyncIterator](): AsyncIterator<Event | Lagged>;
  /** The state of the connection. */
  readonly state: State;
  /** The state of the connection, and each that follows. */
  states(): AsyncIterableIterator<State>;
  /** Resolves once there is a connection; rejects if there will be none. */
  ready(options?: CallOptions): Promise<void>;
  /** Resolves once the client has ended, with the reason. */
  closed(): Promise<ClientError>;
  /** Closes the connection for good. What is in flight fails. */
  close(): void;
  /**
   * Waits for what is in flight, at most this many milliseconds, and closes. Resolves with how many calls have finished,
   * and how many have not.
   */
  drain(timeout: number): Promise<{ finished: number; aborted: number }>;
}

/**
 * A user of a Snek chat. Iterate over it for the events of the channels. One that these types do not know is a
 * `snek.OtherEvent`.
 */
export class SnekClient extends Client<snek.Event> {
  /** Calls any method. */
  call(method: string, args?: snek.Json[], kwargs?: { [name: string]: snek.Json }, options?: CallOptions): Promise<snek.Json>;
  /** Connects and logs in. */
  static connect(url: string, options: SnekOptions): Promise<SnekClient>;
  /** Fetches the channels that the user can see. */
  getChannels(options?: CallOptions): Promise<snek.Channel[]>;
  /** Posts a message. With `final: false` it is the text so far of one that grows. */
  sendMessage(channel: string, text: string, options?: CallOptions & { final?: boolean }): Promise<snek.Json>;
}

/** A client of an Exoclaw gateway to language models. Iterate over it for errors of the gateway that belong to no call. */
export class ExoclawClient extends Client<{ error: string }> {
  /** Sends a message to the model. Resolves once it is sent. */
  chat(content: string | exoclaw.ChatSend, options?: CallOptions): Promise<Stream<exoclaw.StreamEvent, { text: string; usage: exoclaw.Usage }>>;
  /** Connects to a gateway, and logs in if there is a token. */
  static connect(url: string, options?: ExoclawOptions): Promise<ExoclawClient>;
  /** Calls a method without a stream. */
  call<M extends keyof ExoclawResults>(
    method: M,
    params?: Extract<exoclaw.Call, { method: M }>["params"],
    options?: CallOptions,
  ): Promise<ExoclawResults[M]>;
  /** Calls a method that this package does not know. */
  call<M extends string>(
    method: M & (M extends keyof ExoclawResults ? never : unknown),
    params?: exoclaw.Json,
    options?: CallOptions,
  ): Promise<exoclaw.Json>;
}

/**
 * A client of a SmartHole router. Iterate over it for the messages: each needs a response within 30 seconds. The router
 * gives one that has none to another client.
 */
export class SmartHoleClient extends Client<Extract<smarthole.ServerFrame, { type: "message" }>> {
  /** Connects to a router and registers; after a lost connection once more. */
  static connect(url: string, options: SmartHoleOptions): Promise<SmartHoleClient>;
  /**
   * Responds to a message, by its id. There may be several responses: an `ack` at once, and a `notification` when the
   * work is done.
   */
  respond(id: string, answer: smarthole.Answer): Promise<void>;
}

/**
 * A client of a ConnectOnion agent. Iterate over it for what belongs to no run of this client: the steps of a run that
 * another device has started, for example.
 */
export class ConnectOnionClient extends Client<connectonion.ServerFrame> {
  /** Follows the run that goes on, of another device or of this page before it was loaded again. */
  attach(options?: CallOptions): Run;
  /** Connects to an agent, with this private key. */
  static connect(url: string, options: ConnectOnionOptions): Promise<ConnectOnionClient>;
  /** Makes a private key: 32 random bytes. Store it, for the agent knows this client by it. */
  static generateKey(): Uint8Array;
  /** Sends a prompt. Resolves once it is sent. A running agent reads it beside its work. */
  input(prompt: string | Omit<connectonion.Input, "type">, options?: CallOptions): Promise<Run>;
  /** Stops the agent after its current step. */
  interrupt(): Promise<void>;
  /** Answers a question of the agent: `request_id` is the `id` of the step that asks. */
  respond(response: connectonion.Response): Promise<void>;
  /** What the option `resume` takes, to go on after the page was loaded again: store it. */
  session(): Session;
  /** Changes the agent's mode; `turns` is for the mode `ulw`. */
  setMode(mode: connectonion.Mode, turns?: number | null): Promise<void>;
  /** Requests the status of a session. */
  status(session_id: string, options?: CallOptions): Promise<connectonion.SessionStatus>;
  /** The address of this client: its public key. */
  readonly address: string;
}

/** A client of an Acolyte coding agent. Iterate over it for errors of the server that belong to no call. */
export class AcolyteClient extends Client<{ error: string }> {
  /** Starts a chat. Resolves once it is sent. To leave its loop aborts it. */
  chat(request: acolyte.ChatRequest, options?: CallOptions): Promise<Stream<acolyte.Answer, acolyte.Reply>>;
  /** Connects to a server. */
  static connect(url: string, options?: AcolyteOptions): Promise<AcolyteClient>;
  /** Requests the server's status. */
  status(options?: CallOptions): Promise<acolyte.Status>;
  /**
   * Requests the state of a task: what became of a chat whose connection was lost. `null` if the server does not know
   * it.
   */
  taskStatus(id: string, options?: CallOptions): Promise<acolyte.Task | null>;
}
