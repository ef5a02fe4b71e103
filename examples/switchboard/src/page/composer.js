// The field for what the user says: Enter sends, Shift+Enter starts a new line, Escape stops. Examples fill it.

import { browser, get, isTouched, sends } from "./dom.js";

const [form, stopButton] = ["composer", "stop"].map(get);
export const input = get("input");
export const send = get("send");

/** Whether there is something to send. */
export const hasText = () => input.value.trim() !== "";

/** Whether the answer can be stopped. */
export function setRunning(isRunning, keepsSend = false) {
  const hadFocus = document.activeElement === stopButton;
  stopButton.hidden = !isRunning;
  send.hidden = isRunning && !keepsSend;
  if (hadFocus && !isRunning) input.focus();
}

/** Where the browser keeps what is typed and not sent. */
let place = "";

/** Shows the draft that is kept under a name, and keeps it there from now on. */
export function draft(name) {
  place = name;
  input.value = browser.read(name) ?? "";
  grow();
}

const keep = () => browser.write(place, input.value === "" ? null : input.value);

export function clear() {
  input.value = "";
  keep();
  grow();
  input.focus();
}

/** Browsers that do not do it themselves. */
function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + 2}px`;
}

/** Calls `submit` for each message, `stop` when the answer is to end, and `changed` when something was typed. */
export function start({ submit, stop, changed }) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  input.addEventListener("input", () => {
    keep();
    grow();
    changed();
  });
  input.addEventListener("keydown", (event) => {
    if (!sends(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing && !event.defaultPrevented) stop();
  });
  stopButton.addEventListener("click", stop);
  get("examples").addEventListener("click", ({ target }) => {
    if (!target.matches(".example")) return;
    input.value = target.textContent;
    keep();
    grow();
    changed();
    input.focus();
    form.requestSubmit();
  });
  if (isTouched()) input.enterKeyHint = "enter";
  if (document.activeElement === document.body) input.focus();
}
