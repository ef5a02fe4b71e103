// The chats of this browser: a list beside the conversation, and a drawer where there is no room. What was said is kept
// elsewhere; here is how to find it.

import { browser, button, get, make, randomId, tab } from "./dom.js";

const MAX_CHATS = 200;
const MAX_TITLE = 80;

const [list, panel, opener, closer, shade, fresh] =
  ["chat-list", "chats", "chats-open", "chats-close", "shade", "fresh"].map(get);
const rest = [...document.querySelectorAll("header, main, footer")];

const isChat = (chat) => /^[0-9a-f]{32}$/.test(chat?.id ?? "") && typeof chat.title === "string" && Number.isFinite(chat.at);

/** Keeps the list under names that begin with `prefix`. `open` is called with the chat to show, `gone` with one that
 * was removed. */
export function chats(prefix, { open, gone }) {
  const [all, here] = [`${prefix}-chats`, `${prefix}-chat`];
  let items = read();
  let current = tab.read(here);
  if (!isChat({ id: current, title: "", at: 0 })) current = items[0]?.id ?? randomId();

  function read() {
    const kept = browser.read(all);
    return Array.isArray(kept) ? kept.filter(isChat) : [];
  }

  function write() {
    browser.write(all, items);
    draw();
  }

  function select(id) {
    current = id;
    tab.write(here, id);
    close();
    draw();
    open(id);
  }

  function remove(id) {
    items = read().filter((item) => item.id !== id);
    gone(id);
    write();
    if (id === current) select(items[0]?.id ?? randomId());
  }

  function draw() {
    get("no-chats").hidden = items.length > 0;
    list.replaceChildren(...items.map((item) => entry(item)));
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
      away.setAttribute("aria-label", `Remove the chat: ${title}`);
    };
    harmless();
    // Not by accident: it is pressed twice.
    away.addEventListener("click", () => {
      if (away.dataset.sure) return remove(id);
      away.dataset.sure = "yes";
      away.textContent = "Remove?";
      away.setAttribute("aria-label", `Really remove the chat: ${title}`);
    });
    away.addEventListener("blur", harmless);
    line.append(name, away);
    return line;
  }

  // Another tab has changed it.
  addEventListener("storage", ({ key }) => {
    if (key !== all) return;
    items = read();
    draw();
  });
  fresh.addEventListener("click", () => select(randomId()));
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
      const others = known.filter(({ id }) => id !== current);
      items = [{ id: current, title, at: Date.now() }, ...others].slice(0, MAX_CHATS);
      tab.write(here, current);
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
