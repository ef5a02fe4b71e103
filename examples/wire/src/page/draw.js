// The rows of the lists.

/** Sets the texts of a row that has these classes, and makes it if it is new. */
function cells(row, texts) {
  if (row.childElementCount === 0) for (const [name] of texts) row.append(make("span", name));
  texts.forEach(([, text], at) => setText(row.children[at], text));
}

/** As much of a text as fits into a row. */
const start = (text) => printable(text.length > 300 ? `${text.slice(0, 300)}…` : text).trim();

function drawFrame(row, element) {
  element.className = row.problem !== undefined ? "item bad" : isUnknown(row) ? "item odd" : "item";
  cells(element, [
    ["line", String(row.n)],
    ["time", row.at.toFixed(3)],
    ["conn", `#${row.conn}`],
    ["arrow", ARROWS[row.dir] ?? "·"],
    ["kind", start(row.kind)],
    ["words", start(row.problem === undefined ? row.words : `${row.problem} · ${row.words}`)],
    ["after", row.answers ? millis(row.answers.after) : ""],
  ]);
}

const took = ({ state, last, at }) => (state === "pending" || state === "unanswered" ? state : millis(last - at));

/** Calls in view, with the times that their bars are drawn between. */
class Bars {
  /** Scales the bars so that those of these calls fit. */
  fit(calls, now) {
    this.from = Math.min(...calls.map((call) => call.at));
    this.to = Math.max(...calls.map((call) => call.last ?? call.at), this.from + 0.001);
    if (calls.some((call) => call.state === "pending")) this.to = Math.max(this.to, now);
    const scale = get("scale").children;
    [this.from, (this.from + this.to) / 2, this.to].forEach((at, index) => setText(scale[index], `${at.toFixed(3)} s`));
  }

  draw(call, element) {
    element.className = `item call ${call.state}`;
    cells(element, [
      ["line", String(call.n)],
      ["conn", `#${call.row.conn}`],
      ["arrow", ARROWS[call.row.dir] ?? "·"],
      ["kind", start(`${call.row.kind} ${call.row.call}`)],
      ["bars", ""],
      ["after", took(call)],
    ]);
    const track = element.children[4];
    if (track.childElementCount === 0) track.append(make("span", "wait"), make("span", "bar"));
    const [wait, bar] = track.children;
    const part = (at) => (100 * Math.max(0, at - this.from)) / (this.to - this.from);
    const isOpen = call.state === "pending" || call.state === "unanswered";
    const first = call.first ?? (isOpen ? this.to : call.at);
    const last = isOpen ? this.to : (call.last ?? call.at);
    const set = (it, from, to) => {
      it.style.left = `${Math.min(100, part(from))}%`;
      it.style.width = `${Math.max(0, Math.min(100, part(to)) - Math.min(100, part(from)))}%`;
    };
    set(wait, call.at, first);
    set(bar, first, last);
  }
}
