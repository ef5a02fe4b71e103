// What the agent asks: a question, leave to use a tool, or what the user thinks of a plan.

import { button, make, show } from "./page/dom.js";
import { Markdown } from "./page/markdown.js";

/** The element of a question. `answer` is called with what the user chooses. */
export function asking(item, answer) {
  const block = make("div", "ask");
  block.dataset.state = item.open ? "open" : "closed";
  block.setAttribute("role", "group");
  block.setAttribute("aria-label", "The agent asks");
  if (item.type === "plan_review") block.append(make("p", "text", "The agent's plan:"), new Markdown(item.text).element);
  else block.append(make("p", "text", item.text));
  if (item.tool) block.append(make("p", "small", `The agent asks to use ${item.tool}.`));
  if (item.diff?.preview) block.append(diff(item.diff));
  if (item.details !== undefined) block.append(details(item));
  if (!item.open) {
    block.append(make("p", "answer", item.answer ?? "Not answered."));
    return block;
  }
  const answers = make("div", "answers");
  const choices = item.type === "approval_needed" ? APPROVALS : options(item);
  for (const { name, response, words, main } of choices) {
    answers.append(button(main ? "main" : "quiet", name, () => answer(item, response, words)));
  }
  block.append(answers);
  if (item.type !== "approval_needed") block.append(make("p", "small", "Or write an answer below."));
  return block;
}

function code(text) {
  const pre = make("pre", "", text);
  pre.tabIndex = 0;
  return pre;
}

/** What a tool gets, folded where a change says it better. */
function details({ details, diff }) {
  const pre = code(show(details));
  if (!diff?.preview) return pre;
  const folded = make("details");
  folded.append(make("summary", "", "Arguments of the tool"), pre);
  return folded;
}

/** A change to a file, its lines coloured. */
function diff({ path, preview, truncated }) {
  const block = make("figure", "diff");
  const pre = code();
  for (const line of preview.replace(/\n$/, "").split("\n")) {
    const kind = /^(\+\+\+|---) /.test(line) ? "hunk" : { "+": "inserted", "-": "deleted", "@": "hunk" }[line[0]] ?? "";
    pre.append(make("span", kind, `${line}\n`));
  }
  const end = truncated ? " (the beginning of the change)" : "";
  block.append(make("figcaption", "", path + end), pre);
  return block;
}

const yes = (scope) => ({ type: "APPROVAL_RESPONSE", approved: true, scope });
const APPROVALS = [
  { name: "Allow", words: "Allowed.", response: yes("once"), main: true },
  { name: "Always allow", words: "Allowed for this conversation.", response: yes("session") },
  { name: "Refuse", words: "Refused.", response: { type: "APPROVAL_RESPONSE", approved: false, mode: "reject_soft" } },
];

/** The frame that answers a question in words. */
export function reply(item, text) {
  return item.type === "plan_review"
    ? { type: "PLAN_REVIEW_RESPONSE", message: text }
    : { type: "ASK_USER_RESPONSE", answer: text };
}

function options(item) {
  const texts = (item.options ?? []).filter((option) => typeof option === "string");
  return texts.map((name) => ({ name, words: name, response: reply(item, name) }));
}
