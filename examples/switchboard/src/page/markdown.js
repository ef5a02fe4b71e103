// Markdown that grows: the page's server renders it, and until it has, what is new is there as plain text. Blocks that
// are complete are rendered once; only the last one is asked for again.

import { make } from "./dom.js";
import { attach, morph, parse } from "./nodes.js";

/** The shortest time between two requests. */
const PACE_MS = 125;
/** The longest, and how long an answer may take. */
const MOST_MS = 1000;
const WAIT_MS = 10_000;
/** The first wait after a failure, and the most attempts. */
const AGAIN_MS = 500;
const ATTEMPTS = 6;
/** The longest text to render, the longest one while it grows, and the longest request, in UTF-16 units. */
const MAX_TEXT = 100_000;
const MAX_GROWING = 40_000;

let headers = () => ({});

/** Sets what requests need beside their text. */
export function authorize(more) {
  headers = more;
}

/** The texts that are to be rendered. */
const waiting = new Set();
let isBusy = false;

/** Ends the wait before the next request. */
let hurry = () => {};

const sleep = (ms) =>
  new Promise((then) => {
    hurry = then;
    setTimeout(then, ms);
  });

async function request(texts) {
  const response = await fetch("/markdown", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers() },
    body: JSON.stringify(texts),
    signal: AbortSignal.timeout(WAIT_MS),
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}

/** Some of the texts that wait, as much as one request carries. */
function batch() {
  const some = [];
  let size = 0;
  for (const text of waiting) {
    size += text.rest.length;
    if (some.length > 0 && size > MAX_TEXT) break;
    some.push(text);
    waiting.delete(text);
  }
  return some;
}

async function renderAll() {
  if (isBusy) return;
  isBusy = true;
  let failures = 0;
  while (waiting.size > 0) {
    const texts = batch();
    const sent = texts.map((text) => ({ text, start: text.start, rest: text.rest }));
    const before = performance.now();
    let pause = PACE_MS;
    try {
      const answers = await request(sent.map(({ rest }) => rest));
      failures = 0;
      sent.forEach(({ text, start, rest }, index) => text.rendered(start, rest, answers[index]));
      // What takes long is asked for less often.
      pause = Math.min(Math.max(PACE_MS, 2 * (performance.now() - before)), MOST_MS);
    } catch {
      failures += 1;
      if (failures === ATTEMPTS) break;
      for (const text of texts) waiting.add(text);
      pause = AGAIN_MS * 2 ** failures;
    }
    await sleep(pause);
  }
  isBusy = false;
}

const sources = new WeakMap();

/** The Markdown of an element that a `Markdown` shows. */
export const sourceOf = (element) => sources.get(element)?.source ?? "";

/** A text and its element. */
export class Markdown {
  element = make("div", "text markdown");
  source = "";
  /** Where the part begins that is not yet complete, and its first element. */
  start = 0;
  #first = 0;
  /** The level of the last heading before it. The page has two of its own. */
  #level = 2;
  /** So much of the text is rendered, and so much is shown rendered. */
  #upTo = 0;
  #shown = 0;
  #tail = make("span", "tail");
  #frame = 0;
  #isFinal = false;

  constructor(text = "") {
    sources.set(this.element, this);
    this.element.append(this.#tail);
    if (text !== "") this.finish(text);
  }

  /** What is not yet complete. */
  get rest() {
    return this.source.slice(this.start);
  }

  /** More of the text. */
  append(text) {
    this.source += text;
    this.#isFinal = false;
    this.#draw();
    this.#want();
  }

  /** The whole text, as far as it is known. */
  set(text) {
    if (!text.startsWith(this.source)) {
      this.#restart();
      this.source = "";
      this.#shown = 0;
      this.element.replaceChildren(this.#tail);
    }
    if (text !== this.source) this.append(text.slice(this.source.length));
  }

  /** Nothing comes any more. */
  finish(text = this.source) {
    this.set(text);
    this.#isFinal = true;
    cancelAnimationFrame(this.#frame);
    this.#drawNow();
    // A link may have been defined below the place where it is used.
    if (this.start > 0 && /^ {0,3}\[[^\]]+\]:/m.test(this.source)) this.#restart();
    if (this.#upTo === this.source.length) this.#tail.remove();
    this.#want();
    hurry();
  }

  /** From the beginning. What is there stays until it is replaced. */
  #restart() {
    this.start = 0;
    this.#first = 0;
    this.#level = 2;
    this.#upTo = -1;
  }

  #want() {
    const length = this.source.length - this.start;
    if (length > (this.#isFinal ? MAX_TEXT : MAX_GROWING)) return;
    if (this.#upTo === this.source.length) return;
    waiting.add(this);
    renderAll();
  }

  /** Once a frame, however many pieces there are. */
  #draw() {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow() {
    this.#frame = 0;
    const tail = this.source.slice(this.#shown);
    this.#tail.textContent = tail.trim() === "" ? "" : tail;
  }

  /** Shows what the server has made of the text from `start` on. */
  rendered(start, rest, { closed, done, open }) {
    if (start !== this.start || !this.rest.startsWith(rest)) return this.#want();
    cancelAnimationFrame(this.#frame);
    this.#tail.remove();
    const complete = parse(done, this.#level);
    const growing = parse(open, complete.level);
    morph(this.element, this.#first, [...complete.nodes, ...growing.nodes]);
    this.start += closed;
    this.#first += complete.nodes.length;
    this.#level = complete.level;
    this.#upTo = start + rest.length;
    // Markdown leaves out blanks at the end, but not between words.
    this.#shown = start + rest.trimEnd().length;
    this.#drawNow();
    if (this.#upTo < this.source.length || !this.#isFinal) attach(this.element, this.#tail);
    if (this.#upTo < this.source.length) this.#want();
  }
}
