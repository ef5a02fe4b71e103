// @ts-check
// What a program does with the npm package, for each protocol: it talks, waits too long, gives up, loses its line and
// goes on over the next one.
//
//     node package.mjs PROTOCOL URL LINE
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import * as clients from "switchboard-clients";
import { AcolyteClient, ConnectOnionClient, ExoclawClient, SmartHoleClient, SnekClient } from "switchboard-clients";

const [protocol, url, line] = process.argv.slice(2);
const TOKEN = "correct-horse-battery-staple";
/** @param {string} word */
const tell = async (word) => (await fetch(`${line}/line/${word}`)).text();

/** Rejects with this error.
 * @param {Promise<unknown>} what @param {Partial<import("switchboard-clients").ClientError>} error */
const fails = (what, error) => assert.rejects(what, error);

/** Waits for a state.
 * @param {SnekClient | ExoclawClient | SmartHoleClient | ConnectOnionClient | AcolyteClient} client
 * @param {(state: import("switchboard-clients").State) => boolean} fits */
async function until(client, fits) {
  for await (const state of client.states()) if (fits(state)) return state;
  assert.fail("the states have ended");
}

/** Cuts the line, and waits for the next one.
 * @param {Parameters<typeof until>[0]} client */
async function reconnects(client) {
  const lost = until(client, ({ state }) => state === "lost");
  await tell("drop");
  assert.equal((await lost).error?.retryable, true);
  await until(client, ({ generation }) => generation === 2);
  assert.equal(client.state.state, "ready");
}

/** Holds the line while a call waits too long, and while another one is given up.
 * @param {(options: import("switchboard-clients").CallOptions) => Promise<unknown>} call */
async function waits(call) {
  await tell("hold");
  await fails(call({ timeout: 100 }), { code: "TIMED_OUT", retryable: true, delivery: "UNKNOWN" });
  const abort = new AbortController();
  const call2 = call({ signal: abort.signal });
  abort.abort();
  await assert.rejects(call2, { name: "AbortError" });
  await assert.rejects(call({ signal: abort.signal }), { name: "AbortError" });
  await tell("release");
  await call({ signal: new AbortController().signal, timeout: 60_000 });
}

/** @param {Parameters<typeof until>[0]} client @param {() => Promise<unknown>} call */
async function leaves(client, call) {
  client.close();
  assert.equal((await client.closed()).code, "LOCAL");
  await fails(call(), { retryable: false, delivery: "NOT_SENT" });
  for await (const { state } of client.states()) assert.equal(state, "closed");
}

const protocols = {
  /** The types name the methods that there are. */
  async types() {
    const text = await readFile(new URL("index.d.ts", import.meta.resolve("switchboard-clients")), "utf8");
    const names = (/** @type {string} */ body) => [...body.matchAll(/^  (?:static |readonly )*([a-z]\w*)[(<:]/gm)].map(([, name]) => name);
    const bodies = new Map([...text.matchAll(/^(?:export|declare) .*?class (\w+).*?\{\n([^]*?)\n\}/gm)].map(([, name, body]) => [name, names(body)]));
    for (const [name, type] of Object.entries(clients)) {
      const has = (/** @type {object} */ of) => Object.getOwnPropertyNames(of).filter((it) => !/^(_|length|name|prototype|constructor|free|nextEvent)/.test(it));
      const typed = new Set([...(bodies.get("Client") ?? []), ...(bodies.get(name) ?? [])]);
      assert.deepEqual([...typed].sort(), [...has(type), ...has(type.prototype)].sort(), name);
    }
  },

  async snek() {
    const password = "wonderland";
    await fails(SnekClient.connect(url, { username: "alice", password: "wrong" }), { code: "AUTHENTICATION", retryable: false });
    // @ts-expect-error: an option that there is not
    await fails(SnekClient.connect(url, { username: "alice", password, pasword: "" }), { code: "INVALID" });
    await fails(SnekClient.connect("ws://127.0.0.1:9", { username: "alice", password, timeout: 5000 }), { code: "CONNECT", retryable: true });
    /** @type {string[]} */
    const frames = [];
    const chat = await SnekClient.connect(url, { username: "alice", password, onframe: (_, text) => frames.push(text) });
    assert.ok((await chat.getChannels()).some(({ uid }) => uid === "general"));
    const user = await chat.call("get_user", [null]);
    assert.match(JSON.stringify(user), /alice/);
    await chat.sendMessage("general", "h\u{e9}llo \u{1f980}");
    for await (const event of chat) {
      if (event.event === "message") {
        assert.equal(event.message, "h\u{e9}llo \u{1f980}");
        break;
      }
    }
    assert.ok(frames.some((text) => text.includes("send_message")) && !frames.some((text) => text.includes(password)));
    await waits((options) => chat.getChannels(options));
    await reconnects(chat);
    await chat.sendMessage("general", "again");
    // To leave a loop ends nothing.
    for await (const event of chat) if (event.event === "message" && event.message === "again") break;
    await leaves(chat, () => chat.call("ping"));
  },

  async exoclaw() {
    await fails(ExoclawClient.connect(url, { token: "wrong" }), { code: "AUTHENTICATION" });
    const gateway = await ExoclawClient.connect(url, { token: TOKEN, peer: "package" });
    const status = await gateway.call("status");
    assert.equal(typeof status.sessions, "number");
    let text = "";
    const chat = await gateway.chat("What can you do?");
    for await (const event of chat) if (event.event === "text") text += event.data;
    assert.ok(text);
    const { usage } = await chat.result();
    assert.ok(usage.output_tokens > 0);
    assert.ok((await (await gateway.chat("And in one word?")).result()).text);
    // @ts-expect-error: without the session
    await assert.rejects(gateway.call("memory.search", { query: "" }));
    await waits((options) => gateway.call("ping", undefined, options));
    const ended = await gateway.chat("Hello");
    await ended.abort();
    await fails(ended.result(), { code: "CANCELLED" });
    await reconnects(gateway);
    await fails(gateway.call("no.such.method"), { code: "REMOTE", delivery: "DELIVERED" });
    await leaves(gateway, () => gateway.call("ping"));
  },

  async smarthole() {
    const introduction = { name: "page", description: "Keeps milk." };
    await fails(SmartHoleClient.connect(url, { ...introduction, name: "two words" }), { code: "INVALID_NAME" });
    const hole = await SmartHoleClient.connect(url, introduction);
    const take = async () => {
      const asked = tell("ask");
      for await (const message of hole) {
        if ("lagged" in message) continue;
        assert.equal(message.payload.text, "milk");
        await hole.respond(message.payload.id, { type: "ack" });
        await hole.respond(message.payload.id, { type: "notification", payload: { body: "noted" } });
        break;
      }
      assert.match(await asked, /page/);
    };
    await take();
    await reconnects(hole);
    await take();
    await leaves(hole, () => hole.respond("an-id", { type: "ack" }));
  },

  async connectonion() {
    const key = ConnectOnionClient.generateKey();
    const agent = await ConnectOnionClient.connect(url, { key, callTimeout: 60_000 });
    assert.match(agent.address, /^0x[0-9a-f]{64}$/);
    const write = '/call write_file {"path": "a.txt", "text": "milk"}';
    const run = await agent.input(write);
    let asked = 0;
    for await (const step of run) {
      if (step.type === "approval_needed") {
        asked += 1;
        await agent.respond({ type: "APPROVAL_RESPONSE", request_id: step.id, approved: true, scope: "once" });
      }
    }
    assert.equal(asked, 1);
    assert.match((await run.result()).result, /a\.txt/);
    await waits((options) => agent.status("no-session", options));

    // A run goes on over the next line.
    const slow = await agent.input("/slow 8 100");
    await slow.next();
    await reconnects(agent);
    assert.match((await slow.result()).result, /7 8/);

    const stopped = await agent.input("/slow 100 50");
    await stopped.next();
    await stopped.abort();
    await stopped.result();
    const abort = new AbortController();
    const given = await agent.input("/slow 100 50", { signal: abort.signal });
    await given.next();
    abort.abort();
    await assert.rejects(given.next(), { name: "AbortError" });
    assert.equal((await given.next()).done, true);

    // Another program goes on with the same session.
    const resume = agent.session();
    await leaves(agent, () => agent.interrupt());
    const next = await ConnectOnionClient.connect(url, { key, resume });
    assert.equal(next.address, agent.address);
    assert.equal(next.session().session_id, resume.session_id);
    await leaves(next, () => next.interrupt());
    await fails(ConnectOnionClient.connect(url, { key: new Uint8Array(31) }), { code: "INVALID" });
  },

  async acolyte() {
    const coder = await AcolyteClient.connect(url, { apiKey: TOKEN });
    const { model } = await coder.status();
    assert.ok(model);
    const ask = (/** @type {string} */ message, options = {}) => coder.chat({ message, history: [], model: "scripted" }, options);
    const chat = await ask("count to 3");
    let text = "";
    let task = "";
    for await (const answer of chat) {
      if (answer.type === "chat.accepted") task = answer.taskId;
      if (answer.type === "chat.event" && answer.event.type === "text-delta") text += answer.event.text;
    }
    assert.ok(text);
    assert.ok((await chat.result()).output);
    assert.equal((await coder.taskStatus(task))?.state, "completed");
    await waits((options) => coder.status(options));

    const aborted = await ask("/slow 100 50");
    await aborted.next();
    const rest = aborted.result();
    await aborted.abort();
    await fails(rest, { code: "ABORTED" });
    const late = await ask("/slow 100 50", { timeout: 300 });
    await fails((async () => { for await (const _ of late); })(), { code: "TIMED_OUT" });
    // To leave its loop ends it: the next one does not wait for it.
    for await (const _ of await ask("/slow 10000 100")) break;
    await (await ask("count to 3", { timeout: 60_000 })).result();

    const cut = await ask("/slow 100 50");
    await cut.next();
    const closed = fails(cut.result(), { code: "LOST", retryable: true });
    await reconnects(coder);
    await closed;
    await leaves(coder, () => coder.status());
  },
};

await protocols[/** @type {keyof typeof protocols} */ (protocol)]();
console.log("well done");
process.exit();
