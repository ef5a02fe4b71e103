// The connection to the gateway: it says hello, or wants a token first; when it is lost it is made again.

import { get, tab } from "./page/dom.js";
import { socketTo } from "./page/socket.js";
import { setStatus, stateNow } from "./page/view.js";

/** A gateway that wants no token says hello at once; one that is silent this long wants one. */
const HELLO_MS = 800;
const TOKEN_KEY = "gateway-token";
const AUTH_FAILED = 4001;

const [auth, token, tokenError, composer, input, statusLine] =
  ["auth", "token", "token-error", "composer", "input", "status"].map(get);

/** `heard` gets frames, `ready` is called after each hello, `ended` with the reason why answers will not come, and
 * `changed` when the state is another one. */
export function line({ heard, ready, ended, changed }) {
  const socket = socketTo({ name: "The gateway", opened, heard: received, closed, left, state });
  /** Whether the gateway said hello on this connection. */
  let isReady = false;
  /** Whether this connection was told a token. */
  let tokenSent = false;
  let secret = tab.read(TOKEN_KEY);

  function state(word, text) {
    if (word === "lost") ended("The connection was lost before the answer was complete.");
    setStatus(word, text);
    changed();
  }

  function left() {
    isReady = false;
    tokenSent = false;
  }

  function opened() {
    if (secret !== null) sendToken();
    else socket.after(HELLO_MS, () => askForToken(""));
  }

  function sendToken() {
    tokenSent = true;
    socket.send({ token: secret });
    socket.expectAnswer();
  }

  function askForToken(why) {
    socket.waitsNoMore();
    auth.hidden = false;
    composer.hidden = true;
    tokenError.textContent = why;
    state("token", "Token wanted");
    token.focus();
  }

  function hello(frame) {
    socket.waitsNoMore();
    isReady = true;
    socket.ready();
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
    if (waitsForToken()) return socket.leave();
    secret = null;
    tab.write(TOKEN_KEY, null);
    socket.leave();
    ended("The gateway refused this connection.");
    token.value = "";
    askForToken("The gateway refused this token.");
  }

  function closed(event) {
    // Some gateways refuse with a close frame alone. A lost connection is not closed cleanly.
    const isRefusal = event.code === AUTH_FAILED || (tokenSent && !isReady && event.wasClean);
    if (isRefusal || waitsForToken()) refused();
    else socket.lost("Connection lost");
  }

  function received(frame) {
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
    if (socket.isOpen() && !tokenSent) {
      state("connecting", "Connecting");
      sendToken();
    } else {
      socket.open();
    }
  });
  get("retry").addEventListener("click", socket.open);
  addEventListener("online", () => {
    if (stateNow() === "lost") socket.open();
  });

  return {
    connect: socket.open,
    send: socket.send,
    get isReady() {
      return isReady;
    },
    /** What requests over HTTP need. */
    headers: () => (secret === null ? {} : { Authorization: `Bearer ${secret}` }),
  };
}
