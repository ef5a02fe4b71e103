// A WebSocket client that writes what a check says, byte for byte.

import net from "node:net";
import { Failed, Queue, expect, within } from "./common.mjs";

const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

/** The lines of a handshake; null leaves one out. */
export function handshake(port, path = "/", changes = {}) {
  const headers = {
    Host: `127.0.0.1:${port}`,
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
    ...changes,
  };
  const { method = "GET", version = "HTTP/1.1", ...rest } = headers;
  const lines = Object.entries(rest).filter(([, value]) => value !== null);
  return `${method} ${path} ${version}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** A frame, masked with zeros: what is in it stays readable. */
export function frame(opcode, payload = "", { fin = true, rsv = 0, masked = true, claim } = {}) {
  const body = Buffer.from(payload);
  const length = claim ?? body.length;
  const head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode];
  const mask = masked ? 0x80 : 0;
  let size;
  if (length < 126) {
    head.push(mask | length);
    size = Buffer.alloc(0);
  } else if (length < 65536) {
    head.push(mask | 126);
    size = Buffer.alloc(2);
    size.writeUInt16BE(length);
  } else {
    head.push(mask | 127);
    size = Buffer.alloc(8);
    size.writeBigUInt64BE(BigInt(length));
  }
  return Buffer.concat([Buffer.from(head), size, Buffer.alloc(masked ? 4 : 0), body]);
}

export const text = (payload, options) => frame(1, payload, options);

export function closing(code, reason = "") {
  const body = Buffer.alloc(2);
  body.writeUInt16BE(code);
  return frame(8, Buffer.concat([body, Buffer.from(reason)]));
}

/** A TCP connection, and what comes over it. */
export class Wire {
  #bytes = Buffer.alloc(0);
  #upgraded = false;

  constructor(port, options = {}) {
    this.socket = net.connect({ host: "127.0.0.1", port, ...options });
    this.socket.setNoDelay(true);
    this.frames = new Queue();
    this.head = new Promise((read) => {
      this.#gotHead = read;
    });
    this.socket.on("data", (data) => this.#take(data));
    this.socket.on("error", (error) => {
      this.error = error;
    });
    this.ended = new Promise((end) => this.socket.on("close", end));
    this.socket.on("close", () => {
      this.#gotHead(this.#bytes.toString("latin1"));
      this.frames.push({ end: true });
    });
  }

  #gotHead;

  #take(data) {
    this.#bytes = Buffer.concat([this.#bytes, data]);
    if (!this.#upgraded) {
      const end = this.#bytes.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = this.#bytes.subarray(0, end).toString("latin1");
      if (!head.startsWith("HTTP/1.1 101")) {
        // Anything but an upgrade is looked at when it is complete.
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        if (this.#bytes.length >= end + 4 + length) this.#gotHead(this.#bytes.toString("latin1"));
        return;
      }
      this.#upgraded = true;
      this.#bytes = this.#bytes.subarray(end + 4);
      this.#gotHead(head);
    }
    for (;;) {
      const next = this.#frame();
      if (next === undefined) return;
      this.frames.push(next);
    }
  }

  #frame() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return undefined;
    expect((bytes[1] & 0x80) === 0, "a server must not mask");
    let length = bytes[1] & 0x7f;
    let at = 2;
    if (length === 126) {
      if (bytes.length < 4) return undefined;
      length = bytes.readUInt16BE(2);
      at = 4;
    } else if (length === 127) {
      if (bytes.length < 10) return undefined;
      length = Number(bytes.readBigUInt64BE(2));
      at = 10;
    }
    if (bytes.length < at + length) return undefined;
    const payload = bytes.subarray(at, at + length);
    this.#bytes = bytes.subarray(at + length);
    const opcode = bytes[0] & 0x0f;
    if (opcode === 8) {
      const code = length >= 2 ? payload.readUInt16BE(0) : undefined;
      return { close: code, reason: payload.subarray(2).toString() };
    }
    const names = { 1: "text", 2: "binary", 9: "ping", 10: "pong" };
    return { [names[opcode] ?? `opcode ${opcode}`]: payload.toString() };
  }

  write(...parts) {
    for (const part of parts) this.socket.write(part);
    return this;
  }

  /** The next frame but pings. */
  next(what = "a frame", milliseconds) {
    return this.frames.next((it) => it.ping === undefined, what, milliseconds);
  }

  /** The next text, or the end. */
  said(what = "a text", milliseconds) {
    return this.frames.next((it) => it.ping === undefined && it.pong === undefined, what, milliseconds);
  }

  /** The first answer of HTTP: its status, and all of it. */
  async answer() {
    const whole = await within(this.head, "an answer to a handshake");
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(whole)?.[1] ?? 0);
    return { status, whole };
  }

  /** Writes a handshake and waits until the line is a WebSocket. */
  async upgrade(port, path, changes) {
    this.write(handshake(port, path, changes));
    const { status, whole } = await this.answer();
    if (status !== 101) throw new Failed(`no upgrade: ${whole.split("\r\n")[0]}`);
    return this;
  }

  static async open(port, options) {
    return new Wire(port, options).upgrade(port);
  }

  /** Ends with a reset instead of the end of the stream. */
  reset() {
    this.socket.resetAndDestroy();
  }
}
