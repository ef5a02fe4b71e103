// Requests over HTTP that are none, or not allowed.

import { expect, request, same, sleep } from "./common.mjs";
import { Wire } from "./wire.mjs";

const JSON_TYPE = { "content-type": "application/json" };
const TEXT_TYPE = { "content-type": "text/plain" };
const good = '{"text":"steady: x"}';

/** A request is answered with one of these statuses. */
function answers(statuses, path, options = {}, body) {
  return async ({ port }) => {
    const { status, text, json } = await request(port, path, { ...options }, body);
    expect([statuses].flat().includes(status), `${status} instead of ${statuses}: ${text}`);
    if (status >= 400 && path.startsWith("/input") && statuses === status && [400, 413, 415].includes(status)) {
      same(typeof json?.error, "string", "an error as JSON");
    }
  };
}

const post = (statuses, body, headers = JSON_TYPE, more = {}) =>
  answers(statuses, "/input", { method: "POST", headers, ...more }, body);

/** Bytes are answered with one of these statuses; 0 is no answer. */
function bytes(statuses, ...parts) {
  return async ({ port }) => {
    const wire = new Wire(port);
    wire.write(...parts);
    await sleep(5);
    wire.socket.end();
    const { status, whole } = await wire.answer();
    expect(statuses.includes(status), `${whole.split("\r\n")[0] || "nothing"} instead of ${statuses}`);
    wire.reset();
  };
}

const raw = (head, body = "") => `POST /input HTTP/1.1\r\nHost: localhost\r\n${head}\r\n${body}`;

const REQUESTS = {
  "a good one": post(202, good),
  "a good one as text": post(202, "steady: x", TEXT_TYPE),
  "with a charset": post(202, good, { "content-type": "application/json; charset=utf-8" }),
  "an unknown path": answers(404, "/nothing"),
  "a path that climbs": answers(404, "/../../etc/passwd"),
  "a path that climbs, encoded": answers(404, "/%2e%2e/%2e%2e/etc/passwd"),
  "GET /input": answers(405, "/input"),
  "DELETE /input": answers(405, "/input", { method: "DELETE" }),
  "POST /clients": answers(405, "/clients", { method: "POST", headers: { "content-length": 0 } }),
  "TRACE": answers([403, 404, 405, 501], "/", { method: "TRACE" }),
  "OPTIONS of a web page": answers([403, 405], "/input", {
    method: "OPTIONS",
    headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
  }),
  "a foreign origin": post(403, good, { ...JSON_TYPE, origin: "https://evil.example" }),
  "a foreign origin that sends text": post(403, "steady: x", { ...TEXT_TYPE, origin: "https://evil.example" }),
  "an origin of null": post(403, good, { ...JSON_TYPE, origin: "null" }),
  "somebody else's Host": post([403, 421], good, { ...JSON_TYPE, host: "evil.example" }),
  "from 127.0.0.2": post(403, good, JSON_TYPE, { localAddress: "127.0.0.2" }),
  "who is there, asked from 127.0.0.2": answers(403, "/clients", { localAddress: "127.0.0.2" }),
  "who is there, asked by a web page": answers(403, "/clients", { headers: { origin: "https://evil.example" } }),
  "no type": post(415, good, {}),
  "a form": post(415, "text=x", { "content-type": "application/x-www-form-urlencoded" }),
  "XML": post(415, "<text/>", { "content-type": "application/xml" }),
  "no JSON": post(400, "hello"),
  "half of an object": post(400, '{"text":"x"'),
  "an empty body": post(400, ""),
  "an array": post(400, '["x"]'),
  "no text": post(400, "{}"),
  "a text of null": post(400, '{"text":null}'),
  "a text of 7": post(400, '{"text":7}'),
  "an empty text": post(400, '{"text":""}'),
  "a blank text": post(400, '{"text":" \\n"}'),
  "a blank body": post(400, "  ", TEXT_TYPE),
  "an unknown input method": post(400, '{"text":"x","inputMethod":"touch"}'),
  "a confidence of 2": post(400, '{"text":"x","inputMethod":"voice","confidence":2}'),
  "a confidence that is text": post(400, '{"text":"x","inputMethod":"voice","confidence":"high"}'),
  "a body that is no UTF-8": post(400, Buffer.from([0x22, 0xff]), TEXT_TYPE),
  "JSON 100,000 deep": post(400, "[".repeat(100_000)),
  "a body of a megabyte too much": post([400, 413], "x".repeat(3_000_000), TEXT_TYPE),
  "a text that fits the body and no frame": post(413, `steady: ${"x".repeat(1_048_500)}`, TEXT_TYPE),
  "garbage": bytes([0, 400], "\x00\x01\x02\x03\r\n\r\n"),
  "the beginning of TLS": bytes([0, 400], Buffer.from("16030100c8010000c40303", "hex"), Buffer.alloc(200)),
  "HTTP/2": bytes([0, 400, 505], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  "HTTP/0.9": bytes([0, 400], "GET /\r\n\r\n"),
  "HTTP/9.9": bytes([0, 400, 505], "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n"),
  "a method of its own": bytes([400, 403, 404, 405, 501], "BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
  "a header without a colon": bytes([400], "GET / HTTP/1.1\r\nHost localhost\r\n\r\n"),
  "a header with a line break": bytes([400], "GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n"),
  "a header of 100 kB": bytes([400, 431], `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${"x".repeat(100_000)}\r\n\r\n`),
  "1,000 headers": bytes([400, 431], `GET / HTTP/1.1\r\nHost: localhost\r\n${"A: b\r\n".repeat(1000)}\r\n`),
  "an address of 100 kB": bytes([400, 404, 414, 431], `GET /${"x".repeat(100_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`),
  "two lengths": bytes([400], raw("Content-Type: text/plain\r\nContent-Length: 1\r\nContent-Length: 2\r\n", "xx")),
  "a length below zero": bytes([400], raw("Content-Type: text/plain\r\nContent-Length: -1\r\n")),
  "a length without measure": bytes([400, 413], raw(`Content-Type: text/plain\r\nContent-Length: ${"9".repeat(40)}\r\n`)),
  "a length and chunks": bytes(
    [0, 202, 400],
    raw("Content-Type: text/plain\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", "9\r\nsteady: x\r\n0\r\n\r\n"),
  ),
  "chunks of a wrong size": bytes(
    [0, 400],
    raw("Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n", "zz\r\nsteady: x\r\n0\r\n\r\n"),
  ),
  "half of a body": bytes([0, 400, 408], raw("Content-Type: text/plain\r\nContent-Length: 100\r\n", "steady: x")),
  "two requests at once": async ({ port }) => {
    const wire = new Wire(port);
    const one = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";
    wire.write(one + one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    await wire.ended;
    const { status } = await wire.answer();
    same(status, 404, "the first answer");
  },
  "a client that does not wait for the answer": async ({ port }) => {
    for (let times = 0; times < 20; times += 1) {
      const wire = new Wire(port);
      wire.write(raw("Content-Type: text/plain\r\nContent-Length: 9\r\n", "steady: x"));
      await sleep(1);
      wire.reset();
    }
  },
};

export function all(served) {
  return Object.fromEntries(Object.entries(REQUESTS).map(([name, check]) => [name, () => check(served)]));
}
