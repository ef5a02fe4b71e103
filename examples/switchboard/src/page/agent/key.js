// Who this browser is: an Ed25519 key that it makes once and keeps.

import { browser } from "./page/dom.js";

const PLACE = "agent-key";

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const decode = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));

/** A flat object as it is signed: sorted, without blanks, nothing beyond ASCII. */
export function canonical(payload) {
  const sorted = Object.fromEntries(Object.entries(payload).sort(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify(sorted).replace(
    /[\u007f-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The key; `null` in a browser that has none, which then goes without a name. */
export async function load() {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) return null;
  try {
    let jwk = browser.read(PLACE);
    if (jwk === null) {
      const pair = await subtle.generateKey("Ed25519", true, ["sign", "verify"]);
      jwk = await subtle.exportKey("jwk", pair.privateKey);
      if (!browser.write(PLACE, jwk)) return null;
    }
    const key = await subtle.importKey("jwk", jwk, "Ed25519", false, ["sign"]);
    return { key, address: `0x${hex(decode(jwk.x))}` };
  } catch {
    return null;
  }
}

/** The signed part of a frame, with its type in `more`. `to` is the agent's address, if it is known. */
export async function sign(me, to, more) {
  const payload = { ...more, timestamp: Date.now() / 1000 };
  if (to !== null) payload.to = to;
  payload.nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  if (me === null) return { payload };
  const bytes = new TextEncoder().encode(canonical(payload));
  const signature = await crypto.subtle.sign("Ed25519", me.key, bytes);
  return { payload, from: me.address, signature: hex(new Uint8Array(signature)) };
}
