// What a page sends to the five servers, written by hand against the types. `.ci/peers/web/lives.py` holds what our
// clients send against it: the same texts, in the same order.

/** @type {(id: string) => import("../../snek-proto/types/frames").ClientFrame[]} */
export const snek = (callId) => [
  { method: "login", args: ["***"], callId },
  { method: "get_user", args: [null], kwargs: {}, callId },
  { method: "get_channels", args: [], kwargs: {}, callId },
  { method: "send_message", args: ["general", "Hello, everybody!", true], kwargs: {}, callId },
];

/** @type {(id: string) => import("../../exoclaw-proto/types/frames").ClientFrame[]} */
export const exoclaw = (id) => [
  { token: "***" },
  { id, method: "chat.send", params: { channel: "websocket", account: "user", content: "What can you do?" } },
];

/** @type {(id: string, signed: any) => import("../../connectonion-proto/types/frames").ClientFrame[]} */
export const connectonion = (_, { payload, from }) => [
  {
    type: "CONNECT",
    payload: { nonce: payload?.nonce, timestamp: payload?.timestamp, type: "CONNECT" },
    from,
    signature: "***",
  },
  { type: "INPUT", prompt: "What can you do?" },
];

/** @type {(id: string) => import("../../smarthole-proto/types/frames").ClientFrame[]} */
export const smarthole = (messageId) => [
  { type: "registration", payload: { name: "page", description: "Shows messages in a page." } },
  { type: "response", payload: { messageId, type: "ack", payload: {} } },
  { type: "response", payload: { messageId, type: "notification", payload: { body: "Noted" } } },
];

/** @type {(id: string) => import("../../acolyte-proto/types/frames").ClientFrame[]} */
export const acolyte = (id) => [
  { id, type: "status.get" },
  { id, type: "chat.start", payload: { request: { message: "List your files", history: [], model: "scripted" } } },
];
