// What the conversation looks like: questions, and below each an answer with the items that belong to it.

import { Answer, Thought, Tool, failure, notice, question } from "./page/answer.js";
import { asking } from "./ask.js";
import { get } from "./page/dom.js";
import { Markdown } from "./page/markdown.js";
import * as view from "./page/view.js";
import { memory, save } from "./memory.js";

const QUEUED = "The agent reads this at its next step.";

const log = get("log");
/** What shows each item: its element, and how it follows a change. */
let shown = new Map();
/** The answer at the end. */
let last = null;
let answer = () => {};

/** Sets what is called with the user's choice for a question. */
export function onAnswer(then) {
  answer = then;
}

/** Puts an item at the end, or shows a known one anew. */
export function put(item) {
  if (!memory.items.includes(item)) {
    item.at ??= Date.now();
    memory.items.push(item);
  }
  const known = shown.get(item);
  if (known) known.update();
  else show(item);
  // The host tells again what is not whole.
  if (!item.live) save();
}

/** The element that shows an item. */
export const elementOf = (item) => shown.get(item)?.element;

/** Shows another conversation. */
export function showAll() {
  shown = new Map();
  last = null;
  view.replaceAll([]);
  memory.items.forEach(show);
  if (!memory.running) last?.finish();
  view.toEnd();
}

function show(item) {
  const part = parts[item.kind]?.(item) ?? replaced(() => notice(item.text));
  shown.set(item, part);
  if (item.kind === "user") {
    last?.finish();
    last = null;
    view.add(part.element);
  } else if (item.kind !== "usage") {
    current().put(part.element);
    if (item.kind === "agent" && item.at) current().at = item.at;
  }
  view.stay();
}

/** The answer that goes on. */
function current() {
  if (last === null) {
    last = new Answer();
    view.add(last.element);
  }
  return last;
}

/** An item that is made anew when it changes. */
function replaced(make) {
  const part = {
    element: make(),
    update() {
      const fresh = make();
      part.element.replaceWith(fresh);
      part.element = fresh;
    },
  };
  return part;
}

/** How items are shown. */
const parts = {
  user: (item) =>
    replaced(() => {
      const element = question(item.text, item.at, [...(item.files ?? []), ...(item.queued ? [QUEUED] : [])]);
      element.classList.toggle("queued", Boolean(item.queued));
      return element;
    }),
  agent(item) {
    const markdown = new Markdown();
    const update = () => (item.live ? markdown.set(item.text) : markdown.finish(item.text));
    update();
    return { element: markdown.element, update };
  },
  thought(item) {
    const thought = new Thought();
    const update = () => thought.set(item.text, item.live);
    update();
    return { element: thought.element, update };
  },
  tool(item) {
    const tool = new Tool({ name: item.name, input: item.args ?? {}, isLive: ["running", "waits"].includes(item.state) });
    const update = () => {
      if (item.result === undefined || ["running", "waits"].includes(item.state)) tool.state(item.state);
      else tool.result(item.result, item.state === "failed");
    };
    update();
    return { element: tool.element, update, tick: () => item.state === "running" && tool.tick() };
  },
  ask: (item) => replaced(() => asking(item, answer)),
  failure: (item) => replaced(() => failure(item.text)),
  usage(item) {
    const of = current();
    const update = () => of.usage(item.input, item.output);
    update();
    return { update };
  },
};

/** Shows what goes on: that of the last item, if it is not over. */
export function showProgress() {
  if (!memory.running) {
    if (last === null || last.isFinished) return;
    last.finish();
    view.announceAnswer(last.element);
    return;
  }
  const item = memory.items.at(-1);
  if (item?.kind === "ask" && item.open) return last.pause();
  const running = memory.items.findLast(({ kind, state }) => kind === "tool" && state === "running");
  const word = running ? `Running ${running.name}` : item?.kind === "agent" && item.live ? "Writing" : "Thinking";
  current().busy(word);
}

setInterval(() => {
  if (!memory.running) return;
  for (const { tick } of shown.values()) tick?.();
}, 1000);
