// Markdown that grows. Blocks that are complete are rendered once; the last one is rendered again as it grows, with its
// marks completed. Long texts are rendered piece by piece, so that the page answers meanwhile.

import { make } from "./dom.js";
import { extend, morph, parse, partsOf } from "./nodes.js";
import highlighter from "./vendor/highlight.mjs";
import MarkdownIt from "./vendor/markdown-it.mjs";
import remend from "./vendor/remend.mjs";

/** The shortest time between two looks of a text that grows. */
const PACE_MS = 40;
/** How long rendering goes on before the page may do something else. */
const BUDGET_MS = 8;
/** So much of a text is looked at, at first; more if a block is longer. In UTF-16 units. */
const WINDOW = 4_096;
/** The shortest piece of a long table or of long code. */
const PIECE = 1_500;
const MAX_PIECE = 4 * PIECE;

const markdown = new MarkdownIt({ breaks: true, linkify: true });
markdown.validateLink = (url) => /^(?:https?:\/\/|mailto:)/i.test(url);
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
markdown.options.highlight = (code, info) => {
  // Long lines are for machines.
  const isLong = code.length > 2 * MAX_PIECE || code.split("\n").some((line) => line.length > PIECE);
  return isLong ? "" : (coloured(code, info)?.value ?? "");
};

/** Code with the colours of its language, if that is known. */
function coloured(code, info) {
  const [language] = info.split(/[,{]/);
  return highlighter.getLanguage(language) ? highlighter.highlight(code, { language, ignoreIllegals: true }) : null;
}

const { rules } = markdown.renderer;
for (const kind of ["fence", "code_block"]) {
  const rule = rules[kind];
  rules[kind] = (tokens, index, options, env, renderer) => {
    const goesOn = env.goesOn && index === tokens.length - 1;
    if (!goesOn) tokens[index].content = tokens[index].content.replace(/\n$/, "");
    return rule(tokens, index, options, env, renderer);
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

/** The most tokens of a text that are read at once. */
const SLICE = 100;

/** The HTML of a text. `pause` comes between pieces of a long text. */
async function render(text, env, pause) {
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

/** How many lines of a block belong to each piece of it: the head of a table, the fence of code. */
const HEADS = { table_open: 2, fence: 1 };

/** Where a text can be cut: the length of the part that no later text changes. If what follows goes on with the last
 * block of it, `head` is to stand before that; if it is to be cut, too, `isLong`. `isWhole`: nothing follows. Later text
 * may still define a link that the part refers to. */
function cut(text, env, isWhole) {
  const starts = blocks.parse(text, env).filter((it) => it.level === 0 && it.map !== null && it.nesting >= 0);
  const lines = text.split("\n");
  const places = [0];
  for (const line of lines) places.push(places.at(-1) + line.length + 1);
  const long = starts.find(({ type, map: [first, end] }) => type in HEADS && places[end] - places[first] > 2 * PIECE);
  if (long?.map[0] > 0) return { closed: places[long.map[0]], head: "", isLong: true };
  const first = long && firstPiece(text, long, places[HEADS[long.type]], places[long.map[1]]);
  if (first) return first;
  let last = isWhole ? lines.length : (starts.at(-1)?.map[0] ?? 0);
  // A line without its end may still become part of the block above: `1` an item, `|` a row.
  if (last === lines.length - 1 && !/^\s*\p{L}/u.test(lines[last])) last = starts.at(-2)?.map[0] ?? 0;
  return { closed: Math.min(places[last], text.length), head: "" };
}

/** The first piece of a long table or of long code, whose lines are from `begin` to `end`. It becomes longer where the
 * colours of the next line depend on the last one; if that goes on, the rest gets no colours. */
function firstPiece(text, { type, info, markup }, begin, end) {
  for (let size = PIECE; 2 * size < end - begin; size *= 2) {
    const closed = text.indexOf("\n", begin + size) + 1;
    // The last piece is not empty.
    if (closed === 0 || closed + PIECE / 2 > end) return null;
    const isLong = end - closed > 2 * PIECE;
    const isClean = type !== "fence" || coloured(text.slice(begin, closed), info)?._top.parent === undefined;
    if (isClean) return { closed, head: text.slice(0, begin), isLong };
    if (size >= MAX_PIECE) return { closed, head: `${markup}\n`, isLong };
  }
  return null;
}

// --- one after the other ------------------------------------------------------------------------

/** The texts that are to be rendered. */
const waiting = new Set();
let isBusy = false;

const sleep = (ms) => new Promise((then) => setTimeout(then, ms));

/** What comes between the steps of some work, so that none of its tasks is long. */
function pauses() {
  let begun = performance.now();
  return async () => {
    if (performance.now() - begun < BUDGET_MS) return;
    await sleep(0);
    begun = performance.now();
  };
}

/** Lets the browser show what there is so far. Pages that are not seen show nothing. */
const frame = () => Promise.race([sleep(PACE_MS), new Promise(requestAnimationFrame)]).then(() => sleep(0));

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
    if (isBehind) await frame();
    else await sleep(took < 1 ? 0 : Math.max(PACE_MS, 2 * took));
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
  /** What is to stand before the rest of a block whose first pieces are complete, and how many parts these have. */
  #head = "";
  #parts = 0;
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
    [this.#start, this.#first, this.#level, this.#head, this.#parts] = [0, 0, 2, "", 0];
  }

  #want() {
    this.element.classList.add("pending");
    waiting.add(this);
    renderAll();
  }

  /** Shows more of the text. Returns whether there is still more. */
  async render() {
    const [from, source, isFinal, head] = [this.#start, this.source, this.#isFinal, this.#head];
    const end = Math.min(source.length, from + this.#window);
    const isEnd = end === source.length;
    const text = head + source.slice(from, end);
    // What is not complete defines nothing yet.
    const env = { references: { ...this.#env.references } };
    const { closed, isLong, head: after } = cut(text, env, isEnd && isFinal);
    if (closed === 0 && !isEnd) {
      this.#window *= 2;
      return true;
    }
    const [next, begun] = closed === 0 ? [head, head.length] : [after, closed];
    const pause = pauses();
    await pause();
    this.#env.goesOn = next !== "";
    const done = await render(text.slice(0, closed), this.#env, pause);
    await pause();
    const open = isEnd && !isLong ? await render(heal(next + text.slice(begun)), env, pause) : "";
    await pause();
    const complete = parse(done, this.#level);
    const growing = parse(open, complete.level);
    await pause();
    if (from !== this.#start || !this.source.startsWith(source)) return true;
    this.#put(complete.nodes, growing.nodes, next !== "");
    this.#start += begun - head.length;
    this.#head = next;
    this.#level = complete.level;
    if (closed > 0) this.#window = WINDOW;
    if (!isEnd || isLong || (isFinal && closed < text.length)) return true;
    const isDone = this.source === source && this.#isFinal === isFinal;
    if (isDone) this.element.classList.remove("pending");
    return false;
  }

  /** Shows blocks that are complete, and those that grow. `goesOn`: the first that grows is the rest of the last one that
   * is complete. */
  #put(complete, growing, goesOn) {
    const before = this.#head === "" ? null : this.element.children[this.#first - 1];
    const parts = before ? partsOf(complete.shift()) : [];
    let kept = this.#parts + parts.length;
    if (goesOn) {
      const rest = partsOf(growing.shift());
      if (complete.length === 0) parts.push(...rest);
      else kept = extend(complete.at(-1), rest);
    }
    if (before) extend(before, parts, this.#parts);
    morph(this.element, this.#first, [...complete, ...growing]);
    this.#first += complete.length;
    this.#parts = kept;
  }
}
