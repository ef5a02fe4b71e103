// The frames of the snek protocol. Generated from the Rust types of snek-proto: do not edit.
//
// A member that peers may leave out is optional, and null if some of them send that: leave it out.
// Ignore frames of other types, and other members.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/**
 * A request of the client: a method, its arguments and the id that the answer will carry.
 *
 * Encoding always writes method and arguments. Decoding treats missing or null `args` and `kwargs`
 * as empty, and a missing `callId` as a request without an answer.
 */
export type ClientFrame = {
  /** The method's name. */
  method: string;
  /** The positional arguments, a JSON array. */
  args?: Json[] | null;
  /** The named arguments, a JSON object. */
  kwargs?: { [name: string]: Json } | null;
  /** The id of the answer; absent if the client wants no answer. */
  callId?: WireId | null;
};

/**
 * One frame of the server. Whether it is an answer or an event depends on the receiver: a frame
 * whose `callId` belongs to a pending call is its answer, even if it also has an `event`; any
 * other frame with an `event` is an event, even with a foreign `callId`.
 *
 * A member of the wrong type does not make the frame unreadable, because the frame may be of the
 * kind that does not need it.
 */
export type ServerFrame = Event | { event: "new_message"; channel_uid?: string; data: Partial<Message> } | { callId: WireId; success?: boolean | null; data?: Json; error?: Json };

/** An event that this crate does not know. It is encoded as it was decoded. */
export type OtherEvent = { event: string; [name: string]: unknown };

/**
 * The `callId` of a frame: any JSON string, number or boolean, kept as it was sent, to be returned
 * unchanged.
 */
export type WireId = string | number | boolean;

/** An event of the server, decoded with `ServerFrame::into_event`. */
export type Event =
  /** A message was posted in a channel, by anyone: a client gets its own messages too. */
  | { event: "message" } & Message
  /** Someone is typing. */
  | {
      event: "set_typing";
      /** The user and the channel. */
      data?: Typing | null;
    }
  /** The user was joined to a channel. */
  | {
      event: "join";
      /** The channel. */
      data: Joined;
    }
  /** The user left a channel. */
  | {
      event: "leave";
      /** The channel. */
      data: Joined;
    };

/** A channel that was joined or left. */
export type Joined = {
  /** The channel. */
  channel_uid: string;
};

/**
 * A message in a channel. Its members are at the top level of the frame, beside the name that
 * `Event::Message` writes.
 */
export type Message = {
  /** The text so far; a later message of the same sender replaces it unless this one is final. */
  message: string;
  /** The sender's login name. */
  username: string;
  /** The sender's display name; the login name if the server sends none. */
  user_nick?: string | null;
  /** The channel. */
  channel_uid: string;
  /** Whether the text is complete. */
  is_final?: boolean | null;
};

/** A typing indicator. The specification does not define the members, so each may be absent. */
export type Typing = {
  /** The channel. */
  channel_uid?: string | null;
  /** The login name of the user. */
  username?: string | null;
  /** The display name of the user. */
  user_nick?: string | null;
  /** The indicator's colour. */
  color?: string | null;
};

/** A channel. Other members of the record are ignored. */
export type Channel = {
  /** Its uid. */
  uid: string;
  /** Its display name; may be empty. */
  name?: string | null;
  /** Its kind: `"dm"`, any other text, or nothing. */
  tag?: string | null;
};

/** Whether a message is complete. Exhaustive: the wire has a boolean for it. */
export type Final = boolean;

/** No named arguments: `{}`. */
export type NoKwargs = {  };

/** A user's record. Other members of the record are ignored. */
export type User = {
  /** The login name, unique. */
  username: string;
  /** The display name; may be empty. */
  nick?: string | null;
};
