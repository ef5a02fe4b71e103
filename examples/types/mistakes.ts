// Frames with a mistake: `tsc` fails if the types allow one. And programs that the types must allow.
import type * as acolyte from "../../acolyte-proto/types/frames";
import type * as connectonion from "../../connectonion-proto/types/frames";
import type * as exoclaw from "../../exoclaw-proto/types/frames";
import type * as smarthole from "../../smarthole-proto/types/frames";
import type * as snek from "../../snek-proto/types/frames";

export const acolytes: (acolyte.ClientFrame | acolyte.ServerFrame)[] = [
  // @ts-expect-error: no id
  { type: "status.get" },
  // @ts-expect-error: an unknown type
  { id: "rpc_1", type: "status.set" },
  // @ts-expect-error: a text for a number
  { id: "rpc_1", type: "chat.queued", position: "1" },
  // @ts-expect-error: an unknown state
  { id: "rpc_1", type: "task.status.result", task: { id: "task_1", state: "lost", createdAt: "", updatedAt: "" } },
  // @ts-expect-error: null, which servers refuse
  { id: "rpc_1", type: "chat.start", payload: { request: { message: "", history: [], model: "m", workspace: null } } },
];

export const connectonions: (connectonion.ClientFrame | connectonion.ServerFrame)[] = [
  // @ts-expect-error: no tool
  { type: "approval_needed", arguments: {} },
  // @ts-expect-error: a list for an object
  { type: "CONNECT", session: [] },
  // @ts-expect-error: an unknown member
  { type: "PONG", id: "1" },
  // @ts-expect-error: not a command of an administrator
  { type: "ADMINISTER", payload: {} },
];

export const exoclaws: (exoclaw.ClientFrame | exoclaw.ServerFrame)[] = [
  // @ts-expect-error: no content
  { id: "1", method: "chat.send", params: { channel: "c", account: "a" } },
  // @ts-expect-error: the data of another event
  { id: "1", event: "usage", data: "Hello" },
  // @ts-expect-error: a hello that is none
  { ok: false },
];

export const smartholes: (smarthole.ClientFrame | smarthole.ServerFrame)[] = [
  // @ts-expect-error: no description
  { type: "registration", payload: { name: "notes" } },
  // @ts-expect-error: an unknown priority
  { type: "response", payload: { messageId: "m", type: "notification", payload: { priority: "urgent" } } },
  // @ts-expect-error: in Rust's spelling
  { type: "message", payload: { id: "m", text: "t", timestamp: "t", metadata: { input_method: "text" } } },
];

export const sneks: (snek.ClientFrame | snek.ServerFrame)[] = [
  // @ts-expect-error: no channel
  { event: "join", data: {} },
  // @ts-expect-error: arguments by name among those by position
  { method: "ping", args: { a: 1 }, callId: "1" },
  // @ts-expect-error: no text
  { event: "message", username: "ann", channel_uid: "ch1" },
];

// The tag tells the types apart.
export function text(frame: acolyte.ServerFrame): string {
  switch (frame.type) {
    case "chat.event":
      return frame.event.type === "text-delta" ? frame.event.text : frame.event.type;
    case "chat.queued":
      return frame.position.toFixed();
    default:
      return frame.id;
  }
}

export function question(frame: connectonion.ServerFrame): string | undefined {
  return frame.type === "ask_user" ? frame.question : undefined;
}

export function chunk(frame: exoclaw.ServerFrame): string | undefined {
  return "event" in frame && frame.event === "text" ? frame.data : undefined;
}
