// Clients that misbehave against our router. Whatever they do, a well-behaved client is served.
//
//   node probe.mjs ROUTER

import { ACCEPTED, ANSWERS, JUNK, NO_ANSWERS, REFUSED, RESPONSES, registration } from "./frames.mjs";
import { Checks, Client, expect, router, same, say } from "./common.mjs";
import * as floods from "./floods.mjs";
import * as requests from "./requests.mjs";
import * as sequences from "./sequences.mjs";
import { handshakes, lines } from "./lines.mjs";

const path = process.argv[2];
const checks = new Checks();
const served = await router(path);
const steady = (await Client.register(served.url, "steady")).always("ack");
let said = 0;

/** A client that does nothing wrong gets its messages and is heard. */
async function still_served() {
  expect(served.isRunning, "the router has ended");
  expect(!served.errors.some((line) => line.includes("panicked")), "something panicked");
  said += 1;
  const { status, json } = await say(served.port, `steady: ${said}`);
  same([status, json?.outcomes?.[0]?.outcome], [200, "acked"], "a well-behaved client");
}

function attack(name, check) {
  return checks.run(name, async () => {
    await check();
    await still_served();
  });
}

/** Nothing comes of a frame: the next answer is to what was sent behind it. */
async function ignored(client, frame, code) {
  client.send(frame);
  client.send(registration("7"));
  const answer = await client.answer();
  same([answer.payload.success, answer.payload.code], [false, code], "only the next frame is answered");
}

for (const [name, frame] of Object.entries({ ...JUNK, ...RESPONSES })) {
  await attack(`ignored: ${name}`, async () => {
    const client = await Client.open(served.url);
    await ignored(client, frame, "VALIDATION_ERROR");
    await ignored(client, Buffer.from(frame), "VALIDATION_ERROR");
    await client.introduce({ name: "prober", description: "d" });
    await ignored(client, frame, "ALREADY_REGISTERED");
    same(client.frames.length, 0, "nothing else comes");
    await client.close();
  });
}

for (const [name, [payload, code]] of Object.entries(REFUSED)) {
  await attack(`refused: ${name}`, async () => {
    const client = await Client.open(served.url);
    for (const frame of [registration(payload), Buffer.from(registration(payload))]) {
      client.send(frame);
      const answer = await client.answer();
      same(Object.keys(answer.payload), ["success", "code", "message"], "the members");
      same([answer.payload.success, answer.payload.code], [false, code], "the refusal");
    }
    await client.introduce({ name: "prober", description: "d" });
    client.send(registration(payload));
    same((await client.answer()).payload.code, "ALREADY_REGISTERED", "the second one");
    await client.close();
  });
}

for (const [name, payload] of Object.entries(ACCEPTED)) {
  await attack(`accepted: ${name}`, async () => {
    const client = await Client.open(served.url);
    client.send(registration(payload.replace("NAME", "prober")));
    same((await client.answer()).payload.success, true, "the answer");
    await client.close();
  });
}

/** What happens about a message, but that it is on its way. */
function about(id) {
  const fits = (event) => event.id === id && !["delivered", "ignored"].includes(event.event);
  return served.events.next(fits, "an event about the message");
}

const prober = await Client.register(served.url, "prober");
for (const [name, answer] of Object.entries(NO_ANSWERS)) {
  await attack(`no answer: ${name}`, async () => {
    const asked = say(served.port, "prober: x");
    const { id } = await prober.message();
    prober.send(answer.replace("ID", id));
    prober.respond(id, "reject", { reason: "the end" });
    const next = await about(id);
    same([next.event, next.reason, next.timedOut], ["rejected", "the end", false], "it was open until now");
    await asked;
  });
}

for (const [name, answer] of Object.entries(ANSWERS)) {
  await attack(`an answer: ${name}`, async () => {
    const asked = say(served.port, "prober: x");
    const { id } = await prober.message();
    prober.send(name.length % 2 ? answer.replace("ID", id) : Buffer.from(answer.replace("ID", id)));
    const { json } = await asked;
    const expected = name.includes("notification") ? "notified" : "acked";
    same([json.id, json.outcomes[0].outcome], [id, expected], "it takes the message");
  });
}
await prober.close();

for (const [name, check] of Object.entries(sequences.all(path, served))) await attack(name, check);
for (const [name, check] of Object.entries(lines(served))) await attack(`line: ${name}`, check);
for (const [name, check] of Object.entries(handshakes(served))) await attack(`handshake: ${name}`, check);
for (const [name, check] of Object.entries(requests.all(served))) await attack(`request: ${name}`, check);
for (const [name, check] of Object.entries(floods.all(path, served))) await attack(name, check);

await checks.run("the router has lost nobody and ends", async () => {
  same(steady.socket.readyState, 1, "the well-behaved client is connected");
  same(await served.stop(), 0, "the exit code");
  same(await steady.closed, { code: 1001, reason: "Server shutting down" }, "the close");
  expect(!served.errors.some((line) => line.includes("panicked")), "nothing panicked");
});
await checks.finish();
