// The conversation on the screen: it follows what comes, unless the user has scrolled up; it tells screen readers what
// is complete; and its buttons copy and ask again.

import { answerOf, notice } from "./answer.js";
import { copy, get, make, setText } from "./dom.js";

/** Most questions and answers on the page; the oldest go first. */
const MAX_ARTICLES = 1000;
/** So close to the end counts as there, in pixels. */
const NEAR = 48;
/** How long a button says that it has copied. */
const COPIED_MS = 2000;
/** How often an answer is looked at until all of it is rendered. */
const RENDERED_MS = 200;
/** The longest text that is read out. */
const MAX_READ = 4000;

const [log, hint, scroller, jump, announcer, statusLine, retry] =
  ["log", "hint", "scroller", "jump", "announcer", "status", "retry"].map(get);

// --- the end of the conversation ----------------------------------------------------------------

let follows = true;
/** Where the user is, and the farthest place to be, when that was last known. */
let [top, end] = [0, 0];

const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;

/** Follows from here on. */
export function toEnd() {
  follows = true;
  stay();
}

/** Stays at the end, if that is where the user is. */
export function stay() {
  if (follows) {
    scroller.scrollTop = scroller.scrollHeight;
    // So that this is not taken for the user's doing.
    top = scroller.scrollTop;
  }
  end = scroller.scrollHeight - scroller.clientHeight;
  jump.hidden = follows || atEnd();
}

scroller.addEventListener("scroll", () => {
  const [wentUp, wentDown] = [scroller.scrollTop < top - 1, scroller.scrollTop > top];
  top = scroller.scrollTop;
  // Whoever came to what was the end follows, though it has moved on. Near the end, what shrinks scrolls up, too, so
  // there the user is asked: see below.
  if (wentDown && top > end - NEAR) follows = true;
  else if (wentUp && !atEnd()) follows = false;
  jump.hidden = follows || atEnd();
}, { passive: true });

/** Whoever begins to scroll up is not pulled back. */
function leave() {
  if (scroller.scrollTop > 0) follows = false;
}

let finger = 0;
for (const name of ["touchstart", "touchmove"]) {
  scroller.addEventListener(name, ({ touches: [{ clientY }] }) => {
    if (name === "touchmove" && clientY > finger) leave();
    finger = clientY;
  }, { passive: true });
}
scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && leave(), { passive: true });
scroller.addEventListener("keydown", ({ key }) => ["ArrowUp", "PageUp", "Home"].includes(key) && leave());

jump.addEventListener("click", () => {
  toEnd();
  get("input").focus();
});

// What is unfolded is looked at where it is.
log.addEventListener("click", ({ target }) => {
  if (target.closest("summary")) follows = false;
});

const observer = new ResizeObserver(stay);
observer.observe(log);
observer.observe(scroller);

// --- what is shown ------------------------------------------------------------------------------

const dropped = notice("What was said before is not shown here.");

export function add(...articles) {
  replaceAll([...log.children, ...articles]);
}

/** Shows these questions and answers, and leaves where they are those that are shown already. */
export function replaceAll(articles) {
  const many = articles.filter((it) => it !== dropped);
  const shown = many.length > MAX_ARTICLES ? [dropped, ...many.slice(-MAX_ARTICLES)] : many;
  const stays = new Set(shown);
  for (const old of [...log.children]) if (!stays.has(old)) old.remove();
  shown.forEach((element, place) => {
    if (log.children[place] !== element) log.insertBefore(element, log.children[place] ?? null);
  });
  hint.hidden = shown.length > 0;
}

/** Says something to screen readers. */
export function announce(text) {
  announcer.replaceChildren(make("p", "", text.slice(0, MAX_READ)));
}

/** Says an answer that is complete, once it is rendered. */
export function announceAnswer(element) {
  setTimeout(() => {
    if (element.querySelector(".pending") !== null) return announceAnswer(element);
    const said = [...element.querySelectorAll(".markdown, .notice, .failure > p")].map((part) => {
      const words = part.cloneNode(true);
      for (const head of words.querySelectorAll(".code > .head")) head.remove();
      return words.textContent;
    });
    announce(`Agent: ${said.join("\n")}`);
  }, RENDERED_MS);
}

/** The state of the connection: connecting, ready, lost, or a word of the page's own. */
export function setStatus(state, text) {
  statusLine.dataset.state = state;
  setText(get("status-text"), text);
  retry.hidden = state !== "lost";
}

export const stateNow = () => statusLine.dataset.state;

// --- buttons ------------------------------------------------------------------------------------

async function copyFrom(pressed, text) {
  await copy(text);
  pressed.textContent = "Copied";
  announce("Copied");
  setTimeout(() => (pressed.textContent = "Copy"), COPIED_MS);
}

/** Calls `ask` with the element of the question whose answer is to be tried again. */
export function onAgain(ask) {
  log.addEventListener("click", ({ target }) => {
    if (!target.matches("button.again")) return;
    let before = target.closest("article").previousElementSibling;
    while (before !== null && !before.matches(".user")) before = before.previousElementSibling;
    if (before !== null) ask(before);
  });
}

log.addEventListener("click", ({ target }) => {
  if (target.matches("button.copy-code")) {
    copyFrom(target, target.closest(".code").querySelector("code").textContent);
  } else if (target.matches("button.copy")) {
    copyFrom(target, answerOf(target.closest("article")));
  }
});
