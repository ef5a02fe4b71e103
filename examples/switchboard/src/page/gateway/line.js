// The line to one chat at the gateway: what was said before, then what happens, as it happens. The gateway may want a
// token first.

import { connection, request as ask } from "./page/connection.js";
import { address, get, isObject, tab } from "./page/dom.js";

/** The gateway says something every 15 s. */
const SILENCE_MS = 45000;
const TOKEN_KEY = "gateway-token";

const [auth, token, tokenError, composer, input] = ["auth", "token", "token-error", "composer", "input"].map(get);
let secret = tab.read(TOKEN_KEY);

const identity = () => (secret === null ? {} : { Authorization: `Bearer ${secret}` });

/** A request about a chat. Fails with the gateway's words. */
export const request = (method, path, body) => ask("The gateway", method, path, body, identity());

function askForToken(why) {
  auth.hidden = false;
  composer.hidden = true;
  token.value = "";
  tokenError.textContent = why;
  token.focus();
}

function letIn() {
  if (secret !== null) tab.write(TOKEN_KEY, secret);
  if (auth.hidden) return;
  auth.hidden = true;
  composer.hidden = false;
  input.focus();
}

/** Calls `enter` when a token was typed. */
export function onToken(enter) {
  auth.addEventListener("submit", (event) => {
    event.preventDefault();
    if (token.value === "") return;
    secret = token.value;
    tokenError.textContent = "";
    enter();
  });
}

/** `heard` gets events, and `state` a word and a text: connecting, token, ready, lost. */
export function line(id, { heard, state }) {
  const link = connection({ name: "The gateway", dial, state });

  function dial(on) {
    const abort = new AbortController();
    const lost = on(() => link.lost("Connection lost"));
    follow(abort.signal, on).then(lost, lost);
    return { close: () => abort.abort() };
  }

  async function follow(signal, on) {
    const response = await fetch(address(`chats/${id}`), { headers: identity(), signal });
    if (response.status === 401) return on(refused)();
    if (!response.ok) throw new Error(response.statusText);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      if (!value.includes("\n")) continue;
      const lines = text.split("\n");
      text = lines.pop();
      on(received)(lines);
    }
  }

  function refused() {
    const why = secret === null ? "" : "The gateway refused this token.";
    secret = null;
    tab.write(TOKEN_KEY, null);
    link.leave();
    askForToken(why);
    state("token", "Waiting for the token");
  }

  function received(lines) {
    link.after(SILENCE_MS, () => link.lost("The gateway was silent"));
    for (const line of lines) {
      let event;
      try {
        event = JSON.parse(line);
      } catch {
        continue;
      }
      if (!isObject(event)) continue;
      if (event.event === "past") {
        link.ready();
        letIn();
        state("ready", "Connected");
      }
      heard(event);
    }
  }

  return { open: link.open, leave: link.leave };
}
