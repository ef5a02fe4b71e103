// The gateway's chat page. Each chat is a session of its own, with one question at a time. The gateway answers it also
// while no page looks on, and all pages of a chat see the same.

import { Answer, Tool, answerOf, failure, notice, question, questionOf } from "./page/answer.js";
import { chats } from "./page/chats.js";
import * as composer from "./page/composer.js";
import { browser, get, isObject, make, randomId, setText, show } from "./page/dom.js";
import { onEdit, onExport } from "./page/edit.js";
import { line, onToken, request } from "./line.js";
import { Markdown } from "./page/markdown.js";
import { memory } from "./memory.js";
import * as view from "./page/view.js";

const [auth, log, hint, waits, retry, models] = ["auth", "log", "hint", "waits", "retry", "models"].map(get);
const draftOf = (id) => `gateway-draft-${id}`;
/** What there was of an answer when the line to it broke. */
const halfOf = (id) => `gateway-half-${id}`;
const MODEL_KEY = "gateway-model";

// --- chats --------------------------------------------------------------------------------------

/** The chats that this page has shown: their turns, and the turn that is being answered. */
const known = new Map();

function conversation(id) {
  if (known.has(id)) return known.get(id);
  const ours = { id, turns: [], running: null, isReady: false, status: ["connecting", "Connecting"] };
  ours.line = line(id, {
    heard: (event) => heard(ours, event),
    state(...status) {
      ours.status = status;
      ours.isReady = status[0] === "ready";
      if (status[0] === "lost") keepHalf(ours);
      if (ours.isReady) offerModels();
      if (ours === chat) showStatus();
    },
  });
  known.set(id, ours);
  return ours;
}

function showStatus() {
  view.setStatus(...chat.status);
  update();
}

const elementsOf = ({ turns }) => turns.flatMap((turn) => [turn.question, turn.answer.element]);

function draw(ours) {
  if (ours === chat) view.replaceAll(elementsOf(ours));
}

/** Browsers open few connections to a server: only what is looked at, and what is being answered, has one. */
function rest(ours) {
  if (ours.running === null && (ours !== chat || document.hidden)) ours.line.leave();
}

function showChat() {
  composer.draft(draftOf(chat.id));
  queued = false;
  draw(chat);
  view.toEnd();
  if (chat.running === null || !chat.isReady) chat.line.open();
  showStatus();
  drawMemory();
}

const list = chats("gateway", {
  open(id) {
    const before = chat;
    chat = conversation(id);
    rest(before);
    showChat();
    composer.input.focus();
  },
  async gone(id) {
    try {
      await request("DELETE", `chats/${id}`);
    } catch (error) {
      return error.message;
    }
    known.get(id)?.line.leave();
    known.delete(id);
    for (const kept of [draftOf(id), halfOf(id)]) browser.write(kept, null);
  },
  find: async (words, ids) => (await request("POST", "search", { words, chats: ids })).json(),
});

// --- models -------------------------------------------------------------------------------------

let configured = null;

/** Names the model, and lets the user choose among those that the provider lists. */
async function offerModels() {
  if (configured !== null) return;
  configured = "";
  try {
    const about = await (await request("GET", "models")).json();
    configured = show(about.model);
    const names = new Set([configured, ...about.models.filter((name) => typeof name === "string").sort()]);
    models.replaceChildren(...[...names].map((name) => make("option", "", name)));
    const kept = browser.read(MODEL_KEY);
    models.value = names.has(kept) ? kept : configured;
    get("modes").hidden = names.size < 2;
    showModel();
  } catch {
    // The next connection asks again.
    configured = null;
  }
}

const showModel = () => setText(get("details"), ` · ${models.value}`);

models.addEventListener("change", () => {
  browser.write(MODEL_KEY, models.value === configured ? null : models.value);
  showModel();
});

/** The model that is to answer, if it is another than the usual one. */
const wanted = () => (models.value && models.value !== configured ? { model: models.value } : {});

// --- turns --------------------------------------------------------------------------------------

const STOPPED = () => notice("Stopped.");

function newTurn(id, content, asked) {
  return { id, content, question: question(content, asked), ...unanswered() };
}

/** `isLocal`: whether the gateway has not said yet that it knows of it. */
const unanswered = () => ({ answer: new Answer(), tools: new Map(), input: 0, output: 0, isDone: false, isLocal: false });

/** A turn as the gateway remembers it. `half`: what this browser has seen of its answer. */
function remembered({ id, user, assistant, asked, ...end }, half) {
  const turn = newTurn(id ?? randomId(), show(user), inMs(asked));
  const said = show(assistant);
  const text = half?.id === id && said.trim() === "" ? half.text : said;
  if (text.trim() !== "" || typeof end.mark !== "string") turn.answer.put(new Markdown(text).element);
  return complete(turn, end);
}

/** Ends a turn as the gateway remembers its end. */
function complete(turn, { mark, at, usage }) {
  if (mark === "stopped") turn.answer.put(STOPPED());
  else if (typeof mark === "string") turn.answer.put(failure(mark));
  if (Array.isArray(usage)) turn.answer.usage(...usage);
  turn.answer.at = inMs(at);
  turn.answer.finish();
  turn.isDone = true;
  return turn;
}

const inMs = (seconds) => (Number.isFinite(seconds) ? 1000 * seconds : undefined);

const withoutBlanks = (text) => text.replace(/\s+/g, "");

/** Keeps in the browser what there is of an answer, in case that the gateway has ended. */
function keepHalf({ id, running }) {
  const text = running === null ? "" : answerOf(running.answer.element);
  if (text !== "") browser.write(halfOf(id), { id: running.id, text });
}

/** Shows what was said before. Turns that have not changed stay as they are. */
function showPast(ours, past) {
  const old = new Map(ours.turns.map((turn) => [turn.id, turn]));
  const half = browser.read(halfOf(ours.id));
  const stored = past.filter(isObject).map((it) => {
    const turn = old.get(it.id);
    old.delete(it.id);
    const [seen, said] = [turn ? answerOf(turn.answer.element) : "", show(it.assistant)].map(withoutBlanks);
    // The gateway has ended: there is no more of it than what was seen.
    if (turn?.isDone === false && typeof it.mark === "string" && seen.startsWith(said)) return complete(turn, it);
    const isSame = turn?.isDone && (seen === said || (said === "" && typeof it.mark === "string"));
    return isSame ? turn : remembered(it, half);
  });
  const local = [...old.values()].filter((turn) => turn.isLocal);
  ours.running = local.find((turn) => !turn.isDone) ?? null;
  ours.turns = [...stored, ...local];
  if (ours === chat && stored.length > 0) list.has(stored[0].content);
  draw(ours);
  if (ours === chat) update();
}

/** A question is being answered: one of this page, one of another, or one that is asked again. */
function begin(ours, id, content, at = Date.now()) {
  let turn = ours.turns.find((turn) => turn.id === id);
  if (turn === undefined) {
    turn = newTurn(id, content, at);
    ours.turns.push(turn);
    if (ours === chat) view.add(turn.question, turn.answer.element);
  } else if (turn.isDone) {
    const before = turn.answer.element;
    Object.assign(turn, unanswered());
    before.replaceWith(turn.answer.element);
  }
  turn.answer.busy();
  ours.running = turn;
  return turn;
}

async function ask(content, id = randomId()) {
  const ours = chat;
  const turn = begin(ours, id, content);
  turn.isLocal = true;
  list.said(content);
  update();
  view.toEnd();
  try {
    await request("POST", `chats/${ours.id}`, { id, content, ...wanted() });
  } catch (error) {
    if (turn.isLocal) end(ours, failure(`Not sent. ${error.message}`));
  }
}

function heard(ours, { event, data }) {
  if (event === "past" && Array.isArray(data)) {
    showPast(ours, data);
    sendQueued();
  } else if (event === "asked" && isObject(data)) {
    begin(ours, data.id, show(data.content), inMs(data.at)).isLocal = false;
    update();
  } else if (ours.running !== null && Object.hasOwn(EVENTS, event)) {
    EVENTS[event](ours.running, data, ours);
  }
}

const EVENTS = {
  text({ answer }, data) {
    if (typeof data !== "string" || data === "") return;
    answer.busy("Writing");
    answer.write(data);
  },
  tool_use({ answer, tools }, data) {
    if (!isObject(data)) return;
    const name = show(data.name) || "tool";
    const tool = new Tool({ name, input: data.input ?? {} });
    answer.run(tool);
    answer.busy(`Running ${name}`);
    if (typeof data.id === "string") tools.set(data.id, tool);
  },
  tool_result({ answer, tools }, data) {
    if (!isObject(data)) return;
    const called = tools.get(data.tool_use_id);
    const tool = called ?? new Tool({ name: "tool", isLive: false });
    if (called === undefined) answer.run(tool);
    tools.delete(data.tool_use_id);
    answer.ran(tool, data.content, data.is_error === true);
    if (tools.size === 0) answer.busy();
  },
  /** There is one count for each time that the model was called. */
  usage(turn, data) {
    if (!isObject(data)) return;
    turn.input += Number.isFinite(data.input_tokens) ? data.input_tokens : 0;
    turn.output += Number.isFinite(data.output_tokens) ? data.output_tokens : 0;
    turn.answer.usage(turn.input, turn.output);
  },
  error: (_, data, ours) => end(ours, failure(show(data) || "unknown error")),
  stopped: (_, data, ours) => end(ours, STOPPED()),
  done: (_, data, ours) => end(ours),
};

/** Ends the answer of a chat, with a remark or a failure at its end. */
function end(ours, last) {
  const turn = ours.running;
  ours.running = null;
  turn.isDone = true;
  if (last !== undefined) turn.answer.put(last);
  else if (turn.answer.isEmpty) turn.answer.put(notice("The answer is empty."));
  turn.answer.at = Date.now();
  turn.answer.finish();
  rest(ours);
  if (ours !== chat) return;
  view.announceAnswer(turn.answer.element);
  // Behind an answer that failed, the next message may no longer be what the user wants to say.
  if (last !== undefined) queued = false;
  sendQueued();
}

async function stop() {
  const ours = chat;
  if (ours.running === null) return;
  ours.running.answer.busy("Stopping");
  composer.input.focus();
  try {
    await request("DELETE", `chats/${ours.id}/answer`);
  } catch (error) {
    ours.running?.answer.put(notice(`Not stopped. ${error.message}`));
  }
}

// --- what the user does -------------------------------------------------------------------------

/** Whether the message in the field is sent as soon as the answer is complete. */
let queued = false;

function sendQueued() {
  if (queued) submit();
  else update();
}

function update() {
  waits.hidden = !queued;
  composer.setRunning(chat.running !== null);
  composer.send.disabled = !chat.isReady || !composer.hasText();
  hint.hidden = !auth.hidden || log.childElementCount > 0;
  setText(get("greeting"), (chat.isReady && list.absence) || "What would you like to know?");
}

function submit() {
  const content = composer.input.value.trimEnd();
  queued = chat.isReady && composer.hasText() && chat.running !== null;
  if (!chat.isReady || queued || !composer.hasText()) return update();
  composer.clear();
  ask(content);
}

let chat = conversation(list.current);
const drawMemory = memory(() => chat.id);
composer.start({
  submit,
  stop,
  changed() {
    queued = false;
    update();
  },
});
view.onAgain((asked) => {
  const turn = chat.turns.find((it) => it.question === asked);
  if (chat.isReady && chat.running === null) ask(questionOf(asked), turn.id);
});
onEdit(async (asked, content) => {
  const { id: from, turns } = chat;
  const turn = turns.find((it) => it.question === asked);
  const [to, title] = [randomId(), turn === turns[0] ? content : list.title];
  try {
    const place = { chat: from, turn: turn.id };
    await request("POST", `chats/${to}`, { id: randomId(), content, from: place, ...wanted() });
  } catch (error) {
    return `Not sent. ${error.message}`;
  }
  list.select(to, title);
});
onExport(() => list.title);
onToken(() => chat.line.open());
retry.addEventListener("click", () => chat.line.open());
addEventListener("online", () => {
  if (view.stateNow() === "lost") chat.line.open();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) rest(chat);
  else if (chat.running === null && chat.status[0] === "ready") chat.line.open();
});
showChat();
