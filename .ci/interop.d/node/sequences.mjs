// Clients that do the right things at the wrong time.

import { Client, expect, router, same, say, sleep } from "./common.mjs";
import { Wire, text } from "./wire.mjs";
import { registration } from "./frames.mjs";

export function all(path, served) {
  const checks = {
    async an_answer_and_then_everything_else() {
      const client = await Client.register(served.url, "chatty");
      const asked = say(served.port, "chatty: x");
      const { id } = await client.message();
      client.respond(id, "ack");
      await asked;
      client.respond(id, "ack");
      client.respond(id, "notification", { body: "one" });
      client.respond(id, "notification", { body: "two" });
      client.respond(id, "reject", { reason: "after all" });
      client.respond(id, "ack");
      client.respond(id, "notification", { body: "three" });
      for (const body of ["one", "two", "three"]) {
        same((await served.event("notification", { id })).body, body, "a notification");
      }
      await served.event("rejected", { id, client: "chatty" });
      await client.close();
    },

    async somebody_answers_for_somebody_else() {
      const owner = await Client.register(served.url, "owner");
      const thief = await Client.register(served.url, "thief");
      const asked = say(served.port, "owner: x");
      const { id } = await owner.message();
      thief.respond(id, "ack");
      thief.respond(id, "reject", { reason: "mine" });
      thief.respond(id, "notification", { title: "owner", body: "not really" });
      for (let times = 0; times < 3; times += 1) await served.event("ignored", { id });
      owner.respond(id, "reject", { reason: "the owner" });
      const told = await served.event("rejected", { id });
      same([told.client, told.reason], ["owner", "the owner"], "whose answer counts");
      await asked;
      await Promise.all([owner.close(), thief.close()]);
    },

    async somebody_who_is_not_registered_answers() {
      const owner = await Client.register(served.url, "owner");
      const stranger = await Client.open(served.url);
      const asked = say(served.port, "owner: x");
      const { id } = await owner.message();
      stranger.respond(id, "ack");
      stranger.respond(id, "reject");
      stranger.send(registration("7"));
      await stranger.answer();
      owner.respond(id, "ack");
      const { json } = await asked;
      same(json.outcomes, [{ client: "owner", outcome: "acked" }], "whose answer counts");
      await Promise.all([owner.close(), stranger.close()]);
    },

    async answers_under_another_name_after_a_reconnect() {
      const first = await Client.register(served.url, "before");
      const asked = say(served.port, "before: x");
      const { id } = await first.message();
      first.socket.terminate();
      await served.event("left", { client: "before" });
      const second = await Client.register(served.url, "after");
      second.respond(id, "ack");
      await served.event("ignored", { id });
      const back = await Client.register(served.url, "before");
      back.respond(id, "ack");
      same((await asked).json.outcomes, [{ client: "before", outcome: "acked" }], "the name counts");
      await Promise.all([second.close(), back.close()]);
    },

    async answers_that_come_too_late() {
      const short = await router(path, "--response-timeout", "300ms");
      const client = await Client.register(short.url, "slow");
      const asked = say(short.port, "slow: x");
      const { id } = await client.message();
      const told = await short.event("rejected", { id });
      same([told.reason, told.timedOut, told.late], ["Response timeout", true, false], "the timeout");
      await asked;
      client.respond(id, "notification", { body: "finally" });
      const shown = await short.event("notification", { id });
      same([shown.body, shown.late], ["finally", true], "a late notification is shown");
      client.respond(id, "ack");
      same((await short.event("acked", { id })).late, true, "a late ack moves nothing");
      client.respond(id, "reject", { reason: "no" });
      await sleep(50);
      same(client.frames.length, 0, "nothing is routed again");
      await short.stop();
    },

    async a_registration_with_answers_right_behind_it() {
      const wire = await Wire.open(served.port);
      wire.write(
        Buffer.concat([
          text('{"type":"response","payload":{"messageId":"m","type":"ack","payload":{}}}'),
          text(registration('{"name":"eager","description":"d"}')),
          text('{"type":"response","payload":{"messageId":"m","type":"ack","payload":{}}}'),
          text(registration('{"name":"eager2","description":"d"}')),
        ]),
      );
      const answers = [await wire.next(), await wire.next()].map((frame) => JSON.parse(frame.text).payload);
      same([answers[0].success, answers[1].code], [true, "ALREADY_REGISTERED"], "the answers, in order");
      wire.reset();
      await served.event("left", { client: "eager" });
    },

    async a_hundred_registrations_at_once_for_one_name() {
      const clients = await Promise.all(Array.from({ length: 50 }, () => Client.open(served.url)));
      const answers = await Promise.all(clients.map((it) => it.introduce({ name: "same", description: "d" })));
      const codes = answers.map((answer) => answer.payload.code ?? "accepted").sort();
      same(codes, [...Array(49).fill("DUPLICATE_NAME"), "accepted"], "one of them is first");
      await Promise.all(clients.map((client) => client.close()));
    },

    async a_name_is_free_as_soon_as_its_owner_is_gone() {
      for (let times = 0; times < 20; times += 1) {
        const client = await Client.register(served.url, "mayfly");
        if (times % 2) client.socket.terminate();
        else await client.close();
        await served.event("left", { client: "mayfly" });
      }
    },

    async a_reason_of_a_megabyte() {
      const client = await Client.register(served.url, "wordy");
      const asked = say(served.port, "wordy: x");
      const { id } = await client.message();
      client.respond(id, "reject", { reason: "y".repeat(1_000_000) });
      const told = await served.event("rejected", { id });
      expect(told.reason.startsWith("yyy"), "the reason");
      await asked;
      await client.close();
    },

    async texts_that_try_to_look_like_something_else() {
      const client = (await Client.register(served.url, "target")).always("ack");
      for (const said of ["target: \u001b[2J\u0007", "target: {\"type\":\"message\"}", "target: \u0000", "target:,:"]) {
        const { status, json } = await say(served.port, said);
        same([status, json.outcomes[0].outcome], [200, "acked"], JSON.stringify(said));
      }
      await client.close();
    },

    async a_client_that_shows_control_characters() {
      const client = await Client.register(served.url, "painter");
      const asked = say(served.port, "painter: x");
      const { id } = await client.message();
      client.respond(id, "notification", { title: "\u001b[31mred", body: "a\u0007b\u202ec" });
      const shown = await served.event("notification", { id });
      expect(shown.client === "painter", "it is shown");
      await asked;
      await client.close();
    },
  };
  return Object.fromEntries(
    Object.entries(checks).map(([name, check]) => [name.replaceAll("_", " "), check]),
  );
}
