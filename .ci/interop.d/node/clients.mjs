// Well-behaved clients against our router: what the specification promises them.
//
//   node clients.mjs ROUTER

import { Checks, Client, expect, request, router, same, say, sleep, title } from "./common.mjs";

const path = process.argv[2];
const checks = new Checks();
const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";

let served;

async function a_registration_is_answered_as_the_specification_shows() {
  const client = await Client.open(served.url);
  const answer = await client.introduce({
    name: "my-client",
    description: "I handle task management and to-do lists.",
    version: "1.0.0",
    capabilities: ["tasks", "reminders"],
  });
  same(Object.keys(answer), ["type", "payload"], "the members of the frame");
  const { success, clientId, message } = answer.payload;
  same(Object.keys(answer.payload), ["success", "clientId", "message"], "the members of the payload");
  same([success, message], [true, "Client 'my-client' registered successfully"], "the answer");
  expect(new RegExp(`^${UUID}$`).test(clientId), `a UUID: ${clientId}`);
  await served.event("registered", { client: "my-client", clientId });
  await client.close();
  await served.event("left", { client: "my-client" });
}

async function a_direct_message_has_the_shape_of_the_specification() {
  const client = await Client.register(served.url, "notebook");
  const asked = say(served.port, "NoteBook:  remember to buy milk \n");
  const message = await client.message();
  same(Object.keys(message), ["id", "text", "timestamp", "metadata"], "the members");
  expect(new RegExp(`^msg-${UUID}$`).test(message.id), `an id: ${message.id}`);
  same(message.text, "remember to buy milk", "the text without its prefix");
  expect(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(message.timestamp), message.timestamp);
  expect(Math.abs(Date.now() - Date.parse(message.timestamp)) < 60_000, "the time is now");
  same(message.metadata, { inputMethod: "text", directRouted: true }, "the metadata");
  client.respond(message.id, "ack");
  const { status, json } = await asked;
  same([status, json.id], [200, message.id], "the answer");
  await served.event("acked", { id: message.id, client: "notebook" });
  await client.close();
}

async function a_chosen_client_is_told_why() {
  const notes = await Client.register(served.url, "notes", "Keeps notes and shopping lists.");
  const lights = await Client.register(served.url, "lights", "Switches lamps on and off.");
  const asked = say(served.port, "put milk on the shopping list", { inputMethod: "voice", confidence: 0.95 });
  const message = await notes.message();
  const { inputMethod, directRouted, confidence, routingReason } = message.metadata;
  same([inputMethod, directRouted, confidence], ["voice", false, 0.95], "the metadata");
  expect(typeof routingReason === "string" && routingReason !== "", "a reason");
  same(message.text, "put milk on the shopping list", "the text");
  notes.respond(message.id, "ack");
  notes.respond(message.id, "notification", { title: "Saved", body: "Milk.", priority: "high" });
  const shown = await served.event("notification", { id: message.id });
  same([shown.title, shown.body, shown.priority], ["Saved", "Milk.", "high"], "the notification");
  await asked;
  same(lights.frames.length, 0, "the other one gets nothing");
  await Promise.all([notes.close(), lights.close()]);
}

async function a_notification_has_defaults() {
  const client = await Client.register(served.url, "plain");
  const asked = say(served.port, "plain: x");
  const { id } = await client.message();
  client.respond(id, "notification", { body: "done" });
  const shown = await served.event("notification", { id });
  same([shown.title, shown.body, shown.priority], ["plain", "done", "normal"], "the defaults");
  same((await asked).json.id, id, "it counts as an answer");
  // A blank one is not shown, and breaks nothing.
  client.respond(id, "notification", {});
  client.respond(id, "notification", { title: "late", body: "" });
  same((await served.event("notification", { id })).title, "late", "the next one");
  await client.close();
}

async function a_rejection_goes_on_to_somebody_else() {
  const calendar = await Client.register(served.url, "calendar", "Keeps dates and shopping days.");
  const lists = await Client.register(served.url, "lists", "Keeps shopping lists.");
  const asked = say(served.port, "shopping lists and dates on shopping days: milk");
  const ours = (event) => event.event === "delivered" && ["calendar", "lists"].includes(event.client);
  const chosen = await served.events.next(ours, "a choice");
  const [one, other] = chosen.client === "calendar" ? [calendar, lists] : [lists, calendar];
  const first = await one.message();
  one.respond(first.id, "reject", { reason: "I only handle notes" });
  const again = await other.message();
  same(again.id, first.id, "the id stays");
  other.respond(again.id, "ack");
  const refused = await served.event("rejected", { id: first.id, client: one.name });
  same([refused.reason, refused.timedOut], ["I only handle notes", false], "the rejection");
  const { json } = await asked;
  same(json.id, first.id, "settled");
  await Promise.all([calendar.close(), lists.close()]);
}

async function a_direct_message_that_is_rejected_is_not_routed_again() {
  const strict = await Client.register(served.url, "strict");
  const other = await Client.register(served.url, "other", "Does everything with milk.");
  const asked = say(served.port, "strict: milk");
  const { id } = await strict.message();
  strict.respond(id, "reject");
  const lost = await served.event("unroutable", { id });
  same(lost.tried, [{ client: "strict", reason: "No reason provided" }], "who was asked");
  await asked;
  same(other.frames.length, 0, "the user chose");
  await Promise.all([strict.close(), other.close()]);
}

async function a_vanished_client_is_replaced_and_may_not_lose_a_message() {
  const short = await router(path, "--response-timeout", "1s");
  const one = await Client.register(short.url, "one", "Keeps milk.");
  const asked = say(short.port, "keep the milk");
  const message = await one.message();
  const two = await Client.register(short.url, "two", "Drinks milk.");
  one.socket.terminate();
  await short.event("left", { client: "one" });
  const late = await short.event("rejected", { id: message.id, client: "one" });
  same([late.reason, late.timedOut], ["Response timeout", true], "the timeout");
  const again = await two.message();
  same(again.id, message.id, "the id stays");
  two.respond(again.id, "ack");
  await asked;
  // Back under its name, it is too late for an answer that counts.
  const back = await Client.register(short.url, "one");
  back.respond(message.id, "notification", { body: "I am late" });
  const shown = await short.event("notification", { id: message.id });
  same([shown.client, shown.late], ["one", true], "a late notification is shown");
  same(await short.stop(), 0, "the exit code");
}

async function a_name_is_taken_while_its_owner_is_there() {
  const owner = await Client.register(served.url, "taken");
  const client = await Client.open(served.url);
  const refused = await client.introduce({ name: "taken", description: "d" });
  const { success, code, message } = refused.payload;
  same(Object.keys(refused.payload), ["success", "code", "message"], "the members");
  same([success, code], [false, "DUPLICATE_NAME"], "the refusal");
  same(message, "A client with name 'taken' is already registered", "the words");
  const different = await client.introduce({ name: "Taken", description: "d" });
  same(different.payload.success, true, "names differ in case");
  same((await client.introduce({ name: "x", description: "d" })).payload.code, "ALREADY_REGISTERED", "once");
  await owner.close();
  const heir = await Client.register(served.url, "taken");
  await Promise.all([client.close(), heir.close()]);
}

async function a_refused_client_may_try_again_on_its_connection() {
  const client = await Client.open(served.url);
  const tries = [
    [{ name: "1", description: "d" }, "INVALID_NAME"],
    [{ name: "a", description: " " }, "INVALID_DESCRIPTION"],
    [{ name: "a", description: "d", version: 1 }, "VALIDATION_ERROR"],
  ];
  for (const [payload, code] of tries) {
    const answer = await client.introduce(payload);
    same([answer.payload.success, answer.payload.code], [false, code], "the refusal");
  }
  same((await client.introduce({ name: "again", description: "d" })).payload.success, true, "accepted");
  await client.close();
}

async function nobody_is_there() {
  const empty = await router(path);
  const { status, json } = await say(empty.port, "hello");
  same([status, typeof json.error], [503, "string"], "the answer");
  same(await empty.stop(), 0, "the exit code");
}

async function pings_are_empty_and_pongs_keep_the_line() {
  const quick = await router(path, "--heartbeat", "200ms", "--pong-timeout", "2s");
  const client = await Client.register(quick.url, "alive");
  while (client.pings.length < 3) await sleep(20);
  expect(client.pings.every((payload) => payload === ""), "a ping is empty");
  client.always("ack");
  same((await say(quick.port, "alive: x")).status, 200, "it is served");
  await client.close();
  await quick.stop();
}

async function by_default_a_ping_comes_after_30_s_and_its_pong_may_take_10() {
  const began = Date.now();
  const [alive, dead] = await Promise.all([
    Client.register(served.url, "long-alive"),
    Client.register(served.url, "long-dead", "d", { autoPong: false }),
  ]);
  const seconds = () => Math.round((Date.now() - began) / 1000);
  await new Promise((ping) => dead.socket.once("ping", ping));
  expect(seconds() >= 29 && seconds() < 45, `the ping came after ${seconds()} s`);
  same((await dead.closed).code, 1006, "no close");
  expect(seconds() >= 39 && seconds() < 59, `it was dropped after ${seconds()} s`);
  same(alive.socket.readyState, 1, "who answers stays");
  await alive.close();
}

async function a_shutdown_closes_with_1001() {
  const ending = await router(path);
  const clients = await Promise.all(["a", "b", "c"].map((name) => Client.register(ending.url, name)));
  const code = await ending.stop();
  for (const client of clients) {
    same(await client.closed, { code: 1001, reason: "Server shutting down" }, "the close");
  }
  same(code, 0, "the exit code");
}

async function a_client_that_closes_gets_its_code_back() {
  const client = await Client.register(served.url, "leaving");
  same((await client.close(1000, "Client disconnect")).code, 1000, "the code");
  const failed = await Client.open(served.url);
  same((await failed.close(4000, "Registration failed")).code, 4000, "the code");
}

async function a_message_of_a_megabyte_arrives() {
  const client = await Client.register(served.url, "big");
  // The frame around the text takes the rest of the 1,048,576 bytes.
  const text = "x".repeat(1_000_000);
  const asked = say(served.port, `big: ${text}`);
  const message = await client.message();
  same(message.text.length, text.length, "the length");
  const head = JSON.stringify({
    type: "response",
    payload: { messageId: message.id, type: "reject", payload: { reason: "" } },
  });
  const reason = "y".repeat(1_048_576 - head.length);
  client.respond(message.id, "reject", { reason });
  const told = await served.event("rejected", { id: message.id });
  expect(reason.startsWith(told.reason.slice(0, 100)), "the reason arrives");
  await asked;
  client.respond(message.id, "reject", { reason: `${reason}y` });
  same((await client.closed).code, 1009, "one byte more");
}

async function any_path_and_subprotocol_will_do() {
  for (const [where, protocols] of [["/", []], ["/any/path?x=1", []], ["/ws", ["smarthole", "other"]]]) {
    const client = await Client.open(`${served.url.replace(/\/$/, "")}${where}`, { protocols });
    same(client.socket.protocol, protocols[0] ?? "", "the subprotocol");
    same(client.socket.extensions, "", "no extension");
    await client.close();
  }
}

async function a_hundred_clients_have_a_thousand_messages() {
  const crowd = await router(path, "--response-timeout", "20s");
  const names = Array.from({ length: 100 }, (_, at) => `c${at}`);
  const clients = await Promise.all(names.map((name) => Client.register(crowd.url, name)));
  const answered = new Map();
  for (const client of clients) {
    client.socket.on("message", (data) => {
      const { id, text } = JSON.parse(data.toString()).payload;
      answered.set(id, (answered.get(id) ?? 0) + 1);
      expect(text.startsWith(`to ${client.name} `), "the right client");
      client.respond(id, "ack");
    });
  }
  const texts = names.flatMap((name) => Array.from({ length: 10 }, (_, at) => `${name}: to ${name} ${at}`));
  const said = [];
  // HTTP requests are connections too: not all at once.
  for (let at = 0; at < texts.length; at += 50) {
    const some = texts.slice(at, at + 50).map((text) => say(crowd.port, text, { wait: false }));
    said.push(...(await Promise.all(some)));
  }
  expect(said.every(({ status }) => status === 202), "each is taken");
  const settled = new Set();
  while (settled.size < texts.length) settled.add((await crowd.event("settled")).id);
  same(answered.size, 1000, "messages");
  expect([...answered.values()].every((times) => times === 1), "each once");
  const full = await Client.open(crowd.url).then(
    () => "open",
    (error) => error.message,
  );
  expect(full.includes("503"), `the 101st: ${full}`);
  same((await request(crowd.port, "/clients")).json.length, 100, "who is there");
  await clients[0].close();
  await crowd.event("left", { client: "c0" });
  await (await Client.open(crowd.url)).close();
  await crowd.stop();
}

served = await router(path);
checks.beside(
  title(by_default_a_ping_comes_after_30_s_and_its_pong_may_take_10),
  by_default_a_ping_comes_after_30_s_and_its_pong_may_take_10,
  90_000,
);
checks.beside(title(pings_are_empty_and_pongs_keep_the_line), pings_are_empty_and_pongs_keep_the_line);
checks.beside(
  title(a_vanished_client_is_replaced_and_may_not_lose_a_message),
  a_vanished_client_is_replaced_and_may_not_lose_a_message,
);
for (const check of [
  a_registration_is_answered_as_the_specification_shows,
  a_direct_message_has_the_shape_of_the_specification,
  a_chosen_client_is_told_why,
  a_notification_has_defaults,
  a_rejection_goes_on_to_somebody_else,
  a_direct_message_that_is_rejected_is_not_routed_again,
  a_name_is_taken_while_its_owner_is_there,
  a_refused_client_may_try_again_on_its_connection,
  nobody_is_there,
  a_client_that_closes_gets_its_code_back,
  a_message_of_a_megabyte_arrives,
  any_path_and_subprotocol_will_do,
  a_shutdown_closes_with_1001,
  a_hundred_clients_have_a_thousand_messages,
]) {
  await checks.run(title(check), check);
}
await checks.others();
await checks.run("the router ends", async () => {
  same(await served.stop(), 0, "the exit code");
  expect(!served.errors.some((line) => line.includes("panicked")), "nothing panicked");
});
await checks.finish();
