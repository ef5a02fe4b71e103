// The frames of the smarthole protocol. Generated from the Rust types of smarthole-proto: do not edit.
//
// A member that peers may leave out is optional, and null if some of them send that: leave it out.
// Ignore frames of other types, and other members.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/**
 * One frame of the client, as a server reads it. SmartHole specification, *Messages*.
 *
 * A server ignores unknown frames, and a `message`.
 */
export type ClientFrame =
  /**
   * The client introduces itself. Raw, because an invalid payload is answered with a code:
   * `validate::payload` parses it.
   */
  | { type: "registration"; payload: Registration }
  /** The client responds to a message. */
  | { type: "response"; payload: Response };

/**
 * One frame of the server, as a client reads it. SmartHole specification, *Messages*.
 *
 * A client ignores unknown frames.
 */
export type ServerFrame =
  /** The answer to a registration. */
  | { type: "registration_response"; payload: RegistrationResponse }
  /** A message for the client. */
  | { type: "message"; payload: Message };

/** How the user entered a text. */
export type InputMethod =
  /** Spoken. */
  | "voice"
  /** Typed. Also the default if a server does not say. */
  | "text"
  | (string & {});

/** The user's text, routed to a client. SmartHole specification, *Routed Message*. */
export type Message = {
  /** Identifies the message in responses. Opaque. */
  id: string;
  /** The user's text, without the prefix of direct routing. */
  text: string;
  /**
   * When the server created the message: ISO 8601, see
   * `timestamp::parse`.
   */
  timestamp: string;
  /** How it got here. */
  metadata?: Metadata | null;
};

/** How a message got to a client. The default is typed, and not direct. */
export type Metadata = {
  /** How the user entered it. */
  inputMethod?: InputMethod | null;
  /** Whether the user named the client. */
  directRouted?: boolean | null;
  /**
   * The confidence of the speech recognition, from 0 to 1; for voice only. Written if it is a
   * number.
   */
  confidence?: number | null;
  /** Why the router chose this client. */
  routingReason?: string | null;
};

/**
 * The description of a client. SmartHole specification, *Registration*.
 *
 * As JSON it is the `payload` of a frame; `frame` is the whole frame.
 * `validate::registration` checks it.
 */
export type Registration = {
  /** Its name, unique among connected clients. */
  name: string;
  /** The client's purpose, in natural language: routers choose clients by it. */
  description: string;
  /** Its version, for debugging. */
  version?: string | null;
  /** Hints at what it can do. */
  capabilities?: string[];
};

/** A server's answer to a registration. SmartHole specification, *Registration Response*. */
export type RegistrationResponse = { success: boolean; clientId?: string | null; code?: ErrorCode | null; message?: string | null };

/** A client's answer to a message. A server ignores unknown ones. */
export type Answer =
  /** It accepts the message. The payload does not matter. */
  | { type: "ack"; payload?: Json }
  /** It rejects the message. */
  | { type: "reject"; payload: Reject }
  /** A notification for the user. */
  | { type: "notification"; payload: Notification };

/** A notification for the user. SmartHole specification, *Notification*. */
export type Notification = {
  /** The title; the client's name if there is none. */
  title?: string | null;
  /** The text. */
  body?: string | null;
  /** Its priority; normal if absent. */
  priority?: Priority | null;
};

/**
 * The priority of a notification. Exhaustive: the specification has these three, and any other
 * makes a response invalid.
 */
export type Priority =
  /** `low`. */
  | "low"
  /** `normal`. */
  | "normal"
  /** `high`. */
  | "high";

/** Why a client rejects a message. */
export type Reject = {
  /** For the router, which uses it to choose another client. */
  reason?: string | null;
};

/**
 * A client's response to a message; there may be several to one message. SmartHole
 * specification, *Response*.
 */
export type Response = {
  /** The id of the message. */
  messageId: string;
} & Answer;

/** The code of a refused registration. SmartHole specification, *Registration Response*. */
export type ErrorCode =
  /** The name violates the rules for names. */
  | "INVALID_NAME"
  /** The description is empty or too long. */
  | "INVALID_DESCRIPTION"
  /** A client with this name is connected. */
  | "DUPLICATE_NAME"
  /** This connection has registered a client already. */
  | "ALREADY_REGISTERED"
  /** The registration is invalid in another way. */
  | "VALIDATION_ERROR"
  | (string & {});
