// The agent's chat page: CONNECT starts a session or resumes it, INPUT says something, and events tell what the agent
// does. Each chat is a session of its own.

import { along } from "./along.js";
import { reply } from "./ask.js";
import { chats } from "./page/chats.js";
import * as composer from "./page/composer.js";
import { address, browser, get, randomId, setText, show } from "./page/dom.js";
import { onEdit, onExport } from "./page/edit.js";
import { REMINDER, heard, onRepeat, openQuestion, spoken } from "./events.js";
import { elementOf, onAnswer, put, showAll, showProgress } from "./items.js";
import { line } from "./line.js";
import { create, forget, has, load, memory, reload, restore, save, write } from "./memory.js";
import { questionOf } from "./page/answer.js";
import * as view from "./page/view.js";

const [log, hint, retry, form, mode, attach, picker] =
  ["log", "hint", "retry", "composer", "mode", "attach", "files"].map(get);
const [gate, invite, gateError] = ["gate", "invite", "gate-error"].map(get);
const { input, send } = composer;

const draftOf = (id) => `agent-draft-${id}`;

/** What is to be said as soon as there is a conversation for it: once more, and in a chat that begins. */
let again = null;
let next = null;

function update() {
  const isGated = view.stateNow() === "gate";
  composer.setRunning(memory.running, true);
  send.disabled = view.stateNow() !== "ready" || !composer.hasText();
  input.placeholder = openQuestion() ? "Answer" : memory.running ? "Say more" : "Message";
  gate.hidden = !isGated;
  form.hidden = isGated;
  hint.hidden = isGated || log.childElementCount > 0;
  setText(get("greeting"), (next === null && list.absence) || "What should the agent do?");
}

// --- the line -----------------------------------------------------------------------------------

const list = chats("agent", {
  open(id) {
    load(id);
    composer.draft(draftOf(id));
    again = null;
    // The host says so if it is another one.
    mode.value = "safe";
    showAll();
    update();
    agent.open();
    input.focus();
  },
  async gone(id) {
    if (id === list.current) agent.leave();
    const kept = forget(id);
    try {
      const sessions = new Set([kept?.sessionId, kept?.replaced, ...(kept?.earlier ?? [])]);
      for (const session of sessions) if (session) await agent.remove(session);
    } catch (error) {
      restore(id, kept);
      if (id === list.current) agent.open();
      return error.message;
    }
    browser.write(draftOf(id), null);
  },
  find: async (words, ids) => ids.filter((id) => has(id, words)),
});
load(list.current);
composer.draft(draftOf(list.current));

const agent = line({
  heard(frame) {
    heard(frame);
    update();
    if (frame.type !== "CONNECTED") return;
    if (again !== null) say(again.text, again);
    again = null;
    if (next?.id === list.current) {
      say(next.text);
      next = null;
    }
    if (memory.replaced !== null) replace();
  },
  deleted() {
    reload();
    showAll();
  },
  info,
  state(state, text) {
    const words = { gate: "Waiting for an invite code", refused: `The agent refuses this page: ${text}` }[state] ?? text;
    view.setStatus(state === "refused" ? "lost" : state, words);
    if (state === "gate") gateError.textContent = text;
    update();
    if (state === "gate") invite.focus();
  },
});

/** The agent's address, to sign for nobody else. */
async function info() {
  try {
    const about = await (await fetch(address("info"))).json();
    if (typeof about.name === "string") get("name").textContent = about.name;
    setText(get("details"), [about.model, about.folder].filter((it) => typeof it === "string").map((it) => ` · ${it}`).join(""));
    return typeof about.address === "string" ? about.address : null;
  } catch {
    return null;
  }
}

// --- what the user does -------------------------------------------------------------------------

/** Whether it was sent. `before`: what is said again, and shown already. */
function say(text, before = null) {
  const asked = openQuestion();
  if (asked) return answer(asked, reply(asked, text), text);
  const said = before?.members ?? { prompt: text, ...goesAlong.members() };
  const frame = { type: "INPUT", input_id: crypto.randomUUID?.(), ...said };
  if (!agent.send(frame)) return false;
  const queued = memory.running;
  memory.running = true;
  if (before === null) put({ kind: "user", text, queued, files: goesAlong.take() });
  list.said(text);
  showProgress();
  update();
  view.toEnd();
  return true;
}

function answer(item, response, words) {
  const named = { ...response, request_id: item.id };
  if (!item.open || !agent.send(named)) return false;
  put(Object.assign(item, { open: false, answer: words, response: named }));
  for (const tool of memory.items) if (tool.state === "waits") put(Object.assign(tool, { state: "running" }));
  showProgress();
  update();
  view.toEnd();
  input.focus();
  return true;
}

function interrupt() {
  if (memory.running && agent.send({ type: "INTERRUPT" })) put({ kind: "notice", text: "You asked the agent to stop." });
}

onAnswer(answer);
onRepeat((response) => agent.send(response));
composer.start({
  submit() {
    if (!send.disabled && say(input.value.trimEnd())) composer.clear();
    update();
  },
  stop: interrupt,
  changed: update,
});
/** Deletes the session whose last answer is not wanted any more: its place was taken. */
async function replace() {
  const { replaced } = memory;
  memory.replaced = null;
  // Other tabs find it.
  write();
  try {
    await agent.remove(replaced, memory.earlier.includes(replaced));
  } catch (error) {
    memory.earlier.push(replaced);
    put({ kind: "notice", text: `The replaced answer is still stored. ${error.message}` });
    showProgress();
  }
}

/** What the session has of the question at a place among the items: where it is, its parts and its whole text. */
function stored(at) {
  const messages = memory.session?.messages ?? [];
  const after = memory.items.slice(at + 1).filter((item) => item.kind === "user").length;
  const all = messages.flatMap((message, index) => (message.role === "user" ? [index] : []));
  const asked = all.at(-1 - after) ?? -1;
  const parts = [messages[asked]?.content ?? []].flat();
  const whole = show(parts[0]?.text ?? parts[0] ?? "");
  return { messages, asked, parts, whole, isThere: spoken(whole) === memory.items[at].text };
}

/** Says something else in the place of a question, in a chat of its own that begins as this one. */
function change(asked, text) {
  const at = memory.items.findLastIndex((item) => item.kind === "user" && elementOf(item) === asked);
  const { messages, asked: place, isThere } = stored(at);
  const before = memory.items.slice(0, at);
  const isFirst = !before.some((item) => item.kind === "user");
  if (!isFirst && !isThere) return "The agent has not kept what was said before this message.";
  const { session_id, trace, ...rest } = memory.session ?? {};
  const session = isFirst ? null : { ...rest, messages: messages.slice(0, place) };
  const [id, title] = [randomId(), isFirst ? text : list.title];
  create(id, { session, items: before });
  list.select(id, title);
  next = { id, text };
}

/** Says the last thing again, in a conversation as it was before. */
function sayAgain(text) {
  const at = memory.items.findLastIndex((item) => item.kind === "user");
  const { messages, asked, parts, whole, isThere } = stored(at);
  // Without a copy of what was said before, the host's is all there is, and goes on.
  if (memory.session === null && memory.items.slice(0, at).some((item) => item.kind === "user")) {
    put({ kind: "notice", text: "This conversation is too long to replace its last answer, so the agent answers once more." });
    return say(text);
  }
  const { session_id, trace, ...rest } = memory.session ?? {};
  const session = memory.session && { ...rest, messages: isThere ? messages.slice(0, asked) : messages };
  // It gets another id.
  const { id, ...asking } = memory.items[at];
  const items = [...memory.items.slice(0, at), asking];
  // What went along with it goes along again.
  const prompt = isThere ? whole : (asking.sent ?? text);
  const images = isThere ? parts.flatMap(({ image_url: image }) => image?.url ?? []) : [];
  const lost = isThere ? [] : (asking.files ?? []).filter((name) => !prompt.includes(name));
  if (lost.length > 0) {
    items.push({ kind: "notice", text: `Not sent again: ${lost.join(", ")}. Attach it once more if it matters.` });
  }
  const keepsFiles = show([prompt, messages]).includes(REMINDER.trim());
  const { sessionId: replaced } = memory;
  const earlier = keepsFiles ? [...memory.earlier, replaced] : memory.earlier;
  Object.assign(memory, { sessionId: null, replaced, earlier, lastId: null, session, items });
  save();
  showAll();
  again = { text, members: { prompt, ...(images.length > 0 && { images }) } };
  agent.open();
}

view.onAgain((asked) => {
  if (!memory.running && view.stateNow() === "ready") sayAgain(questionOf(asked));
});

onEdit(async (asked, text) =>
  view.stateNow() === "ready" ? change(asked, text) : "Not sent: there is no connection.");
onExport(() => list.title);

const goesAlong = along(get("along"), (why) => {
  put({ kind: "notice", text: why });
  showProgress();
});
attach.addEventListener("click", () => picker.click());
picker.addEventListener("change", async () => {
  await goesAlong.add([...picker.files]);
  picker.value = "";
  input.focus();
});
input.addEventListener("paste", (event) => goesAlong.add([...event.clipboardData.files]));
mode.addEventListener("change", () => agent.send({ type: "mode_change", mode: mode.value }));

gate.addEventListener("submit", (event) => {
  event.preventDefault();
  if (invite.value.trim() === "") return;
  gateError.textContent = "";
  agent.onboard(invite.value.trim());
});

retry.addEventListener("click", () => agent.open());
addEventListener("online", () => {
  if (!retry.hidden) agent.open();
});

showAll();
showProgress();
update();
