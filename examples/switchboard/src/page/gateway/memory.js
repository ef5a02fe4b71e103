// What the gateway knows from a chat: a list below the field, with a button to forget each.

import { button, get, make, show } from "./page/dom.js";
import { request } from "./line.js";

/** A turn is learnt of after its answer: how often an open list looks. */
const LOOK_MS = 5000;

const [panel, list, remark] = ["memory", "memory-list", "memory-remark"].map(get);

/** `shown` returns the id of the chat that is shown. Returns what draws its list, if that is open. */
export function memory(shown) {
  async function draw() {
    if (!panel.open || document.hidden) return;
    const chat = shown();
    let known = [];
    let words = "Nothing yet. What matters later is learnt after an answer.";
    try {
      known = await (await request("GET", `chats/${chat}/memory`)).json();
    } catch (error) {
      words = error.message;
    }
    if (chat !== shown()) return;
    remark.hidden = known.length > 0;
    remark.textContent = words;
    const before = list.children.length;
    const entries = known.map((it) => entry(chat, it));
    const isSame = before === entries.length && entries.every((it, place) => it.isEqualNode(list.children[place]));
    if (!isSame) list.replaceChildren(...entries);
  }

  function entry(chat, { subject, relation, value }) {
    const name = `${show(subject)}, ${show(relation)}`;
    const away = button("remove", "×", async () => {
      try {
        await request("DELETE", `chats/${chat}/memory`, { subject, relation });
      } catch (error) {
        remark.textContent = `Not forgotten. ${error.message}`;
        remark.hidden = false;
        return;
      }
      panel.querySelector("summary").focus();
      draw();
    });
    away.setAttribute("aria-label", `Forget ${name}`);
    const line = make("li");
    line.append(make("span", "", `${name}: ${show(value)}`), away);
    return line;
  }

  panel.addEventListener("toggle", draw);
  setInterval(draw, LOOK_MS);
  return draw;
}
