// What the conversation looks like: one element for each item. Whatever the agent sends is shown as
// text, never as markup.

/** An element with a class and a text. */
export function make(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

export const show = (value) =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");

const QUEUED = "The agent reads this at its next step.";
const STATES = { running: "running", done: "done", failed: "failed", ended: "no result" };

/** The element of an item. `answer` is called with what the user chooses. */
export function element(item, answer) {
  switch (item.kind) {
    case "user":
      return said(item, "user", "You");
    case "agent":
      return said(item, "agent", "Agent");
    case "tool":
      return tool(item);
    case "thought":
      return folded("thought", "Thought", item.text);
    case "ask":
      return asking(item, answer);
    case "failure":
      return alone("failure", item.text);
    default:
      return alone("notice", item.text);
  }
}

function article(className, name) {
  const block = make("article", className);
  block.append(make("h2", "unseen", name));
  return block;
}

function alone(className, text) {
  const block = article("agent", "Agent");
  block.append(make("p", className, text));
  return block;
}

function said(item, className, name) {
  const block = article(item.queued ? `${className} queued` : className, name);
  block.append(make("p", "text", item.text));
  for (const file of item.files ?? []) block.append(make("p", "small", file));
  if (item.queued) block.append(make("p", "small", QUEUED));
  return block;
}

function folded(className, title, text) {
  const block = make("details", `tool ${className}`);
  const summary = make("summary");
  summary.append(make("span", "name", title));
  block.append(summary, make("pre", "", text));
  return block;
}

function tool(item) {
  const block = make("details", "tool");
  block.dataset.state = item.state;
  const summary = make("summary");
  summary.append(make("span", "name", item.name), make("span", "state", STATES[item.state]));
  block.append(summary, make("h3", "", "Input"), make("pre", "input", show(item.args ?? {})));
  if (item.result !== undefined) {
    const failed = item.state === "failed";
    block.append(make("h3", "", failed ? "Error" : "Result"), make("pre", "result", show(item.result)));
  }
  return block;
}

function asking(item, answer) {
  const block = make("section", "ask");
  block.dataset.state = item.open ? "open" : "closed";
  block.setAttribute("aria-label", "The agent asks");
  block.append(make("p", "text", item.text));
  if (item.details !== undefined) block.append(make("pre", "", show(item.details)));
  if (!item.open) {
    block.append(make("p", "answer", item.answer ?? "Not answered."));
    return block;
  }
  const answers = make("div", "answers");
  const choices = item.type === "approval_needed" ? approvals(item) : options(item);
  for (const { name, response, words, main } of choices) {
    const button = make("button", main ? "main" : "quiet", name);
    button.type = "button";
    button.addEventListener("click", () => answer(item, response, words));
    answers.append(button);
  }
  block.append(answers);
  if (item.type !== "approval_needed") block.append(make("p", "small", "Or write an answer below."));
  return block;
}

function approvals() {
  const yes = (scope, name) => ({
    name,
    words: scope === "once" ? "Allowed." : "Allowed for this conversation.",
    response: { type: "APPROVAL_RESPONSE", approved: true, scope },
  });
  return [
    { ...yes("once", "Allow"), main: true },
    yes("session", "Always allow"),
    {
      name: "Refuse",
      words: "Refused.",
      response: { type: "APPROVAL_RESPONSE", approved: false, mode: "reject_soft" },
    },
  ];
}

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
