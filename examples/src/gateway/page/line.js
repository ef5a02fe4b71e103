// The connection to the gateway: it says hello, or wants a token first; when it is lost it is made again.

import { get, isObject, tab } from "./page/dom.js";
import { setStatus, stateNow } from "./page/view.js";

/** A gateway that wants no token says hello at once; one that is silent this long wants one. */
const HELLO_MS = 800;
/** How long opening, and the answer to a token, may take. */
const OPEN_MS = 15000;
const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30000;
const TOKEN_KEY = "gateway-token";
const AUTH_FAILED = 4001;

const [auth, token, tokenError, composer, input, statusLine] =
  ["auth", "token", "token-error", "composer", "input", "status"].map(get);

/** `heard` gets frames, `ready` is called after each hello, `ended` with the reason why answers will not come, and
 * `changed` when the state is another one. */
export function line({ heard, ready, ended, changed }) {
  let socket = null;
  /** Whether the gateway said hello on this connection. */
  let isReady = false;
  /** Whether this connection was told a token. */
  let tokenSent = false;
  let timer = 0;
  let delay = FIRST_DELAY_MS;
  let secret = tab.read(TOKEN_KEY);

  function state(word, text) {
    setStatus(word, text);
    changed();
  }

  function after(ms, then) {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  }

  function connect() {
    leave();
    state("connecting", "Connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const ours = new WebSocket(`${scheme}//${location.host}/ws`);
    socket = ours;
    // A socket that was left has no say any more.
    const on = (name, handler) =>
      ours.addEventListener(name, (event) => {
        if (socket === ours) handler(event);
      });
    on("open", opened);
    on("message", ({ data }) => received(data));
    on("close", closed);
    after(OPEN_MS, () => lost("The gateway does not answer"));
  }

  /** Closes the connection. The gateway then ends what it does for it. */
  function leave() {
    clearTimeout(timer);
    const old = socket;
    socket = null;
    isReady = false;
    tokenSent = false;
    old?.close(1000);
  }

  function opened() {
    if (secret !== null) sendToken();
    else after(HELLO_MS, () => askForToken(""));
  }

  function sendToken() {
    tokenSent = true;
    socket.send(JSON.stringify({ token: secret }));
    after(OPEN_MS, () => lost("The gateway does not answer"));
  }

  function askForToken(why) {
    clearTimeout(timer);
    auth.hidden = false;
    composer.hidden = true;
    tokenError.textContent = why;
    state("token", "Token wanted");
    token.focus();
  }

  function hello(frame) {
    clearTimeout(timer);
    isReady = true;
    delay = FIRST_DELAY_MS;
    if (tokenSent) tab.write(TOKEN_KEY, secret);
    const hadFocus = auth.contains(document.activeElement);
    auth.hidden = true;
    composer.hidden = false;
    token.value = "";
    tokenError.textContent = "";
    statusLine.title = typeof frame.version === "string" ? `Gateway version ${frame.version}` : "";
    if (hadFocus) input.focus();
    state("ready", "Connected");
    ready();
  }

  /** Whether the user is asked for a token, and the gateway was not told one yet. */
  const waitsForToken = () => stateNow() === "token";

  function refused() {
    // Nobody typed a token in time: the next connection is made when somebody does.
    if (waitsForToken()) return leave();
    secret = null;
    tab.write(TOKEN_KEY, null);
    leave();
    ended("The gateway refused this connection.");
    token.value = "";
    askForToken("The gateway refused this token.");
  }

  function closed(event) {
    // Some gateways refuse with a close frame alone. A lost connection is not closed cleanly.
    const isRefusal = event.code === AUTH_FAILED || (tokenSent && !isReady && event.wasClean);
    if (isRefusal || waitsForToken()) refused();
    else lost("Connection lost");
  }

  function lost(why) {
    leave();
    ended("The connection was lost before the answer was complete.");
    // Not all pages of a restarted gateway at the same time.
    const wait = delay * (0.8 + 0.2 * Math.random());
    delay = Math.min(2 * delay, MAX_DELAY_MS);
    state("lost", `${why}. Next try in ${Math.max(1, Math.round(wait / 1000))} s`);
    after(wait, connect);
  }

  function received(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (!isObject(frame)) return;
    if (frame.id === undefined && (frame.error === "auth_failed" || frame.code === AUTH_FAILED)) {
      refused();
    } else if (isReady) {
      heard(frame);
    } else if (frame.id === undefined && frame.ok === true) {
      hello(frame);
    }
  }

  auth.addEventListener("submit", (event) => {
    event.preventDefault();
    if (token.value === "") return;
    secret = token.value;
    tokenError.textContent = "";
    if (socket?.readyState === WebSocket.OPEN && !tokenSent) {
      state("connecting", "Connecting");
      sendToken();
    } else {
      connect();
    }
  });
  get("retry").addEventListener("click", connect);
  addEventListener("online", () => {
    if (stateNow() === "lost") connect();
  });

  return {
    connect,
    send: (frame) => socket.send(JSON.stringify(frame)),
    get isReady() {
      return isReady;
    },
    /** What requests over HTTP need. */
    headers: () => (secret === null ? {} : { Authorization: `Bearer ${secret}` }),
  };
}
