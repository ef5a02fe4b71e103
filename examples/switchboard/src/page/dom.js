// Small helpers for elements, and for what a browser keeps.

export const get = (id) => document.getElementById(id);

/** An address of the page's server, which may be below a path of another one. */
export const address = (path) => new URL(`../${path}`, import.meta.url);

/** An element with a class and a text. */
export function make(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** A button that does no more than `act`. */
export function button(className, text, act) {
  const element = make("button", className, text);
  element.type = "button";
  if (act) element.addEventListener("click", act);
  return element;
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** A value as people read it. */
export const show = (value) => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));

/** Sets a text only where it changes, so that nobody hears it twice. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** An id that cannot be guessed: 32 hexadecimal digits. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The values that a browser keeps, as JSON. Without storage, they last until the page is reloaded. */
export function keeper(storage) {
  return {
    read(name) {
      try {
        return JSON.parse(storage().getItem(name));
      } catch {
        return null;
      }
    },
    /** Whether there was room. */
    write(name, value) {
      try {
        if (value === null) storage().removeItem(name);
        else storage().setItem(name, JSON.stringify(value));
        return true;
      } catch {
        return false;
      }
    },
  };
}

/** Until the browser forgets, and until the tab is closed. */
export const browser = keeper(() => localStorage);
export const tab = keeper(() => sessionStorage);

/** Puts a text into the clipboard. Only pages with a safe connection have the interface for it. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", "unseen");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** The time of today, or the day and the time. */
export function when(at) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? {} : { day: "numeric", month: "short", year: "numeric" };
  return date.toLocaleString([], { hour: "2-digit", minute: "2-digit", ...day });
}

/** The element of a time, in milliseconds since 1970. */
export function timeOf(at) {
  const time = make("time", "", when(at));
  time.dateTime = new Date(at).toISOString();
  return time;
}

/** Whether fingers write: then Enter begins a new line, and a button sends. */
export const isTouched = () => matchMedia("(pointer: coarse)").matches;

/** Whether a key sends what is written. Enter also ends the composition of a character. */
export const sends = (event) =>
  event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229 && !isTouched();

/** A duration in words: `8 s`, `2 min 5 s`. */
export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
