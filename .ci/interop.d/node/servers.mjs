// Our client against routers in Node: one that behaves, and many that do not.
//
//   node servers.mjs ROUTER

import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocketServer } from "ws";
import { Checks, Program, Queue, expect, same, sleep, title } from "./common.mjs";
import { JUNK } from "./frames.mjs";

const path = process.argv[2];
const checks = new Checks();
const folder = mkdtempSync(join(tmpdir(), "router-client-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const ACCEPTED = { type: "registration_response", payload: { success: true, clientId: "c-1", message: "hi" } };
const refusal = (payload) => ({ type: "registration_response", payload: { success: false, ...payload } });
let numbers = 0;

function message(id, text, more = {}) {
  const metadata = { inputMethod: "text", directRouted: true };
  return { type: "message", payload: { id, text, timestamp: "2024-01-15T10:30:00.000Z", metadata, ...more } };
}

/** A router in Node: what each client that comes does is up to the check. */
class Host {
  static async open(options = {}) {
    const host = new Host();
    host.server = new WebSocketServer({ host: "127.0.0.1", port: 0, ...options });
    host.visits = new Queue();
    host.server.on("connection", (socket, request) => {
      const visit = { socket, headers: request.headers, at: Date.now(), frames: new Queue() };
      visit.closed = once(socket, "close").then(([code, reason]) => [code, reason.toString()]);
      socket.on("message", (data, isBinary) => {
        visit.frames.push(isBinary ? { binary: true } : JSON.parse(data.toString()));
      });
      socket.on("error", () => {});
      visit.send = (frame) => socket.send(typeof frame === "string" || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame));
      visit.answer = async (id, milliseconds) => {
        const fits = (frame) => frame.type === "response" && frame.payload.messageId === id;
        return (await visit.frames.next(fits, `an answer to ${id}`, milliseconds)).payload;
      };
      host.visits.push(visit);
    });
    await once(host.server, "listening");
    host.port = host.server.address().port;
    return host;
  }

  visit(milliseconds) {
    return this.visits.next(() => true, "a client", milliseconds);
  }

  /** A client that has registered. */
  async registered(milliseconds) {
    const visit = await this.visit(milliseconds);
    const frame = await visit.frames.next(() => true, "a registration");
    same(frame.type, "registration", "the first frame");
    visit.registration = frame;
    visit.send(ACCEPTED);
    return visit;
  }

  client(...args) {
    return client(this.port, ...args);
  }

  close() {
    for (const socket of this.server.clients) socket.terminate();
    this.server.close();
  }
}

function client(port, ...args) {
  numbers += 1;
  const file = join(folder, `${numbers}.txt`);
  const program = new Program(path, ["router", "client", "--url", `ws://127.0.0.1:${port}`, "--file", file, ...args]);
  return Object.assign(program, { file });
}

/** A message is taken: nothing before it has hurt the client. */
async function still_there(visit) {
  numbers += 1;
  const id = `after-${numbers}`;
  visit.send(message(id, "buy milk"));
  same((await visit.answer(id)).type, "ack", "the answer");
  same((await visit.answer(id)).type, "notification", "what follows");
}

async function ended(program, code) {
  same(await program.ended, code, `the exit code, after ${program.errors.slice(-2).join(" / ")}`);
  expect(!program.errors.some((line) => line.includes("panicked")), "nothing panicked");
}

async function the_registration_and_the_answers_are_those_of_the_specification() {
  const host = await Host.open();
  const program = host.client("--name", "my-notes", "--description", "Keeps notes.", "--capability", "lists");
  const visit = await host.registered();
  same(Object.keys(visit.registration), ["type", "payload"], "the members");
  const { name, description, version, capabilities, ...more } = visit.registration.payload;
  same([name, description, capabilities, more], ["my-notes", "Keeps notes.", ["lists"], {}], "the payload");
  same(typeof version, "string", "the version");
  same([visit.headers.origin, visit.headers["sec-websocket-extensions"]], [undefined, undefined], "the handshake");
  visit.send(message("m-1", "buy milk"));
  same(await visit.answer("m-1"), { messageId: "m-1", type: "ack", payload: {} }, "the ack");
  const shown = { title: "Note saved", body: "buy milk" };
  same(await visit.answer("m-1"), { messageId: "m-1", type: "notification", payload: shown }, "the notification");
  expect(readFileSync(program.file, "utf8").includes("buy milk"), "the note is in the file");
  program.child.kill("SIGINT");
  same(await visit.closed, [1000, "Client disconnect"], "the close");
  await ended(program, 0);
  host.close();
}

async function a_bare_acceptance_will_do() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.visit();
  const { payload } = await visit.frames.next();
  expect(!("capabilities" in payload), "what is not said is left out");
  visit.send('{"payload":{"success":true},"type":"registration_response","later":[1]}');
  await still_there(visit);
  await program.stop();
  host.close();
}

async function rejections_say_why() {
  const host = await Host.open();
  const program = host.client("--only", "milk");
  const visit = await host.registered();
  visit.send(message("m", "bread"));
  const { type, payload } = await visit.answer("m");
  same([type, payload], ["reject", { reason: "I only take what is about: milk" }], "the rejection");
  await program.stop();
  host.close();
}

async function each_refusal_ends_it_with_4000() {
  const refusals = [
    ...["INVALID_NAME", "INVALID_DESCRIPTION", "DUPLICATE_NAME", "ALREADY_REGISTERED", "VALIDATION_ERROR", "LATER"].map(
      (code) => ({ code, message: `this is about ${code}` }),
    ),
    { code: "DUPLICATE_NAME" },
    { message: "just no" },
    {},
  ];
  for (const payload of refusals) {
    const host = await Host.open();
    const program = host.client();
    const visit = await host.visit();
    await visit.frames.next();
    visit.send(refusal(payload));
    same(await visit.closed, [4000, "Registration failed"], `the close after ${JSON.stringify(payload)}`);
    await ended(program, 3);
    const words = program.errors.join(" ");
    expect(words.includes(payload.code ?? "refuse"), `the code is told: ${words}`);
    host.close();
  }
}

async function junk_changes_nothing() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.registered();
  const bad = [
    '{"type":"message"}',
    '{"type":"message","payload":null}',
    '{"type":"message","payload":"x"}',
    '{"type":"message","payload":{}}',
    '{"type":"message","payload":{"id":"x"}}',
    '{"type":"message","payload":{"id":{},"text":"x","timestamp":"t"}}',
    '{"type":"message","payload":{"id":"x","text":7,"timestamp":"t"}}',
    '{"type":"message","payload":{"id":"x","text":"x","timestamp":"t","metadata":[]}}',
    '{"type":"message","payload":{"id":"x","text":"x","timestamp":"t","metadata":{"confidence":"high"}}}',
    '{"type":"message","payload":{"id":"x","id":"y","text":"x","timestamp":"t"}}',
    '{"type":"registration_response"}',
    '{"type":"registration_response","payload":{}}',
    JSON.stringify(ACCEPTED),
    JSON.stringify(refusal({ code: "INVALID_NAME" })),
    '{"type":"registration","payload":{}}',
    '{"type":"response","payload":{"messageId":"m","type":"ack"}}',
    '{"type":"ping","payload":{}}',
  ];
  for (const [name, text] of Object.entries({ ...JUNK, ...bad })) {
    // A frame of a message, as the client is told them, is none.
    if (name !== "a message to the server") visit.send(text);
    visit.send(Buffer.from(text));
    await still_there(visit);
  }
  same(visit.frames.length, 0, "nothing else was said");
  await program.stop();
  host.close();
}

async function odd_messages_are_taken() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.registered();
  const T = "2024-01-15T10:30:00.000Z";
  const odd = [
    ["bare", { id: "bare", text: "x", timestamp: T }],
    ["null", { id: "null", text: "x", timestamp: T, metadata: null }],
    ["touch", { id: "touch", text: "x", timestamp: T, metadata: { inputMethod: "touch", source: 7 } }],
    ["7", { id: 7, text: "x", timestamp: 0 }],
    ["", { id: "", text: "x", timestamp: "" }],
    ["m\u0000\ud83d\ude00", { id: "m\u0000\ud83d\ude00", text: "\u0000\u001b[2J", timestamp: T }],
    ["more", { id: "more", text: "x", timestamp: T, priority: "high", attachments: [{}] }],
    ["long", { id: "long", text: "x".repeat(1_000_000), timestamp: T }],
  ];
  for (const [id, payload] of odd) {
    visit.send({ type: "message", payload });
    same((await visit.answer(id)).type, "ack", `the answer to ${JSON.stringify(id)}`);
    await visit.answer(id);
  }
  await still_there(visit);
  await program.stop();
  host.close();
}

async function messages_before_the_acceptance_wait_for_it() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.visit();
  visit.send(message("early", "buy milk"));
  await visit.frames.next();
  await sleep(100);
  same(visit.frames.length, 0, "no answer before");
  visit.send(ACCEPTED);
  same((await visit.answer("early")).type, "ack", "the answer");
  await program.stop();
  host.close();
}

async function the_same_id_may_come_twice() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.registered();
  for (let times = 0; times < 2; times += 1) {
    visit.send(message("again", "buy milk"));
    same((await visit.answer("again")).type, "ack", "the answer");
    await visit.answer("again");
  }
  await program.stop();
  host.close();
}

async function pings_are_answered_with_their_payload() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.registered();
  for (const payload of ["", "x", "y".repeat(125)]) {
    visit.socket.ping(payload);
    const [pong] = await once(visit.socket, "pong");
    same(pong.toString(), payload, "the payload");
  }
  await program.stop();
  host.close();
}

async function a_thousand_messages_are_answered_once_each() {
  const host = await Host.open();
  const program = host.client();
  const visit = await host.registered();
  for (let at = 0; at < 1000; at += 1) visit.send(message(`m${at}`, `note ${at}`));
  const acks = new Set();
  for (let count = 0; count < 2000; count += 1) {
    const { payload } = await visit.frames.next();
    if (payload.type !== "ack") continue;
    expect(!acks.has(payload.messageId), `${payload.messageId} twice`);
    acks.add(payload.messageId);
  }
  same(acks.size, 1000, "answers");
  same(readFileSync(program.file, "utf8").trim().split("\n").length, 1000, "notes");
  await program.stop();
  host.close();
}

async function a_router_that_does_not_read_for_a_while() {
  const host = await Host.open();
  const program = host.client("--reject", "x".repeat(20_000));
  const visit = await host.registered();
  visit.socket.pause();
  for (let at = 0; at < 500; at += 1) visit.send(message(`m${at}`, "x"));
  await sleep(500);
  visit.socket.resume();
  for (let at = 0; at < 500; at += 1) same((await visit.answer(`m${at}`)).type, "reject", "the answer");
  await program.stop();
  host.close();
}

async function an_end_in_the_middle_finishes_what_is_under_way() {
  const host = await Host.open();
  const program = host.client("--delay", "500ms");
  const visit = await host.registered();
  visit.send(message("under-way", "buy milk"));
  await program.line("gets");
  program.child.kill("SIGINT");
  same((await visit.answer("under-way")).type, "ack", "the answer");
  same(await visit.closed, [1000, "Client disconnect"], "the close");
  await ended(program, 0);
  host.close();
}

async function a_message_of_a_megabyte_passes_and_one_more_byte_closes() {
  const host = await Host.open();
  const program = host.client("--attempts", "1");
  const visit = await host.registered();
  const frame = (size) => {
    const empty = JSON.stringify(message("big", "")).length;
    return message("big", "x".repeat(size - empty));
  };
  visit.send(frame(1_048_576));
  same((await visit.answer("big")).type, "ack", "the answer");
  await visit.answer("big", 5000).catch(() => {});
  visit.send(frame(1_048_577));
  same((await visit.closed)[0], 1009, "the close");
  program.kill();
  host.close();
}

async function attempts_wait_longer_and_longer_and_then_it_gives_up() {
  const host = await Host.open();
  const program = host.client("--attempts", "2");
  const times = [];
  for (let count = 0; count < 3; count += 1) {
    const visit = await host.visit(15_000);
    times.push(visit.at);
    visit.socket.terminate();
  }
  await ended(program, 3);
  const waits = [times[1] - times[0], times[2] - times[1]];
  expect(waits[0] >= 950 && waits[1] >= 1950, `the waits: ${waits}`);
  host.close();
}

async function a_registration_begins_the_attempts_anew() {
  const host = await Host.open();
  const program = host.client("--attempts", "1");
  const ends = [
    (visit) => visit.socket.close(1001, "Server shutting down"),
    (visit) => visit.socket.terminate(),
    (visit) => visit.socket.close(1011),
  ];
  for (const end of ends) {
    const visit = await host.registered(15_000);
    await still_there(visit);
    end(visit);
  }
  const last = await host.registered(15_000);
  await still_there(last);
  await program.stop();
  host.close();
}

async function a_name_that_is_still_taken_after_a_loss_is_asked_for_again() {
  const host = await Host.open();
  const program = host.client();
  (await host.registered()).socket.terminate();
  const visit = await host.visit(15_000);
  await visit.frames.next();
  visit.send(refusal({ code: "DUPLICATE_NAME", message: "still there" }));
  same((await visit.closed)[0], 4000, "the close");
  await still_there(await host.registered(15_000));
  await program.stop();
  host.close();
}

async function a_router_that_does_not_answer_the_registration() {
  const host = await Host.open();
  const program = host.client("--attempts", "1");
  const first = await host.visit();
  await first.frames.next();
  await first.closed;
  await still_there(await host.registered(15_000));
  await program.stop();
  host.close();
}

/** What stands where a router should be: bytes to every connection. */
async function impostor(bytes) {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (data) => bytes(socket, data.toString()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const accepted = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";

async function what_is_no_router_is_given_up() {
  const answers = {
    "a page": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "403": "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    "503": "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "somewhere else": "HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "garbage": "\x00\x01\x02 what is this\r\n\r\n",
    "a head without an end": `HTTP/1.1 101 Switching Protocols\r\nX: ${"x".repeat(200_000)}`,
    "a wrong key": `${accepted}Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n`,
    "no key": `${accepted}\r\n`,
  };
  const checked = Object.entries(answers).map(async ([name, answer]) => {
    const server = await impostor((socket) => socket.end(answer));
    const program = client(server.address().port, "--attempts", "1");
    const code = await program.ended;
    same(code, 3, `the exit code after ${name}`);
    server.close();
  });
  await Promise.all(checked);
  const nobody = client(1, "--attempts", "1");
  await ended(nobody, 3);
}

async function broken_frames_close_the_line() {
  const broken = [
    [Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x7b, 0x7d]), 1002, "masked"],
    [Buffer.from([0x83, 0]), 1002, "an unknown opcode"],
    [Buffer.from([0xc1, 0]), 1002, "a reserved bit"],
    [Buffer.from([0x80, 0]), 1002, "a continuation of nothing"],
    [Buffer.from([0x09, 0]), 1002, "a ping in fragments"],
    [Buffer.from([0x81, 1, 0xff]), 1007, "no UTF-8"],
    [Buffer.from([0x88, 1, 0x03]), 1002, "a close of one byte"],
    [Buffer.from([0x88, 2, 0x03, 0xed]), 1002, "a close with code 1005"],
    [Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]), 1009, "four gigabytes"],
  ];
  const host = await Host.open();
  const program = host.client("--attempts", "1");
  for (const [bytes, code, name] of broken) {
    const visit = await host.registered(15_000);
    visit.socket._socket.write(bytes);
    const closed = await Promise.race([visit.closed, visit.frames.next(() => true, name).catch(() => [0])]);
    same(closed[0], code, `the close after ${name}`);
  }
  program.kill();
  host.close();
}

async function wrong_options_are_told() {
  for (const [args, code] of [
    [["--name", "1"], 2],
    [["--description", ""], 2],
    [["--url", "ftp://127.0.0.1"], 2],
    [["--url", "nonsense"], 2],
  ]) {
    await ended(new Program(path, ["router", "client", ...args]), code);
  }
}

for (const check of [
  a_router_that_does_not_answer_the_registration,
  attempts_wait_longer_and_longer_and_then_it_gives_up,
  a_registration_begins_the_attempts_anew,
  a_name_that_is_still_taken_after_a_loss_is_asked_for_again,
  what_is_no_router_is_given_up,
  broken_frames_close_the_line,
]) {
  checks.beside(title(check), check);
}
for (const check of [
  the_registration_and_the_answers_are_those_of_the_specification,
  a_bare_acceptance_will_do,
  rejections_say_why,
  each_refusal_ends_it_with_4000,
  junk_changes_nothing,
  odd_messages_are_taken,
  messages_before_the_acceptance_wait_for_it,
  the_same_id_may_come_twice,
  pings_are_answered_with_their_payload,
  a_thousand_messages_are_answered_once_each,
  a_router_that_does_not_read_for_a_while,
  an_end_in_the_middle_finishes_what_is_under_way,
  a_message_of_a_megabyte_passes_and_one_more_byte_closes,
  wrong_options_are_told,
]) {
  await checks.run(title(check), check);
}
await checks.finish();
