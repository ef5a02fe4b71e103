// The chats of this browser: a list beside the conversation, and a drawer where there is no room. Each has an address,
// so that the browser's own buttons lead back and forth. What was said is kept elsewhere; here is how to find it.

import { browser, button, get, make, randomId } from "./dom.js";

/** So many are shown at first, and with each press of the button below. */
const PAGE = 50;
const MAX_TITLE = 80;

const [list, none, more, panel, opener, closer, shade, fresh] =
  ["chat-list", "no-chats", "more-chats", "chats", "chats-open", "chats-close", "shade", "fresh"].map(get);
const rest = [...document.querySelectorAll("header, main, footer")];

const isId = (id) => /^[0-9a-f]{32}$/.test(id ?? "");
const isChat = (chat) => isId(chat?.id) && typeof chat.title === "string" && Number.isFinite(chat.at);

/** Keeps the list under a name that begins with `prefix`. `open` is called with the chat to show. `gone` is called with
 * one that is to be deleted, and returns why that failed, or nothing. */
export function chats(prefix, { open, gone }) {
  const place = `${prefix}-chats`;
  let items = read();
  let shown = PAGE;
  let current = here() ?? items[0]?.id ?? randomId();
  history.replaceState(null, "", `#${current}`);

  function here() {
    const id = location.hash.slice(1);
    return isId(id) ? id : null;
  }

  function read() {
    const kept = browser.read(place);
    return Array.isArray(kept) ? kept.filter(isChat) : [];
  }

  function write() {
    if (!browser.write(place, items)) none.textContent = "The browser has no room for this list, which a reload ends.";
    draw();
  }

  /** Shows the chat of the address. */
  function follow() {
    const id = here();
    if (id === current) return;
    if (id === null) return history.replaceState(null, "", `#${current}`);
    current = id;
    close();
    draw();
    open(id);
  }

  /** Goes to another chat, from where the browser leads back. */
  function select(id) {
    if (id === current) return close();
    location.hash = id;
  }

  async function remove(id) {
    const why = await gone(id);
    if (why !== undefined) {
      none.textContent = `Not deleted: ${why}`;
      none.hidden = false;
      return;
    }
    items = read().filter((item) => item.id !== id);
    write();
    if (id !== current) return;
    history.replaceState(null, "", `#${items[0]?.id ?? randomId()}`);
    follow();
  }

  function draw() {
    none.hidden = items.length > 0 && browser.read(place) !== null;
    list.replaceChildren(...items.slice(0, shown).map((item) => entry(item)));
    more.hidden = items.length <= shown;
  }

  function entry({ id, title, at }) {
    const line = make("li");
    const name = button("chat", "", () => select(id));
    name.append(make("span", "title", title), make("span", "small", when(at)));
    if (id === current) name.setAttribute("aria-current", "true");
    const away = button("remove");
    const harmless = () => {
      delete away.dataset.sure;
      away.textContent = "×";
      away.setAttribute("aria-label", `Delete the chat: ${title}`);
    };
    harmless();
    // Not by accident: it is pressed twice.
    away.addEventListener("click", () => {
      if (away.dataset.sure) return remove(id);
      away.dataset.sure = "yes";
      away.textContent = "Delete?";
      away.setAttribute("aria-label", `Really delete the chat: ${title}`);
    });
    away.addEventListener("blur", harmless);
    line.append(name, away);
    return line;
  }

  // Another tab has changed it.
  addEventListener("storage", ({ key }) => {
    if (key !== place) return;
    items = read();
    draw();
  });
  addEventListener("hashchange", follow);
  fresh.addEventListener("click", () => select(randomId()));
  more.addEventListener("click", () => {
    const first = shown;
    shown += PAGE;
    draw();
    list.children[first].firstElementChild.focus();
  });
  draw();

  return {
    get current() {
      return current;
    },
    /** Something was said in the current chat, which then is the first of the list. */
    said(text) {
      const known = read();
      const old = known.find(({ id }) => id === current);
      const title = old?.title || text.trim().split("\n")[0].slice(0, MAX_TITLE) || "Chat";
      items = [{ id: current, title, at: Date.now() }, ...known.filter(({ id }) => id !== current)];
      write();
    },
  };
}

/** The time of today, or the day. */
function when(at) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday
    ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

function show(isOpen) {
  panel.classList.toggle("open", isOpen);
  shade.hidden = !isOpen;
  opener.setAttribute("aria-expanded", String(isOpen));
  for (const element of rest) element.inert = isOpen;
}

function close() {
  if (!panel.classList.contains("open")) return;
  show(false);
  opener.focus();
}

opener.addEventListener("click", () => {
  show(true);
  closer.focus();
});
closer.addEventListener("click", close);
shade.addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !panel.classList.contains("open")) return;
  event.preventDefault();
  close();
}, { capture: true });
// With room beside the conversation, nothing is in front of it.
matchMedia("(min-width: 56rem)").addEventListener("change", () => show(false));
