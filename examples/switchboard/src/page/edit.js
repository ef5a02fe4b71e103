// A question that was sent can be changed: its text becomes a field, in its place. And the conversation as a file.

import { answerOf, questionOf } from "./answer.js";
import { button, get, make, sends } from "./dom.js";

const log = get("log");

/** Calls `change` with the element of a question and its new text; it returns why that failed, or nothing. */
export function onEdit(change) {
  log.addEventListener("click", ({ target }) => {
    if (target.matches("button.edit")) open(target.closest("article"), change);
  });
}

function open(asked, change) {
  const [text, foot] = [".text", ".foot"].map((part) => asked.querySelector(part));
  const form = make("form", "editing");
  const field = make("textarea");
  field.value = questionOf(asked);
  field.dir = "auto";
  field.setAttribute("aria-label", "Changed message");
  const problem = make("p", "problem");
  problem.setAttribute("role", "alert");
  const row = make("div", "row");
  const send = button("main", "Send");
  send.type = "submit";
  row.append(make("p", "small", "The answer goes to a new chat."), button("quiet", "Cancel", close), send);
  form.append(field, row, problem);

  function close() {
    form.remove();
    for (const part of [text, foot]) part.hidden = false;
    foot.querySelector(".edit").focus();
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (field.value.trim() === "" || send.disabled) return;
    send.disabled = true;
    const why = await change(asked, field.value);
    send.disabled = false;
    if (why === undefined) close();
    else problem.textContent = why;
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.target === field && sends(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  for (const part of [text, foot]) part.hidden = true;
  text.after(form);
  field.focus();
}

/** A question or an answer as Markdown, with who has said it and when. */
function section(element) {
  const isQuestion = element.matches(".user");
  if (!isQuestion && !element.matches(".agent")) return "";
  const time = element.querySelector("time")?.textContent;
  const remarks = [...element.querySelectorAll(".tool:not(.thought) .name, .notice, .failure > p")].map((part) =>
    part.matches(".name") ? `*Tool: ${part.textContent}*` : `*${part.textContent}*`);
  const said = isQuestion ? questionOf(element) : [...remarks, answerOf(element)].filter(Boolean).join("\n\n");
  return `**${isQuestion ? "You" : "Agent"}**${time ? ` (${time})` : ""}\n\n${said}\n\n`;
}

/** Saves what the page shows as a file of Markdown, when the button is pressed. `title` returns its name. */
export function onExport(title) {
  get("export").addEventListener("click", () => {
    const name = title() || "Chat";
    const text = `# ${name}\n\n${[...log.children].map(section).join("")}`;
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
    link.download = `${name.replace(/[^\p{L}\p{N} -]/gu, "").trim().slice(0, 60) || "chat"}.md`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
