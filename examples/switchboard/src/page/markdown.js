// Markdown that grows. Blocks that are complete are rendered once; the last one is rendered again as it grows, with its
// marks completed. Long texts are rendered piece by piece, so that the page answers meanwhile.

import { make } from "./dom.js";
import { morph, parse } from "./nodes.js";
import highlighter from "./vendor/highlight.mjs";
import MarkdownIt from "./vendor/markdown-it.mjs";
import remend from "./vendor/remend.mjs";

/** The shortest time between two looks of a text that grows. */
const PACE_MS = 40;
/** How long rendering goes on before the page may do something else. */
const BUDGET_MS = 12;
/** So much of a text is looked at, at first; more if a block is longer. In UTF-16 units. */
const WINDOW = 8_192;
/** The longest code that gets colours, and the longest while it grows. */
const MAX_CODE = 48_000;
const MAX_GROWING = 8_000;

const markdown = new MarkdownIt({ breaks: true, linkify: true });
markdown.validateLink = (url) => /^(?:https?|mailto):/i.test(url);
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
markdown.options.highlight = (code, info) => {
  const [language] = info.split(/[,{]/);
  if (code.length > longest || !highlighter.getLanguage(language)) return "";
  return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
};
const { rules } = markdown.renderer;
for (const kind of ["fence", "code_block"]) {
  const rule = rules[kind];
  rules[kind] = (tokens, index, ...rest) => {
    tokens[index].content = tokens[index].content.replace(/\n$/, "");
    return rule(tokens, index, ...rest);
  };
}
// Images are links to them: nothing of other hosts is loaded.
rules.image = (tokens, index, options, env, renderer) => {
  const { children, attrs } = tokens[index];
  const { escapeHtml } = markdown.utils;
  const words = renderer.renderInlineAsText(children ?? [], options, env) || "image";
  return `<a href="${escapeHtml(new Map(attrs).get("src"))}">${escapeHtml(words)}</a>`;
};
// The policy of the page forbids styles in elements.
rules.th_open = rules.td_open = (tokens, index, options, _, renderer) => {
  const [, align] = /^text-align:(\w+)$/.exec(tokens[index].attrGet("style") ?? "") ?? [];
  tokens[index].attrs = align ? [["class", align]] : null;
  return renderer.renderToken(tokens, index, options);
};
let longest = MAX_CODE;

/** The most tokens of a text that are read at once. */
const SLICE = 100;

/** The HTML of a text. Code of more than `most` gets no colours. `pause` comes between pieces of a long text. */
async function render(text, env, most, pause) {
  const state = new markdown.core.State(text, markdown, env);
  // All rules but these look at one block after the other.
  const [normalize, block, ...others] = markdown.core.ruler.getRules("");
  normalize(state);
  block(state);
  const tokens = state.tokens;
  for (let at = 0; at < tokens.length; at += SLICE) {
    await pause();
    state.tokens = tokens.slice(at, at + SLICE);
    for (const rule of others) rule(state);
  }
  await pause();
  longest = most;
  return markdown.renderer.render(tokens, markdown.options, env);
}

/** Finds blocks, and nothing in them. */
const blocks = new MarkdownIt();
blocks.core.ruler.enableOnly(["normalize", "block"]);

const HEALED = {
  comparisonOperators: false, htmlTags: false, katex: false, linkMode: "text-only", singleTilde: false,
};
const IMAGE = /!\[([^\]]*)\]\(streamdown:incomplete-image\)/;
/** A last line that may become anything, and the head of a table that may be none. */
const UNDECIDED = /(?:^|\n) {0,3}(?:[`~#>*+_|=-]{1,3}|\d{1,9}[.)]?)[ \t]*$/;
const TABLE_HEAD = /(?:^|\n) {0,3}\|[^\n]*(?:\n[ \t|:-]*)?$/;

/** A block that grows, as it is shown: what has begun in it ends. */
function heal(text) {
  const decided = text.replace(UNDECIDED, "");
  const isTable = /\n {0,3}\|[ \t:|-]+\n/.test(text);
  return remend(isTable ? decided : decided.replace(TABLE_HEAD, ""), HEALED).replace(IMAGE, "$1");
}

/** The length of the part that no later text changes: everything before the last block. Later text may still define a
 * link that the part refers to. */
function closedPart(text, env) {
  const starts = blocks.parse(text, env).filter((it) => it.level === 0 && it.map !== null && it.nesting >= 0);
  const lines = text.split("\n");
  let last = starts.at(-1)?.map[0] ?? 0;
  // A line without its end may still become part of the block above: `1` an item, `|` a row.
  if (last === lines.length - 1 && !/^\s*\p{L}/u.test(lines[last])) last = starts.at(-2)?.map[0] ?? 0;
  return lines.slice(0, last).reduce((sum, line) => sum + line.length + 1, 0);
}

// --- one after the other ------------------------------------------------------------------------

/** The texts that are to be rendered. */
const waiting = new Set();
let isBusy = false;

const sleep = (ms) => new Promise((then) => setTimeout(then, ms));

async function renderAll() {
  if (isBusy) return;
  isBusy = true;
  while (waiting.size > 0) {
    const begun = performance.now();
    let isBehind = false;
    // What is at the end of the page is seen first.
    for (const text of [...waiting].reverse()) {
      waiting.delete(text);
      if (await text.render()) {
        waiting.add(text);
        isBehind = true;
      }
      if (performance.now() - begun > BUDGET_MS) break;
    }
    // What takes long is done less often.
    const took = performance.now() - begun;
    await sleep(isBehind || took < 1 ? 0 : Math.max(PACE_MS, 2 * took));
  }
  isBusy = false;
}

const sources = new WeakMap();

/** The Markdown of an element that a `Markdown` shows. */
export const sourceOf = (element) => sources.get(element)?.source ?? "";

/** A text and its element, which has the class `pending` while something is not shown. */
export class Markdown {
  element = make("div", "text markdown");
  source = "";
  /** Where the part begins that is not yet complete, and its first element. */
  #start = 0;
  #first = 0;
  /** The level of the last heading before it. The page has two of its own. */
  #level = 2;
  #window = WINDOW;
  /** The links that are defined so far. */
  #env = {};
  #isFinal = false;

  constructor(text = "") {
    sources.set(this.element, this);
    if (text !== "") this.finish(text);
  }

  /** More of the text. */
  append(text) {
    this.source += text.replace(/\r\n?/g, "\n");
    this.#isFinal = false;
    this.#want();
  }

  /** The whole text, as far as it is known. */
  set(text) {
    if (!text.startsWith(this.source)) {
      this.#restart();
      this.source = "";
    }
    if (text !== this.source) this.append(text.slice(this.source.length));
  }

  /** Nothing comes any more. */
  finish(text = this.source) {
    this.set(text);
    if (this.#isFinal) return;
    this.#isFinal = true;
    // A link may have been defined below the place where it is used.
    if (this.#start > 0 && /^ {0,3}\[[^\]]+\]:/m.test(this.source)) this.#restart();
    this.#want();
  }

  /** From the beginning. What is there stays until it is replaced. */
  #restart() {
    [this.#start, this.#first, this.#level] = [0, 0, 2];
  }

  #want() {
    this.element.classList.add("pending");
    waiting.add(this);
    renderAll();
  }

  /** Shows more of the text. Returns whether there is still more. */
  async render() {
    const [from, source, isFinal] = [this.#start, this.source, this.#isFinal];
    const end = Math.min(source.length, from + this.#window);
    const [isEnd, text] = [end === source.length, source.slice(from, end)];
    // What is not complete defines nothing yet.
    const env = { references: { ...this.#env.references } };
    const closed = isEnd && isFinal ? text.length : closedPart(text, env);
    if (closed === 0 && !isEnd) {
      this.#window *= 2;
      return true;
    }
    // Each step is a task of its own, so that none is long.
    const pause = () => text.length > WINDOW / 4 && sleep(0);
    await pause();
    const done = await render(text.slice(0, closed), this.#env, MAX_CODE, pause);
    await pause();
    const open = isEnd ? await render(heal(text.slice(closed)), env, MAX_GROWING, pause) : "";
    await pause();
    const complete = parse(done, this.#level);
    const growing = parse(open, complete.level);
    await pause();
    if (from !== this.#start || !this.source.startsWith(source)) return true;
    morph(this.element, this.#first, [...complete.nodes, ...growing.nodes]);
    this.#start += closed;
    this.#first += complete.nodes.length;
    this.#level = complete.level;
    if (closed > 0) this.#window = WINDOW;
    if (!isEnd) return true;
    const isDone = this.source === source && this.#isFinal === isFinal;
    if (isDone) this.element.classList.remove("pending");
    return false;
  }
}
