// Loads the module, which is a file in Node and a URL elsewhere, and exports its classes.
import init, { AcolyteClient, ConnectOnionClient, ExoclawClient, SmartHoleClient, SnekClient, Stream } from "./switchboard_clients.js";

const url = new URL("switchboard_clients_bg.wasm", import.meta.url);
// Not imported: a bundler for pages would look for it.
const files = url.protocol === "file:" && globalThis.process?.getBuiltinModule("node:fs");
await init({ module_or_path: files ? files.readFileSync(url) : url });

Stream.prototype[Symbol.asyncIterator] = function () {
  return this;
};
const clients = [AcolyteClient, ConnectOnionClient, ExoclawClient, SmartHoleClient, SnekClient];
for (const { prototype } of clients) {
  // Without `return`: to leave a loop ends nothing, and another loop goes on.
  prototype[Symbol.asyncIterator] = function () {
    return { next: () => this.nextEvent() };
  };
}

export { AcolyteClient, ConnectOnionClient, ExoclawClient, SmartHoleClient, SnekClient };
