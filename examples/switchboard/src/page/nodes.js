// The elements of rendered Markdown: what the page adds to them, and how a newer version of them takes the place of
// an older one without touching what is equal.

import { button, make } from "./dom.js";
import purify from "./vendor/purify.mjs";

/** What remains of the HTML of Markdown. HTML in Markdown is text, so this is the second of two walls. */
const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul", "#text",
  ],
  ALLOWED_ATTR: ["href", "class", "start"],
  ADD_URI_SAFE_ATTR: ["start"],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.localName !== "a") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

/** Adds what the page has around code and tables, and gives headings their place below those of the page. `level` is
 * that of the heading before; returns that of the last one. */
function complete(content, level) {
  for (const heading of content.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const depth = Number(heading.localName.slice(1));
    // No level is left out, for those who find their way by headings.
    level = Math.min(depth + 2, level + 1, 6);
    const placed = make(`h${level}`, `depth${depth}`);
    placed.append(...heading.childNodes);
    heading.replaceWith(placed);
  }
  for (const item of content.querySelectorAll("li")) {
    const text = item.firstElementChild?.localName === "p" ? item.firstElementChild.firstChild : item.firstChild;
    if (text?.nodeType !== Node.TEXT_NODE) continue;
    const box = /^\[([ xX])\] /.exec(text.data);
    if (box === null) continue;
    text.data = (box[1] === " " ? "☐ " : "☑ ") + text.data.slice(box[0].length);
    item.className = "task";
  }
  for (const pre of content.querySelectorAll("pre")) {
    const code = pre.firstElementChild ?? pre;
    const [, language = ""] = /^language-([^\s,{]*)/.exec(code.className) ?? [];
    code.removeAttribute("class");
    const frame = framed(pre, "code", language ? `Code, ${language}` : "Code");
    const head = make("div", "head");
    const copy = button("copy-code", "Copy");
    copy.setAttribute("aria-label", "Copy code");
    head.append(make("span", "language", language), copy);
    frame.prepend(head);
    pre.tabIndex = 0;
  }
  // Each block has the direction of its own text.
  for (const block of content.children) block.dir = block.matches(".code") ? "ltr" : "auto";
  for (const head of content.querySelectorAll("th")) head.scope = "col";
  for (const table of content.querySelectorAll("table")) framed(table, "table", "Table").tabIndex = 0;
  return level;
}

function framed(element, className, label) {
  const frame = make("div", className);
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", label);
  element.replaceWith(frame);
  frame.append(element);
  return frame;
}

/** The elements of HTML, as far as they are allowed, and the level of the last heading. */
export function parse(html, level) {
  const content = purify.sanitize(html, ALLOWED);
  const last = complete(content, level);
  return { nodes: [...content.children], level: last };
}

const holderOf = (frame) => frame.querySelector(":scope > table > tbody, :scope > pre > code");

/** What a table or code consists of, to be put after what such a block has already: rows, or a piece of code. */
export function partsOf(frame) {
  const holder = frame && holderOf(frame);
  if (!holder) return [];
  if (holder.localName === "tbody") return [...holder.childNodes];
  // A block, so that the browser looks at no other piece when this one grows.
  const piece = make("span", "piece");
  piece.append(...holder.childNodes);
  return [piece];
}

/** Gives a table or code these parts from the one at `from` on. Returns how many it had before. */
export function extend(frame, parts, from) {
  const holder = holderOf(frame);
  const had = holder.childNodes.length;
  morph(holder, from ?? had, parts);
  return had;
}

/** Makes the children of `parent`, from the one at `from` on, look like `nodes`. */
export function morph(parent, from, nodes) {
  let old = parent.childNodes[from] ?? null;
  for (const node of nodes) {
    if (old === null) {
      parent.append(node);
      continue;
    }
    const next = old.nextSibling;
    if (!old.isEqualNode(node)) {
      if (old.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) old.data = node.data;
      else if (isAlike(old, node)) morph(old, 0, [...node.childNodes]);
      else old.replaceWith(node);
    }
    old = next;
  }
  while (old !== null) {
    const next = old.nextSibling;
    old.remove();
    old = next;
  }
}

/** Whether two elements differ in their children only. */
const isAlike = (old, node) =>
  old.nodeName === node.nodeName && old.cloneNode(false).isEqualNode(node.cloneNode(false));
