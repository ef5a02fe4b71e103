// The elements of rendered Markdown: what the page adds to them, and how a newer version of them takes the place of
// an older one without touching what is equal.

import { button, make } from "./dom.js";

const policy = globalThis.trustedTypes?.createPolicy("markdown", { createHTML: (html) => html });

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
  for (const pre of content.querySelectorAll("pre")) {
    const { language } = pre.dataset;
    const frame = framed(pre, "code", language ? `Code, ${language}` : "Code");
    const head = make("div", "head");
    const copy = button("copy-code", "Copy");
    copy.setAttribute("aria-label", "Copy code");
    head.append(make("span", "language", language), copy);
    frame.prepend(head);
    pre.tabIndex = 0;
  }
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

/** The elements of HTML from the page's own server, which has cleaned it, and the level of the last heading. */
export function parse(html, level) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  const last = complete(template.content, level);
  return { nodes: [...template.content.childNodes], level: last };
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

const INSIDE = new Set(["P", "UL", "OL", "LI", "BLOCKQUOTE", "PRE", "CODE"]);

/** Puts `tail` where a text would go on. Beside a table it would make the columns jump, so it waits there. */
export function attach(element, tail) {
  let place = element;
  let last = place.lastElementChild;
  tail.hidden = last !== null && last.className === "table";
  while (last !== null) {
    if (last.className === "code") last = last.lastElementChild;
    // A word of code within a text is complete.
    if (!INSIDE.has(last.nodeName) || (last.nodeName === "CODE" && place.nodeName !== "PRE")) break;
    place = last;
    last = place.lastElementChild;
  }
  place.append(tail);
}
