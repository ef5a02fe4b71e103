// The gateway's chat page: one session for each browser, one WebSocket, one question at a time. Whatever the gateway sends is
// shown as text, never as markup.
"use strict";

(() => {
  /** A gateway that wants no token says hello at once; one that is silent this long wants one. */
  const HELLO_MS = 800;
  /** How long opening, and the answer to a token, may take. */
  const OPEN_MS = 15000;
  /** How long an answer may be silent. */
  const IDLE_MS = 60000;
  const FIRST_DELAY_MS = 1000;
  const MAX_DELAY_MS = 30000;
  /** Most questions and answers on the page; the oldest go first. */
  const MAX_ARTICLES = 400;
  /** How long the past of the conversation may take. */
  const PAST_MS = 5000;
  const TOKEN_KEY = "gateway-token";
  const SESSION_KEY = "gateway-session";
  const AUTH_FAILED = 4001;

  const get = (id) => document.getElementById(id);
  const [statusLine, statusText, retry, scroller, log, hint] =
    ["status", "status-text", "retry", "scroller", "log", "hint"].map(get);
  const [auth, token, tokenError, composer, input, send, stop, waits] =
    ["auth", "token", "token-error", "composer", "input", "send", "stop", "waits"].map(get);

  /** An element with a class and a text. */
  function make(name, className, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const show = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");

  /** The text of an error: a string, or an object with a message. `null` is no error. */
  function errorText(error) {
    if (error === undefined || error === null) return null;
    if (isObject(error) && typeof error.message === "string") return error.message;
    return show(error) || "unknown error";
  }

  // --- the token: in this tab, until it is closed -------------------------------------------------

  const storage = {
    read() {
      try {
        return sessionStorage.getItem(TOKEN_KEY);
      } catch {
        return null;
      }
    },
    write(value) {
      try {
        if (value === null) sessionStorage.removeItem(TOKEN_KEY);
        else sessionStorage.setItem(TOKEN_KEY, value);
      } catch {
        // Without storage, the token lasts until the page is reloaded.
      }
    },
  };
  let secret = storage.read();

  // --- the session: this browser's own, as long as its storage lasts ------------------------------

  /** Whoever knows it can read the conversation, so nobody can guess it. */
  function ownSession() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const fresh = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    try {
      const kept = localStorage.getItem(SESSION_KEY);
      if (/^[0-9a-f]{32}$/.test(kept ?? "")) return kept;
      localStorage.setItem(SESSION_KEY, fresh);
    } catch {
      // Without storage, the session lasts until the page is reloaded.
    }
    return fresh;
  }
  const peer = ownSession();

  /** Whether what was said before this page was loaded is on it, as far as it can be had. */
  let isPastShown = false;

  async function showPast() {
    if (isPastShown) return;
    let turns = [];
    try {
      const headers = secret === null ? {} : { Authorization: `Bearer ${secret}` };
      const response = await fetch(`/history/${peer}`, { headers, signal: AbortSignal.timeout(PAST_MS) });
      if (response.ok) turns = await response.json();
    } catch {
      // The conversation goes on without.
    }
    if (isPastShown) return;
    isPastShown = true;
    const wasAtEnd = atEnd();
    for (const { user, assistant } of Array.isArray(turns) ? turns.filter(isObject).reverse() : []) {
      const [question, answer] = [bubble("user", "You"), bubble("agent", "Agent")];
      question.append(make("p", "text", show(user)));
      answer.append(make("p", "text", show(assistant)));
      log.prepend(question, answer);
    }
    follow(wasAtEnd);
    sendQueued();
  }

  // --- the connection -----------------------------------------------------------------------------

  let socket = null;
  /** Whether the gateway said hello on this connection. */
  let ready = false;
  /** Whether this connection was told a token. */
  let tokenSent = false;
  let timer = 0;
  let delay = FIRST_DELAY_MS;

  function setStatus(state, text) {
    statusLine.dataset.state = state;
    if (statusText.textContent !== text) statusText.textContent = text;
    retry.hidden = state !== "lost";
    update();
  }

  function after(ms, then) {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
  }

  function connect() {
    leave();
    setStatus("connecting", "Connecting");
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
    ready = false;
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
    setStatus("token", "Token wanted");
    token.focus();
  }

  function hello(frame) {
    clearTimeout(timer);
    ready = true;
    delay = FIRST_DELAY_MS;
    if (tokenSent) storage.write(secret);
    const hadFocus = auth.contains(document.activeElement);
    auth.hidden = true;
    composer.hidden = false;
    token.value = "";
    tokenError.textContent = "";
    statusLine.title = typeof frame.version === "string" ? `Gateway version ${frame.version}` : "";
    setStatus("ready", "Connected");
    if (hadFocus) input.focus();
    showPast();
  }

  /** Whether the user is asked for a token, and the gateway was not told one yet. */
  const waitsForToken = () => statusLine.dataset.state === "token";

  function refused() {
    // Nobody typed a token in time: the next connection is made when somebody does.
    if (waitsForToken()) return leave();
    secret = null;
    storage.write(null);
    leave();
    fail("The gateway refused this connection.");
    token.value = "";
    askForToken("The gateway refused this token.");
  }

  function closed(event) {
    // Some gateways refuse with a close frame alone. A lost connection is not closed cleanly.
    const refusal = event.code === AUTH_FAILED || (tokenSent && !ready && event.wasClean);
    if (refusal || waitsForToken()) refused();
    else lost("Connection lost");
  }

  function lost(why) {
    leave();
    fail("The connection was lost before the answer was complete.");
    // Not all pages of a restarted gateway at the same time.
    const wait = delay * (0.8 + 0.2 * Math.random());
    delay = Math.min(2 * delay, MAX_DELAY_MS);
    setStatus("lost", `${why}. Next try in ${Math.max(1, Math.round(wait / 1000))} s`);
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
    } else if (!ready) {
      if (frame.id === undefined && frame.ok === true) hello(frame);
    } else if (turn !== null && frame.id === turn.id) {
      after(IDLE_MS, idle);
      progress(frame);
    }
  }

  // --- one question and its answer ----------------------------------------------------------------

  /** The question that is being answered. */
  let turn = null;
  let count = 0;
  const prefix = `web-${Date.now().toString(36)}`;

  function ask(content) {
    article("user", "You").append(make("p", "text", content));
    const element = article("agent", "Agent");
    element.setAttribute("aria-busy", "true");
    element.append(make("p", "waiting", "Thinking"));
    count += 1;
    turn = { id: `${prefix}-${count}`, element, text: null, tools: new Map(), input: 0, output: 0, usage: null };
    socket.send(JSON.stringify({
      id: turn.id,
      method: "chat.send",
      params: { channel: "web", account: "browser", peer, content },
    }));
    after(IDLE_MS, idle);
    update();
    follow(true);
  }

  function bubble(className, name) {
    const element = make("article", className);
    element.append(make("h2", "unseen", name));
    return element;
  }

  function article(className, name) {
    const element = bubble(className, name);
    log.append(element);
    while (log.childElementCount > MAX_ARTICLES) log.firstElementChild.remove();
    return element;
  }

  function progress(frame) {
    const wasAtEnd = atEnd();
    const failure = errorText(frame.error);
    if (failure !== null) fail(failure);
    else if (frame.event === "text") addText(frame.data);
    else if (frame.event === "tool_use") addTool(frame.data);
    else if (frame.event === "tool_result") addResult(frame.data);
    else if (frame.event === "usage") addUsage(frame.data);
    else if (frame.event === "error") fail(errorText(frame.data) ?? "unknown error");
    else if (frame.event === "done") finish();
    follow(wasAtEnd);
  }

  /** Puts something at the end of the answer, above the count of tokens. */
  function put(element) {
    turn.element.querySelector(".waiting")?.remove();
    turn.element.insertBefore(element, turn.usage);
  }

  function addText(data) {
    if (typeof data !== "string" || data === "") return;
    if (turn.text === null) {
      turn.text = document.createTextNode("");
      const paragraph = make("p", "text");
      paragraph.append(turn.text);
      put(paragraph);
    }
    turn.text.appendData(data);
  }

  function tool(name) {
    const block = make("details", "tool");
    const state = make("span", "state", "running");
    const summary = make("summary");
    summary.append(make("span", "name", name), state);
    block.append(summary);
    put(block);
    turn.text = null;
    return { block, state };
  }

  function addPart(block, title, value, className) {
    block.append(make("h3", "", title), make("pre", className, show(value)));
  }

  function addTool(data) {
    if (!isObject(data)) return;
    const entry = tool(show(data.name) || "tool");
    entry.block.dataset.state = "running";
    addPart(entry.block, "Input", data.input ?? {}, "input");
    if (typeof data.id === "string") turn.tools.set(data.id, entry);
  }

  function addResult(data) {
    if (!isObject(data)) return;
    const { block, state } = turn.tools.get(data.tool_use_id) ?? tool("tool");
    turn.tools.delete(data.tool_use_id);
    const failed = data.is_error === true;
    block.dataset.state = failed ? "failed" : "done";
    state.textContent = failed ? "failed" : "done";
    addPart(block, failed ? "Error" : "Result", data.content, "result");
  }

  /** There is one count for each time that the model was called. */
  function addUsage(data) {
    if (!isObject(data)) return;
    turn.input += Number.isFinite(data.input_tokens) ? data.input_tokens : 0;
    turn.output += Number.isFinite(data.output_tokens) ? data.output_tokens : 0;
    if (turn.usage === null) {
      turn.usage = make("p", "usage small");
      turn.element.append(turn.usage);
    }
    turn.usage.textContent = `${turn.input} tokens in, ${turn.output} out`;
  }

  /** Ends the answer, if there is one. */
  function finish(notice, className = "notice") {
    if (turn === null) return;
    clearTimeout(timer);
    if (notice !== undefined) put(make("p", className, notice));
    else if (turn.element.querySelector(".waiting")) put(make("p", "notice", "The answer is empty."));
    for (const { block, state } of turn.tools.values()) {
      block.dataset.state = "ended";
      state.textContent = "no result";
    }
    turn.element.setAttribute("aria-busy", "false");
    turn = null;
    if (document.activeElement === stop) input.focus();
    // Behind an answer that failed, the next message may no longer be what the user wants to say.
    if (notice !== undefined) queued = false;
    sendQueued();
  }

  function fail(why) {
    const wasAtEnd = atEnd();
    finish(why, "failure");
    follow(wasAtEnd);
  }

  function idle() {
    fail(`The gateway was silent for ${IDLE_MS / 1000} s.`);
    connect();
  }

  /** There is no message that stops an answer: the gateway stops when its client leaves. */
  function stopAnswer() {
    if (turn === null) return;
    const wasAtEnd = atEnd();
    finish("Stopped.");
    follow(wasAtEnd);
    connect();
    input.focus();
  }

  // --- what the user does -------------------------------------------------------------------------

  /** Whether the message in the field is sent as soon as the answer is complete. */
  let queued = false;

  function sendQueued() {
    if (queued) submit();
    else update();
  }

  function update() {
    const running = turn !== null;
    waits.hidden = !queued;
    send.hidden = running;
    stop.hidden = !running;
    send.disabled = !ready || input.value.trim() === "";
    hint.hidden = !auth.hidden || log.childElementCount > 0;
  }

  const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;

  /** Stays at the end, unless the user has scrolled away from it. */
  function follow(wasAtEnd) {
    if (wasAtEnd) scroller.scrollTop = scroller.scrollHeight;
  }

  function submit() {
    const content = input.value;
    queued = ready && content.trim() !== "" && (turn !== null || !isPastShown);
    if (!ready || queued || content.trim() === "") return update();
    input.value = "";
    ask(content);
    input.focus();
  }

  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });

  input.addEventListener("input", () => {
    queued = false;
    update();
  });
  input.addEventListener("keydown", (event) => {
    // Enter also ends the composition of a character.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    composer.requestSubmit();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) stopAnswer();
  });
  stop.addEventListener("click", stopAnswer);

  auth.addEventListener("submit", (event) => {
    event.preventDefault();
    if (token.value === "") return;
    secret = token.value;
    tokenError.textContent = "";
    if (socket?.readyState === WebSocket.OPEN && !tokenSent) {
      setStatus("connecting", "Connecting");
      sendToken();
    } else {
      connect();
    }
  });

  retry.addEventListener("click", connect);
  window.addEventListener("online", () => {
    if (statusLine.dataset.state === "lost") connect();
  });

  update();
  connect();
})();
