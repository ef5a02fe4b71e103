// Broken WebSockets, and broken ways to get one.

import { Client, expect, same, sleep } from "./common.mjs";
import { Wire, closing, frame, handshake, text } from "./wire.mjs";
import { registration } from "./frames.mjs";

const MEGABYTE = 1_048_576;
const REGISTERED = registration('{"name":"liner","description":"d"}');

/** The line is closed with this code; what was written is not answered. */
function closes(code, ...parts) {
  return async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(...parts);
    const next = await wire.next("a close");
    same(next.close, code, `the code: ${JSON.stringify(next)}`);
    await wire.ended;
  };
}

/** What is written is a registration, and taken. */
function registers(...parts) {
  return async (served) => {
    const wire = await Wire.open(served.port);
    for (const part of parts) {
      wire.write(part);
      await sleep(2);
    }
    const answer = await wire.said();
    const { payload } = JSON.parse(answer.text ?? "{}");
    same(payload?.success, true, `the answer: ${JSON.stringify(answer)}`);
    wire.write(closing(1000));
    same((await wire.said()).close, 1000, "the close comes back");
    await served.event("left", { client: "liner" });
  };
}

// A registration that is none behind a thousand fragments is read as one message.
const hasParts = (part) => async ({ port }) => {
  const wire = await Wire.open(port);
  const parts = Array.from({ length: 1000 }, () => frame(0, part, { fin: false }));
  wire.write(Buffer.concat([frame(1, "", { fin: false }), ...parts, frame(0, registration("7"))]));
  same(JSON.parse((await wire.next()).text).payload.code, "VALIDATION_ERROR", "the answer");
  wire.reset();
};

const halves = (at, options = {}) => [
  frame(1, REGISTERED.slice(0, at), { fin: false, ...options }),
  frame(0, REGISTERED.slice(at), options),
];

const LINES = {
  "a frame that is not masked": closes(1002, text("{}", { masked: false })),
  "an unmasked ping": closes(1002, frame(9, "", { masked: false })),
  "the first reserved bit": closes(1002, frame(1, "{}", { rsv: 4 })),
  "the second reserved bit": closes(1002, frame(1, "{}", { rsv: 2 })),
  "the third reserved bit": closes(1002, frame(1, "{}", { rsv: 1 })),
  "an unknown opcode": closes(1002, frame(3, "{}")),
  "an unknown control opcode": closes(1002, frame(11, "")),
  "a ping in fragments": closes(1002, frame(9, "x", { fin: false })),
  "a ping of 126 bytes": closes(1002, frame(9, "x".repeat(126))),
  "a close of 126 bytes": closes(1002, closing(1000, "x".repeat(124))),
  "a continuation of nothing": closes(1002, frame(0, "{}")),
  "a new message within another one": closes(1002, frame(1, "{", { fin: false }), text("{}")),
  "a close of one byte": closes(1002, frame(8, "x")),
  "a close with code 0": closes(1002, closing(0)),
  "a close with code 999": closes(1002, closing(999)),
  "a close with code 1004": closes(1002, closing(1004)),
  "a close with code 1005": closes(1002, closing(1005)),
  "a close with code 1006": closes(1002, closing(1006)),
  "a close with code 1015": closes(1002, closing(1015)),
  "a close with code 65535": closes(1002, closing(65535)),
  "a close whose reason is no UTF-8": closes(1007, closing(1000, Buffer.from([0xff, 0xfe]))),
  "a text that is no UTF-8": closes(1007, frame(1, Buffer.from([0x7b, 0xff, 0x7d]))),
  "a text with half a surrogate": closes(1007, frame(1, Buffer.from([0xed, 0xa0, 0x80]))),
  "a text with an overlong NUL": closes(1007, frame(1, Buffer.from([0xc0, 0x80]))),
  "fragments that are no UTF-8": closes(
    1007,
    frame(1, Buffer.from([0x22, 0xc3]), { fin: false }),
    frame(0, Buffer.from([0x22])),
  ),
  "a message of one byte too many": closes(1009, text("x".repeat(MEGABYTE + 1))),
  "a binary message of one byte too many": closes(1009, frame(2, "x".repeat(MEGABYTE + 1))),
  "fragments of one byte too many": closes(
    1009,
    frame(1, "x".repeat(MEGABYTE), { fin: false }),
    frame(0, "x"),
  ),
  "a head that claims a gigabyte": closes(1009, frame(1, "", { claim: 2 ** 30 })),
  "a close": closes(1000, closing(1000)),
  "a close without a code": closes(undefined, frame(8, "")),
  "a close with a code of its own": closes(4321, closing(4321, "bye")),
  "a close and more behind it": closes(1000, closing(1000), text(REGISTERED)),
  "a registration in two fragments": registers(...halves(20)),
  "a registration in fragments with pings between": registers(
    frame(1, "", { fin: false }),
    ...REGISTERED.split("").flatMap((letter) => [frame(0, letter, { fin: false }), frame(9, "p")]).slice(0, 40),
    frame(0, REGISTERED.slice(20)),
  ),
  "a registration in a binary message": registers(frame(2, REGISTERED)),
  "a registration in binary fragments": registers(
    frame(2, REGISTERED.slice(0, 9), { fin: false }),
    frame(0, REGISTERED.slice(9)),
  ),
  "a registration byte by byte": registers(...[...text(REGISTERED)].map((byte) => Buffer.from([byte]))),
  "a registration with a long form of its length": async (served) => {
    const wire = await Wire.open(served.port);
    const body = Buffer.from(REGISTERED);
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, body.length, 0, 0, 0, 0]);
    wire.write(Buffer.concat([head, body]));
    const next = await wire.next();
    const taken = next.text !== undefined && JSON.parse(next.text).payload.success;
    expect(taken || next.close === 1002, JSON.stringify(next));
    wire.reset();
    if (taken) await served.event("left", { client: "liner" });
  },
  "a length with its highest bit": async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]));
    const next = await wire.next("a close");
    expect([1002, 1009].includes(next.close), JSON.stringify(next));
  },
  "a message of a megabyte": async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(text("x".repeat(MEGABYTE)), text(registration("7")));
    same(JSON.parse((await wire.next()).text).payload.code, "VALIDATION_ERROR", "the next one is answered");
    wire.reset();
  },
  "a thousand fragments": hasParts(" "),
  "a thousand fragments with nothing in them": hasParts(""),
  "a ping with a payload": async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(frame(9, "x".repeat(125)));
    same((await wire.next()).pong, "x".repeat(125), "the same payload");
    wire.reset();
  },
  "pongs that nobody asked for": async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(frame(10, ""), frame(10, "x"), text(registration("7")));
    same(JSON.parse((await wire.next()).text).payload.code, "VALIDATION_ERROR", "the answer");
    wire.reset();
  },
  "half of a frame, and silence": async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(text(REGISTERED).subarray(0, 20));
    await sleep(20);
    wire.socket.end();
    await wire.ended;
  },
  "half of a frame, and a reset": async ({ port }) => {
    const wire = await Wire.open(port);
    wire.write(text(REGISTERED).subarray(0, 20));
    await sleep(5);
    wire.reset();
  },
  "the end of the stream without a close": async (served) => {
    const wire = await Wire.open(served.port);
    wire.write(text(REGISTERED));
    await wire.next();
    wire.socket.end();
    await served.event("left", { client: "liner" });
    await wire.ended;
  },
  "a request over HTTP on an open WebSocket": closes(1002, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
};

/** A handshake is answered with one of these statuses. */
function answers(statuses, changes = {}, where = "/") {
  return async ({ port }) => {
    const wire = new Wire(port);
    wire.write(handshake(port, where, changes));
    const { status, whole } = await wire.answer();
    expect(statuses.includes(status), `${whole.split("\r\n")[0]} instead of ${statuses}`);
    wire.reset();
  };
}

const HANDSHAKES = {
  "any path": answers([101], {}, "/some/where?x=1#y"),
  "headers in small letters": answers([101], { Host: null, host: "localhost" }),
  "several words in Connection": answers([101], { Connection: "keep-alive, Upgrade" }),
  "Upgrade in capitals": answers([101], { Upgrade: "WebSocket" }),
  "an offer to compress": async ({ port }) => {
    const wire = new Wire(port);
    wire.write(handshake(port, "/", { "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits" }));
    const { status, whole } = await wire.answer();
    same(status, 101, "the status");
    expect(!/sec-websocket-extensions/i.test(whole), "nothing is compressed");
    wire.reset();
  },
  "Obsidian's origin": answers([101], { Origin: "app://obsidian.md" }),
  "a foreign origin": answers([403], { Origin: "https://evil.example" }),
  "a foreign origin on this machine": answers([403], { Origin: "http://localhost:8080" }),
  "an origin of null": answers([403], { Origin: "null" }),
  "an empty origin": answers([403], { Origin: "" }),
  "an origin that begins like Obsidian's": answers([403], { Origin: "app://obsidian.md.evil.example" }),
  "two origins": answers([403, 400], { Origin: "app://obsidian.md\r\nOrigin: https://evil.example" }),
  "Host is localhost": answers([101], { Host: "localhost" }),
  "Host is [::1]": answers([101], { Host: "[::1]:9473" }),
  "Host is somebody else": answers([403, 421], { Host: "evil.example" }),
  "Host begins like loopback": answers([403, 421], { Host: "127.0.0.1.evil.example" }),
  "Host ends like localhost": answers([403, 421], { Host: "notlocalhost" }),
  "no Host": answers([400, 403, 421], { Host: null }),
  "two Hosts": answers([400, 403, 421], { Host: "localhost\r\nHost: evil.example" }),
  "an older version": answers([400, 426], { "Sec-WebSocket-Version": "8" }),
  "no version": answers([400, 426], { "Sec-WebSocket-Version": null }),
  "no key": answers([400], { "Sec-WebSocket-Key": null }),
  "a key that is too short": answers([400], { "Sec-WebSocket-Key": "c2hvcnQ=" }),
  "a key that is no base64": answers([400], { "Sec-WebSocket-Key": "!!!!!!!!!!!!!!!!!!!!!!!!" }),
  "HTTP/1.0": answers([400, 403, 426, 505], { version: "HTTP/1.0" }),
  "a POST": answers([400, 403, 404, 405, 426], { method: "POST", "Content-Length": "0" }),
  "Connection without Upgrade": answers([200, 400, 426], { Connection: "keep-alive" }),
  "another Upgrade": answers([200, 400, 426], { Upgrade: "h2c" }),
  "from 127.0.0.2": async ({ port }) => {
    const wire = new Wire(port, { localAddress: "127.0.0.2" });
    wire.write(handshake(port));
    const { status } = await wire.answer();
    same(status, 403, "the status");
    await wire.ended;
  },
  "from 127.0.0.2, as a client does": async ({ url }) => {
    const refused = await Client.open(url, { localAddress: "127.0.0.2" }).then(
      () => "open",
      (error) => error.message,
    );
    expect(refused.includes("403"), refused);
  },
  "a frame right behind it": async ({ port }) => {
    const wire = new Wire(port);
    wire.write(Buffer.concat([Buffer.from(handshake(port)), text(registration("7"))]));
    same((await wire.answer()).status, 101, "the status");
    same(JSON.parse((await wire.next()).text).payload.code, "VALIDATION_ERROR", "the answer");
    wire.reset();
  },
  "byte by byte": async ({ port }) => {
    const wire = new Wire(port);
    for (const byte of Buffer.from(handshake(port))) {
      wire.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    same((await wire.answer()).status, 101, "the status");
    wire.reset();
  },
  "cut off": async ({ port }) => {
    const wire = new Wire(port);
    wire.write(handshake(port).slice(0, 60));
    await sleep(5);
    wire.socket.end();
    await wire.ended;
  },
};

const bound = (checks, served) =>
  Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, () => check(served)]));

export const lines = (served) => bound(LINES, served);
export const handshakes = (served) => bound(HANDSHAKES, served);
