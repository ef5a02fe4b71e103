// The gateway's chat page. Each chat is a session of its own and has one question at a time; all of them share one
// WebSocket.

import { Answer, Tool, failure, notice, question } from "./page/answer.js";
import { chats } from "./page/chats.js";
import * as composer from "./page/composer.js";
import { get, isObject, show } from "./page/dom.js";
import { line } from "./line.js";
import { Markdown, authorize } from "./page/markdown.js";
import * as view from "./page/view.js";

/** How long an answer may be silent. */
const IDLE_MS = 60000;
/** How long the past of a conversation may take. */
const PAST_MS = 5000;

const STOPPED = () => notice("Stopped.");

const [auth, log, hint, waits] = ["auth", "log", "hint", "waits"].map(get);

/** The text of an error: a string, or an object with a message. `null` is no error. */
function errorText(error) {
  if (error === undefined || error === null) return null;
  if (isObject(error) && typeof error.message === "string") return error.message;
  return show(error) || "unknown error";
}

// --- chats --------------------------------------------------------------------------------------

/** What is known of each chat: its elements while another one is shown, the question that is being answered, and
 * whether what was said before this page was loaded is there, as far as it can be had. */
const known = new Map();

function conversation(id) {
  if (!known.has(id)) known.set(id, { id, elements: [], turn: null, isPastShown: false });
  return known.get(id);
}

const list = chats("gateway", {
  open(id) {
    chat.elements = [...log.children];
    chat = conversation(id);
    view.replaceAll(chat.elements);
    queued = false;
    showPast();
    update();
    composer.input.focus();
  },
  gone(id) {
    end(conversation(id));
    known.delete(id);
  },
});
let chat = conversation(list.current);

/** Adds to a chat, which may not be the one that is shown. */
function add(to, ...elements) {
  if (to === chat) view.add(...elements);
  else to.elements.push(...elements);
}

async function showPast() {
  const ours = chat;
  if (ours.isPastShown || !gateway.isReady) return;
  let turns = [];
  try {
    const signal = AbortSignal.timeout(PAST_MS);
    const response = await fetch(`/history/${ours.id}`, { headers: gateway.headers(), signal });
    if (response.ok) turns = await response.json();
  } catch {
    // The conversation goes on without.
  }
  if (ours.isPastShown) return;
  ours.isPastShown = true;
  const past = (Array.isArray(turns) ? turns.filter(isObject) : []).flatMap(({ user, assistant, mark }) => {
    const answer = new Answer();
    const said = show(assistant);
    if (said.trim() !== "" || typeof mark !== "string") answer.put(new Markdown(said).element);
    if (mark === "stopped") answer.put(STOPPED());
    else if (typeof mark === "string") answer.put(failure(mark));
    answer.finish();
    return [question(show(user)), answer.element];
  });
  if (ours === chat) view.replaceAll([...past, ...log.children]);
  else ours.elements.unshift(...past);
  sendQueued();
}

// --- one question and its answer ----------------------------------------------------------------

/** The questions that are being answered, by the ids of their requests. */
const turns = new Map();
let count = 0;
const prefix = `web-${Date.now().toString(36)}`;

function ask(content) {
  count += 1;
  const turn = { id: `${prefix}-${count}`, chat, answer: new Answer(), tools: new Map(), input: 0, output: 0, timer: 0 };
  turns.set(turn.id, turn);
  chat.turn = turn;
  turn.answer.busy();
  add(chat, question(content), turn.answer.element);
  list.said(content);
  const params = { channel: "web", account: "browser", peer: chat.id, content };
  gateway.send({ id: turn.id, method: "chat.send", params });
  awaitMore(turn);
  update();
  view.toEnd();
}

function awaitMore(turn) {
  clearTimeout(turn.timer);
  turn.timer = setTimeout(() => {
    fail(turn, `The gateway was silent for ${IDLE_MS / 1000} s.`);
    gateway.connect();
  }, IDLE_MS);
}

function heard(frame) {
  const turn = turns.get(frame.id);
  if (turn === undefined) return;
  awaitMore(turn);
  const error = errorText(frame.error);
  if (error !== null) fail(turn, error);
  else if (frame.event === "text") addText(turn, frame.data);
  else if (frame.event === "tool_use") addTool(turn, frame.data);
  else if (frame.event === "tool_result") addResult(turn, frame.data);
  else if (frame.event === "usage") addUsage(turn, frame.data);
  else if (frame.event === "error") fail(turn, errorText(frame.data) ?? "unknown error");
  else if (frame.event === "done") end(turn.chat);
}

function addText({ answer }, data) {
  if (typeof data !== "string" || data === "") return;
  answer.busy("Writing");
  answer.write(data);
}

function addTool({ answer, tools }, data) {
  if (!isObject(data)) return;
  const name = show(data.name) || "tool";
  const tool = new Tool({ name, input: data.input ?? {} });
  answer.run(tool);
  answer.busy(`Running ${name}`);
  if (typeof data.id === "string") tools.set(data.id, tool);
}

function addResult({ answer, tools }, data) {
  if (!isObject(data)) return;
  const called = tools.get(data.tool_use_id);
  const tool = called ?? new Tool({ name: "tool", isLive: false });
  if (called === undefined) answer.run(tool);
  tools.delete(data.tool_use_id);
  answer.ran(tool, data.content, data.is_error === true);
  if (tools.size === 0) answer.busy();
}

/** There is one count for each time that the model was called. */
function addUsage(turn, data) {
  if (!isObject(data)) return;
  turn.input += Number.isFinite(data.input_tokens) ? data.input_tokens : 0;
  turn.output += Number.isFinite(data.output_tokens) ? data.output_tokens : 0;
  turn.answer.usage(turn.input, turn.output);
}

/** Ends the answer of a chat, if there is one, with a remark or a failure at its end. */
function end(ours, last) {
  const { turn } = ours;
  if (turn === null) return;
  clearTimeout(turn.timer);
  turns.delete(turn.id);
  ours.turn = null;
  if (last !== undefined) turn.answer.put(last);
  else if (turn.answer.isEmpty) turn.answer.put(notice("The answer is empty."));
  turn.answer.finish();
  if (ours !== chat) return;
  view.announceAnswer(turn.answer.element);
  // Behind an answer that failed, the next message may no longer be what the user wants to say.
  if (last !== undefined) queued = false;
  sendQueued();
}

const fail = (turn, why) => end(turn.chat, failure(why));

/** There is no message that stops an answer: the gateway stops when its client leaves. */
function stop() {
  if (chat.turn === null) return;
  for (const { chat: ours } of turns.values()) end(ours, STOPPED());
  gateway.connect();
  composer.input.focus();
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
  composer.setRunning(chat.turn !== null);
  composer.send.disabled = !gateway.isReady || !composer.hasText();
  hint.hidden = !auth.hidden || log.childElementCount > 0;
}

function submit() {
  const content = composer.input.value;
  queued = gateway.isReady && composer.hasText() && (chat.turn !== null || !chat.isPastShown);
  if (!gateway.isReady || queued || !composer.hasText()) return update();
  composer.clear();
  ask(content);
}

const gateway = line({
  heard,
  ready: showPast,
  ended(why) {
    for (const turn of turns.values()) fail(turn, why);
  },
  changed: update,
});
authorize(gateway.headers);
composer.start({
  submit,
  stop,
  changed() {
    queued = false;
    update();
  },
});
view.onAgain((content) => {
  if (gateway.isReady && chat.turn === null) ask(content);
});
gateway.connect();
