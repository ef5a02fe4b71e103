// What a conversation consists of: questions, and answers with their texts, tools, remarks and failures.

import { button, duration, make, show, timeOf } from "./dom.js";
import { Markdown, sourceOf } from "./markdown.js";

function article(className, name) {
  const element = make("article", className);
  element.append(make("h2", "unseen", name));
  return element;
}

/** What the user has said, and when. `remarks` are lines below it, such as the names of files. */
export function question(text, at, remarks = []) {
  const element = article("user", "You");
  const said = make("p", "text", text);
  said.dir = "auto";
  const foot = make("div", "foot");
  const edit = button("edit", "Edit");
  edit.setAttribute("aria-label", "Edit this message");
  foot.append(edit);
  if (at) foot.append(timeOf(at));
  element.append(said, ...remarks.map((remark) => make("p", "small", remark)), foot);
  return element;
}

/** The text of a question. */
export const questionOf = (element) => element.querySelector(".text").textContent;

/** The Markdown of an answer. */
export const answerOf = (element) => [...element.querySelectorAll(".markdown")].map(sourceOf).join("\n\n");

export const notice = (text) => make("p", "notice", text);

/** What went wrong, in words; what only helps to find the reason is folded. */
export function failure(text) {
  const element = make("div", "failure");
  const [words, detail] = inWords(text);
  element.append(make("p", "", words));
  if (detail !== "") {
    const folded = make("details");
    folded.append(make("summary", "", "Details"), make("pre", "", detail));
    element.append(folded);
  }
  return element;
}

/** Splits a message into what happened and the rest, which is what a provider or another program says. */
function inWords(text) {
  const [, said] = /^(?:(?:provider|agent) error|failed|broken off): (.*)$/s.exec(text) ?? [null, text];
  const end = said.search(/\n| \S+ says: |:? *[{[]"/);
  const words = end < 0 ? said : said.slice(0, end).trim();
  if (words.trim() === "") return ["The answer has failed.", text];
  return [words, end < 0 ? "" : said.slice(end).replace(/^[\s:]+/, "")];
}

/** A folded block with a name, and what it shows while it is folded. */
function folded(className, name) {
  const block = make("details", className);
  const summary = make("summary");
  const [preview, state] = [make("span", "preview"), make("span", "state")];
  summary.append(make("span", "name", name), preview, state);
  block.append(summary);
  return { block, preview, state };
}

const STATES = { running: "running", waits: "waits for you", done: "done", failed: "failed", ended: "no result" };

/** The call of a tool, folded. */
export class Tool {
  #parts = folded("tool", "");
  #since = performance.now();
  #isLive;
  #result = [];

  /** `isLive`: whether it is called now, so that it makes sense to count the seconds. Without an input, nothing is
   * known of its call. */
  constructor({ name, input, isLive = true }) {
    const { block, preview } = this.#parts;
    this.#isLive = isLive;
    block.querySelector(".name").textContent = name;
    preview.textContent = inBrief(input);
    if (input !== undefined) this.#part("Input", input, "input");
    this.state("running");
  }

  get element() {
    return this.#parts.block;
  }

  #part(title, value, className) {
    const parts = [make("h3", "", title), make("pre", className, show(value))];
    parts[1].tabIndex = 0;
    this.element.append(...parts);
    return parts;
  }

  state(state) {
    this.element.dataset.state = state;
    this.tick();
  }

  /** Shows how long it has taken so far. */
  tick() {
    const { state } = this.element.dataset;
    const ms = performance.now() - this.#since;
    const time = this.#isLive && state !== "ended" && state !== "waits" && ms >= 1000 ? ` ${duration(ms)}` : "";
    this.#parts.state.textContent = STATES[state] + time;
  }

  result(value, hasFailed) {
    for (const old of this.#result) old.remove();
    this.#result = this.#part(hasFailed ? "Error" : "Result", value, "result");
    this.state(hasFailed ? "failed" : "done");
  }
}

/** The first value of an input that says something in a line. */
function inBrief(input) {
  const values = typeof input === "object" && input !== null ? Object.values(input) : [input];
  const brief = values.find((value) => ["string", "number"].includes(typeof value) && value !== "");
  return String(brief ?? "").slice(0, 200);
}

/** What the model thinks before it answers, folded; its last line can be seen. */
export class Thought {
  #parts = folded("tool thought", "Thought");
  #text = make("pre");

  constructor() {
    this.#text.tabIndex = 0;
    this.element.append(this.#text);
  }

  get element() {
    return this.#parts.block;
  }

  set(text, isLive) {
    this.#text.textContent = text;
    this.#parts.preview.textContent = isLive ? text.trimEnd().split("\n").at(-1).slice(-200) : "";
  }
}

/** An answer, while it comes and after. */
export class Answer {
  element = article("agent", "Agent");
  #waiting = make("p", "waiting");
  #word = make("span", "", "Thinking");
  #time = make("span", "time");
  #since = performance.now();
  #timer = 0;
  #text = null;
  #tools = new Set();
  #foot = make("div", "foot");
  isFinished = false;
  #usage = make("p", "usage");

  constructor() {
    this.#waiting.append(make("span", "dot"), this.#word, this.#time);
    const copy = button("copy", "Copy");
    copy.setAttribute("aria-label", "Copy answer");
    const actions = make("div", "actions");
    actions.append(copy, button("again", "Retry"));
    this.#foot.append(actions, this.#usage);
  }

  /** Something is going on: `word` says what. */
  busy(word = "Thinking") {
    this.isFinished = false;
    this.element.setAttribute("aria-busy", "true");
    this.#foot.remove();
    if (this.#word.textContent !== word) this.#since = performance.now();
    this.#word.textContent = word;
    this.#tick();
    if (this.#timer !== 0) return;
    this.element.append(this.#waiting);
    this.#timer = setInterval(() => this.#tick(), 1000);
  }

  #tick() {
    const ms = performance.now() - this.#since;
    this.#time.textContent = ms >= 1000 ? duration(ms) : "";
    for (const tool of this.#tools) tool.tick();
  }

  /** Nothing goes on until the user has said something. */
  pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#waiting.remove();
  }

  get isEmpty() {
    return this.element.querySelector(".text, .tool, .notice, .failure, .ask") === null;
  }

  /** Puts something at the end. */
  put(element) {
    this.#text = null;
    const end = [this.#waiting, this.#foot].find((last) => last.parentNode === this.element);
    this.element.insertBefore(element, end ?? null);
  }

  /** More of the text; below what was put there since. */
  write(text) {
    if (this.#text === null) {
      const markdown = new Markdown();
      this.put(markdown.element);
      this.#text = markdown;
    }
    this.#text.append(text);
  }

  /** A tool that runs until it has a result or the answer ends. */
  run(tool) {
    this.#text?.finish();
    this.#tools.add(tool);
    this.put(tool.element);
  }

  ran(tool, value, hasFailed) {
    this.#tools.delete(tool);
    tool.result(value, hasFailed);
  }

  usage(input, output) {
    this.#usage.textContent = `${input} tokens in, ${output} out`;
  }

  /** When it was complete. */
  set at(at) {
    this.#foot.querySelector("time")?.remove();
    if (at) this.#foot.append(timeOf(at));
  }

  /** Nothing comes any more. */
  finish() {
    this.pause();
    this.isFinished = true;
    this.#text?.finish();
    this.#text = null;
    for (const tool of this.#tools) tool.state("ended");
    this.#tools.clear();
    this.element.setAttribute("aria-busy", "false");
    this.element.append(this.#foot);
    this.#foot.querySelector(".copy").hidden = answerOf(this.element) === "";
  }
}
