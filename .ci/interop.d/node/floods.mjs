// Too much, too fast, too slow.

import { Client, expect, request, router, same, say, sleep } from "./common.mjs";
import { Wire, closing, frame, handshake, text } from "./wire.mjs";
import { registration } from "./frames.mjs";

const many = (count, make) => Array.from({ length: count }, (_, at) => make(at));

export function all(path, served) {
  const checks = {
    async twenty_thousand_frames_of_junk() {
      const wire = await Wire.open(served.port);
      wire.write(Buffer.concat(many(20_000, () => text("junk"))));
      same((await wire.next("a close")).close, 1008, "the code");
    },

    async twenty_thousand_registrations() {
      const wire = await Wire.open(served.port);
      wire.write(Buffer.concat(many(20_000, () => text(registration("7")))));
      let next;
      do next = await wire.next("a close");
      while (next.text !== undefined);
      expect(next.close === 1008 || next.end, JSON.stringify(next));
    },

    async registrations_whose_answers_nobody_reads() {
      const wire = await Wire.open(served.port);
      wire.socket.pause();
      for (let times = 0; times < 40 && !wire.socket.destroyed; times += 1) {
        wire.write(Buffer.concat(many(100, () => text(registration("7")))));
        await sleep(5);
      }
      wire.reset();
    },

    async twenty_thousand_pings() {
      const wire = await Wire.open(served.port);
      wire.write(Buffer.concat(many(20_000, () => frame(9, "x"))), text(registration("7")));
      const next = await wire.frames.next((it) => it.pong === undefined && it.ping === undefined, "an answer");
      expect(next.text !== undefined || next.close === 1008 || next.end, JSON.stringify(next));
      wire.reset();
    },

    async a_thousand_notifications() {
      const client = await Client.register(served.url, "shouter");
      const asked = say(served.port, "shouter: x");
      const { id } = await client.message();
      for (let at = 0; at < 1000; at += 1) client.respond(id, "notification", { body: String(at) });
      await asked;
      await served.events.next((it) => it.event === "notification" && it.body === "999", "the last one");
      await client.close();
    },

    async three_hundred_connections_that_come_and_go() {
      for (let round = 0; round < 10; round += 1) {
        const wires = many(30, () => new Wire(served.port));
        for (const [at, wire] of wires.entries()) {
          if (at % 3 === 0) wire.write(handshake(served.port));
          if (at % 3 === 1) wire.write("GET");
        }
        await sleep(5);
        for (const wire of wires) wire.reset();
      }
    },

    async fifty_connections_that_say_nothing() {
      const wires = many(50, () => new Wire(served.port));
      await sleep(50);
      same((await say(served.port, "steady: x")).status, 200, "others are served");
      for (const wire of wires) wire.reset();
    },

    async more_clients_than_places() {
      const small = await router(path, "--max-clients", "3");
      const clients = await Promise.all(many(3, (at) => Client.register(small.url, `c${at}`)));
      for (let times = 0; times < 5; times += 1) {
        const wire = new Wire(small.port);
        wire.write(handshake(small.port));
        const { status, whole } = await wire.answer();
        same(status, 503, "the status");
        expect(whole.includes("Service Unavailable: Max connections reached"), "the words");
        wire.reset();
      }
      clients[0].always("ack");
      same((await say(small.port, "c0: x")).status, 200, "requests have places of their own");
      const foreign = new Wire(small.port, { localAddress: "127.0.0.2" });
      foreign.write(handshake(small.port));
      same((await foreign.answer()).status, 403, "who may not come is told so first");
      await clients[1].close();
      await small.event("left", { client: "c1" });
      await (await Client.register(small.url, "c1")).close();
      await small.stop();
    },

    async clients_that_answer_no_ping() {
      const quick = await router(path, "--heartbeat", "300ms", "--pong-timeout", "500ms");
      const wire = await Wire.open(quick.port);
      wire.write(text(registration('{"name":"dead","description":"d"}')));
      same(JSON.parse((await wire.next()).text).payload.success, true, "the answer");
      // It talks, but a pong is what is wanted.
      const talking = setInterval(() => wire.write(text("junk")), 20);
      const last = await wire.next("the end");
      clearInterval(talking);
      same(last, { end: true }, "no close");
      await quick.event("left", { client: "dead" });
      const half = await Client.register(quick.url, "half", "d", { autoPong: false });
      same((await half.closed).code, 1006, "the code");
      const alive = (await Client.register(quick.url, "alive")).always("ack");
      await sleep(1000);
      same((await say(quick.port, "alive: x")).status, 200, "who answers stays");
      await alive.close();
      await quick.stop();
    },

    async a_client_that_does_not_read() {
      const short = await router(path, "--response-timeout", "500ms");
      const wire = await Wire.open(short.port);
      wire.write(text(registration('{"name":"deaf","description":"d"}')));
      await wire.next();
      wire.socket.pause();
      const steady = (await Client.register(short.url, "steady")).always("ack");
      const big = `deaf: ${"x".repeat(900_000)}`;
      let refused = 0;
      for (let times = 0; times < 60; times += 1) {
        const headers = { "content-type": "text/plain" };
        const { status } = await request(short.port, "/input", { method: "POST", headers }, big);
        expect([202, 503].includes(status), `the status: ${status}`);
        if (status === 503) refused += 1;
        if (times % 10 === 0) same((await say(short.port, "steady: x")).status, 200, "others are served");
      }
      same((await say(short.port, "steady: x")).status, 200, "others are served");
      wire.reset();
      // Not told by an event: so many megabytes of them are too many.
      const there = async () => (await request(short.port, "/clients")).json.map(({ name }) => name);
      while ((await there()).includes("deaf")) await sleep(20);
      await steady.close();
      same(await short.stop(), 0, "the exit code");
      expect(refused < 60, "some are taken");
    },

    async a_client_that_reads_a_byte_at_a_time() {
      const client = (await Client.register(served.url, "nibbler")).always("ack");
      const slow = setInterval(() => {
        client.socket.pause();
        setTimeout(() => client.socket.resume(), 3);
      }, 6);
      for (let times = 0; times < 10; times += 1) {
        const { json } = await say(served.port, `nibbler: ${"x".repeat(100_000)}`);
        same(json.outcomes[0].outcome, "acked", "it is served");
      }
      clearInterval(slow);
      client.socket.resume();
      await client.close();
    },

    async a_shutdown_while_everybody_misbehaves() {
      const ending = await router(path);
      const wires = await Promise.all(many(10, () => Wire.open(ending.port)));
      wires.forEach((wire, at) => {
        if (at % 2) wire.socket.pause();
        wire.write(text(registration(`{"name":"w${at}","description":"d"}`)));
      });
      new Wire(ending.port).write("POST /input HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n");
      await sleep(50);
      wires[0].write(closing(1000));
      same(await ending.stop(), 0, "the exit code");
      wires.forEach((wire) => wire.socket.destroy());
    },
  };
  return Object.fromEntries(
    Object.entries(checks).map(([name, check]) => [name.replaceAll("_", " "), check]),
  );
}
