// The chats of this browser: a list beside the conversation, and a drawer where there is no room. Each has an address,
// so that the browser's own buttons lead back and forth. What was said is kept elsewhere; here is how to find it.

import { browser, button, get, make, randomId, tab, when } from "./dom.js";

/** So many are shown at first, and with each press of the button below. */
const PAGE = 50;
const MAX_TITLE = 80;
/** How long nothing is typed before the chats themselves are searched. */
const TYPED_MS = 250;
const NONE = get("no-chats").textContent;

const [list, none, more, panel, opener, closer, shade, fresh, name, search] =
  ["chat-list", "no-chats", "more-chats", "chats", "chats-open", "chats-close", "shade", "fresh", "title", "search"].map(get);
const rest = [...document.querySelectorAll("header, main, footer")];

const isId = (id) => /^[0-9a-f]{32}$/.test(id ?? "");
const isChat = (chat) => isId(chat?.id) && typeof chat.title === "string" && Number.isFinite(chat.at);

const titleOf = (text) => text.trim().split("\n")[0].slice(0, MAX_TITLE) || "Chat";

/** Keeps the list under a name that begins with `prefix`. `open` is called with the chat to show. `gone` is called with
 * one that is to be deleted, and returns why that failed, or nothing. `find` returns the ids of those chats that have some
 * words in them. */
export function chats(prefix, { open, gone, find }) {
  const place = `${prefix}-chats`;
  /** The chat that this tab has begun last, of which nothing can be known elsewhere. */
  const begun = `${prefix}-begun`;
  let items = read();
  let shown = PAGE;
  /** The chats that have the words that are searched. */
  let found = new Set();
  const isWrong = location.hash.length > 1 && here() === null;
  let current = here() ?? ((!isWrong && items[0]?.id) || (isWrong ? randomId() : begin()));
  history.replaceState(null, "", `#${current}`);

  function begin() {
    const id = randomId();
    tab.write(begun, id);
    return id;
  }

  function here() {
    const id = location.hash.slice(1);
    return isId(id) ? id : null;
  }

  function read() {
    const kept = browser.read(place);
    return Array.isArray(kept) ? kept.filter(isChat) : [];
  }

  function write() {
    if (!browser.write(place, items)) none.textContent = "The browser cannot store this list: a reload loses it.";
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

  /** Goes to another chat, from where the browser leads back. A new one may have a title already. */
  function select(id, title) {
    if (id === current) return close();
    if (title !== undefined) put(id, title);
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
    history.replaceState(null, "", `#${items[0]?.id ?? begin()}`);
    follow();
  }

  const item = () => items.find(({ id }) => id === current);

  function draw() {
    const words = search.value.trim().toLowerCase();
    const isMeant = ({ id, title }) => words === "" || title.toLowerCase().includes(words) || found.has(id);
    const meant = items.filter(isMeant);
    none.hidden = meant.length > 0 && browser.read(place) !== null;
    if (meant.length === 0) none.textContent = words === "" ? NONE : "No chat has these words.";
    list.replaceChildren(...meant.slice(0, shown).map((item) => entry(item)));
    more.hidden = meant.length <= shown;
    if (document.activeElement !== name) name.value = item()?.title ?? "";
  }

  /** Puts a chat first in the list, with this title if it has none. */
  function put(id, title, isEmpty) {
    const known = read();
    const old = known.find((it) => it.id === id);
    items = [{ id, title: old?.title ?? titleOf(title), at: Date.now(), isEmpty }, ...known.filter((it) => it !== old)];
    write();
  }

  function entry({ id, title, at }) {
    const line = make("li");
    const name = button("chat", "", () => select(id));
    const words = make("span", "title", title);
    words.dir = "auto";
    name.append(words, make("span", "small", when(at)));
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
  fresh.addEventListener("click", () => select(begin()));
  name.addEventListener("change", () => {
    const title = name.value.trim();
    if (title === "") return draw();
    if (!item()) return put(current, title, true);
    items = read().map((it) => (it.id === current ? { ...it, title } : it));
    write();
  });
  name.addEventListener("keydown", (event) => {
    if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Escape") name.value = item()?.title ?? "";
    name.blur();
    get("input").focus();
  });
  name.addEventListener("blur", draw);
  let timer = 0;
  search.addEventListener("input", () => {
    found = new Set();
    draw();
    clearTimeout(timer);
    const words = search.value.trim();
    if (words === "") return;
    timer = setTimeout(async () => {
      const ids = await find(words, items.map(({ id }) => id)).catch(() => []);
      if (search.value.trim() !== words) return;
      found = new Set(ids);
      draw();
    }, TYPED_MS);
  });
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
    get title() {
      return item()?.title ?? "";
    },
    select,
    /** Something was said in the current chat, which then is the first of the list. */
    said(text) {
      put(current, text);
    },
    /** The current chat has something in it, which begins with this text; the list may not know it. */
    has(text) {
      if (!item()) put(current, text);
    },
    /** What to say of the current chat if there is nothing in it: how it came to be empty. */
    get absence() {
      if (item()?.isEmpty || (!item() && tab.read(begun) === current)) return null;
      return item()
        ? "This chat was deleted, or is not kept any more. What you write begins it again."
        : "There is no chat at this address: it was deleted, or the address is not complete. What you write begins a new one.";
    },
  };
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
