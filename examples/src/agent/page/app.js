// The agent's chat page. The frames are those of ConnectOnion: CONNECT starts a session or resumes
// it, INPUT says something, events tell what the agent does.

import { along } from "./along.js";
import { element, reply, show } from "./items.js";
import { line } from "./line.js";
import { forget, memory, save } from "./memory.js";

const get = (id) => document.getElementById(id);
const [statusLine, statusText, retry, fresh, scroller, log, busy, hint] =
  ["status", "status-text", "retry", "fresh", "scroller", "log", "busy", "hint"].map(get);
const [gate, invite, gateError, composer, input, send, stop, mode, attach, picker] =
  ["gate", "invite", "gate-error", "composer", "input", "send", "stop", "mode", "attach", "files"].map(get);

// --- what is shown ------------------------------------------------------------------------------

/** The elements of the items. */
const elements = new Map();

/** Puts an item at the end, or shows a known one anew. */
function put(item) {
  const wasAtEnd = atEnd();
  if (!memory.items.includes(item)) memory.items.push(item);
  const shown = element(item, answer);
  const old = elements.get(item);
  if (old?.open) shown.open = true;
  if (old) old.replaceWith(shown);
  else log.append(shown);
  elements.set(item, shown);
  follow(wasAtEnd);
  save();
}

/** The item of this kind and id, newest first. */
const known = (kind, id) => memory.items.findLast((item) => item.kind === kind && item.id === id);

function showAll() {
  elements.clear();
  log.replaceChildren();
  for (const item of memory.items) {
    const shown = element(item, answer);
    elements.set(item, shown);
    log.append(shown);
  }
  follow(true);
}

const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;

/** Stays at the end, unless the user has scrolled away from it. */
function follow(wasAtEnd) {
  if (wasAtEnd) scroller.scrollTop = scroller.scrollHeight;
}

function update() {
  const { state } = statusLine.dataset;
  const asks = question();
  stop.hidden = !memory.running;
  busy.hidden = !memory.running || asks !== undefined;
  send.disabled = state !== "ready" || input.value.trim() === "";
  input.placeholder = asks ? "Answer" : memory.running ? "Say more" : "Message";
  gate.hidden = state !== "gate";
  composer.hidden = state === "gate";
  hint.hidden = state === "gate" || memory.items.length > 0;
}

/** The question that waits for words, if there is one. */
const question = () =>
  memory.items.find((item) => item.kind === "ask" && item.open && item.type !== "approval_needed");

// --- what the agent says ------------------------------------------------------------------------

const answers = {
  CONNECTED(frame) {
    if (frame.session_id !== memory.sessionId) memory.lastId = null;
    memory.sessionId = frame.session_id;
    const wasRunning = memory.running;
    memory.running = frame.status === "running" || frame.status === "executing";
    if (Array.isArray(frame.chat_items)) {
      if (frame.session !== undefined) memory.session = frame.session;
      // What is still running is told as events.
      if (!memory.running) {
        memory.items = frame.chat_items.map(shownBefore).filter(Boolean);
        showAll();
      }
    } else if (wasRunning && !memory.running) {
      end("failure", "The agent does not know of this any more. If you like, ask again.");
    }
    if (memory.running && frame.bound_answers) {
      // An answer may have been lost with its line. The agent refuses those that it has.
      for (const item of memory.items.filter((item) => item.kind === "ask" && item.response)) {
        item.repeated = agent.send(item.response);
      }
    }
  },
  OUTPUT(frame) {
    if (frame.session !== undefined) memory.session = frame.session;
    const last = memory.items.at(-1);
    const text = show(frame.result ?? "");
    if (!(last?.kind === "agent" && last.text === text)) {
      put({ kind: text === "" ? "notice" : "agent", text: text === "" ? "There is no answer." : text });
    }
    end();
  },
  ERROR(frame) {
    const text = show(frame.message ?? frame.error ?? "unknown error");
    if (frame.code === "STALE_ANSWER") {
      const asked = known("ask", frame.request_id);
      if (asked?.repeated) asked.repeated = false;
      else if (asked) put(Object.assign(asked, { open: false, answer: "Too late." }));
    } else if (frame.code === "RUNTIME_INPUT_REJECTED" || frame.received !== undefined) {
      put({ kind: "failure", text });
    } else {
      end("failure", text);
    }
  },
  RUNTIME_INPUT_ACK(frame) {
    const said = memory.items.find((item) => item.kind === "user" && item.queued && !item.id);
    if (said) put(Object.assign(said, { id: frame.id }));
  },
  user_input(frame) {
    const queued = frame.runtime_input ? known("user", frame.id) : undefined;
    if (queued) return put(Object.assign(queued, { queued: false }));
    // What was typed here is shown already.
    const typed = memory.items.findLast((item) => item.kind === "user");
    const said = spoken(show(frame.content ?? ""));
    if (typed?.text === said && (typed.id ?? frame.id) === frame.id) {
      return put(Object.assign(typed, { id: frame.id, queued: false }));
    }
    memory.running = true;
    put({ kind: "user", id: frame.id, text: said });
  },
  assistant(frame) {
    if (!known("agent", frame.id)) put({ kind: "agent", id: frame.id, text: show(frame.content ?? "") });
  },
  thinking(frame) {
    if (!frame.content) return;
    const thought = known("thought", frame.id) ?? { kind: "thought", id: frame.id };
    put(Object.assign(thought, { text: show(frame.content) }));
  },
  tool_call(frame) {
    const id = frame.tool_id ?? frame.id;
    if (known("tool", id)) return;
    put({ kind: "tool", id, name: show(frame.name ?? "tool"), args: frame.args, state: "running" });
  },
  tool_result(frame) {
    const id = frame.tool_id ?? frame.id;
    const failed = ["error", "not_found", "failed"].includes(frame.status);
    const tool = known("tool", id) ?? { kind: "tool", id, name: show(frame.name ?? "tool"), args: frame.args };
    put(Object.assign(tool, { state: failed ? "failed" : "done", result: frame.result ?? frame.error ?? "" }));
  },
  tool_blocked(frame) {
    put({ kind: "notice", text: show(frame.message ?? `${frame.tool} may not run`) });
  },
  ask_user(frame) {
    ask(frame, show(frame.question ?? frame.text ?? ""), undefined, frame.options);
  },
  approval_needed(frame) {
    const why = frame.description ? `: ${show(frame.description)}` : "";
    ask(frame, `May the agent use ${show(frame.tool)}${why}?`, frame.arguments);
  },
  plan_review(frame) {
    ask(frame, "The agent's plan:", frame.plan_content, ["Go ahead.", "No."]);
  },
  compact(frame) {
    const words = {
      compacting: "The conversation is made shorter.",
      error: `The conversation was not made shorter: ${show(frame.error ?? "")}`,
    };
    const text = words[frame.status] ?? `The conversation was made shorter: ${show(frame.message ?? "done")}`;
    put(Object.assign(known("compact", frame.id) ?? { kind: "compact", id: frame.id }, { text }));
  },
  mode_changed(frame) {
    if ([...mode.options].some((option) => option.value === frame.mode)) mode.value = frame.mode;
  },
  files_received(frame) {
    const names = (frame.files ?? []).map((file) => show(file?.name ?? "file"));
    put({ kind: "notice", id: frame.id, text: `The agent has got ${names.join(", ")}.` });
  },
};

function ask(frame, text, details, options) {
  if (known("ask", frame.id)) return;
  put({ kind: "ask", id: frame.id, type: frame.type, text, details, options, open: true });
}

function heard(frame) {
  const wasAtEnd = atEnd();
  memory.running ||= frame.type === "llm_call";
  answers[frame.type]?.(frame);
  // Events can be told again from here on.
  if (typeof frame.id === "string" && typeof frame.ts === "number") memory.lastId = frame.id;
  save();
  update();
  follow(wasAtEnd);
}

/** Ends a run, with a word about it if there is one to be said. */
function end(kind, text) {
  memory.running = false;
  for (const item of memory.items) {
    delete item.response;
    if (item.kind === "ask" && item.open) put(Object.assign(item, { open: false }));
    if (item.kind === "tool" && item.state === "running") put(Object.assign(item, { state: "ended" }));
    if (item.queued) put(Object.assign(item, { queued: false }));
  }
  if (kind !== undefined) put({ kind, text });
}

/** What the user has said, without what a host adds for the agent. */
const spoken = (text) => text.split("\n\n<system-reminder>")[0];

/** An item as the agent remembers it. */
function shownBefore(item) {
  const text = typeof item?.content === "string" ? item.content : show(item?.content?.[0]?.text ?? "");
  switch (item?.type) {
    case "user":
      return { kind: "user", text: spoken(text) };
    case "agent":
      return { kind: "agent", text };
    case "thinking":
      return item.content ? { kind: "thought", text } : null;
    case "tool_call": {
      const state = { done: "done", error: "failed" }[item.status] ?? "ended";
      return { kind: "tool", id: item.id, name: show(item.name ?? "tool"), args: item.args, state, result: item.result };
    }
    default:
      return null;
  }
}

// --- what the user does -------------------------------------------------------------------------

const agent = line({
  heard,
  info,
  state(state, text) {
    statusLine.dataset.state = state === "refused" ? "lost" : state;
    const words = { gate: "Invite code wanted", refused: `Not let in: ${text}` }[state] ?? text;
    if (statusText.textContent !== words) statusText.textContent = words;
    retry.hidden = state !== "lost" && state !== "refused";
    if (state === "gate") gateError.textContent = text;
    update();
    if (state === "gate") invite.focus();
  },
});

/** The agent's address, to sign for nobody else. */
async function info() {
  try {
    const about = await (await fetch("/info")).json();
    if (typeof about.name === "string") get("name").textContent = about.name;
    return typeof about.address === "string" ? about.address : null;
  } catch {
    return null;
  }
}

function say(text) {
  const asked = question();
  if (asked) return answer(asked, reply(asked, text), text);
  const frame = { type: "INPUT", prompt: text, input_id: crypto.randomUUID?.(), ...goesAlong.members() };
  if (!agent.send(frame)) return false;
  const queued = memory.running;
  memory.running = true;
  put({ kind: "user", text, queued, files: goesAlong.take() });
  update();
  follow(true);
  return true;
}

function answer(item, response, words) {
  const named = { ...response, request_id: item.id };
  if (!item.open || !agent.send(named)) return false;
  put(Object.assign(item, { open: false, answer: words, response: named }));
  update();
  follow(true);
  input.focus();
  return true;
}

function interrupt() {
  if (memory.running && agent.send({ type: "INTERRUPT" })) put({ kind: "notice", text: "Asked it to stop." });
}

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  if (send.disabled || !say(input.value)) return;
  input.value = "";
  update();
  input.focus();
});

const goesAlong = along(get("along"), (why) => put({ kind: "notice", text: why }));
attach.addEventListener("click", () => picker.click());
picker.addEventListener("change", async () => {
  await goesAlong.add([...picker.files]);
  picker.value = "";
  input.focus();
});
input.addEventListener("paste", (event) => goesAlong.add([...event.clipboardData.files]));
input.addEventListener("input", update);
input.addEventListener("keydown", (event) => {
  // Enter also ends the composition of a character.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  composer.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing) interrupt();
});
stop.addEventListener("click", interrupt);
mode.addEventListener("change", () => agent.send({ type: "mode_change", mode: mode.value }));

gate.addEventListener("submit", (event) => {
  event.preventDefault();
  if (invite.value.trim() === "") return;
  gateError.textContent = "";
  agent.onboard(invite.value.trim());
});

retry.addEventListener("click", () => agent.open());
fresh.addEventListener("click", () => {
  forget();
  showAll();
  agent.open();
  input.focus();
});
addEventListener("online", () => {
  if (!retry.hidden) agent.open();
});

showAll();
update();
