// What is in the selected frame.

const seconds = (at) => `${at.toFixed(6)} s`;
const millis = (time) => (time < 0.01 ? `${(time * 1000).toFixed(2)} ms` : time < 10 ? `${(time * 1000).toFixed(0)} ms` : `${time.toFixed(1)} s`);
const ARROWS = { c2s: "→", s2c: "←" };
const SIDES = { c2s: "client to server", s2c: "server to client" };

/** Controls, and characters that reorder what stands around them, as escapes. */
const printable = (text) =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (it) => `\\u{${it.codePointAt(0).toString(16)}}`);

/** A text of a peer as it is, which may be wider than the page. */
function verbatim(className, label, text) {
  const pre = make("pre", className, text);
  pre.tabIndex = 0;
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", label);
  return pre;
}

/** Shows a frame in `section`. `go(n)` goes to the frame of another line. */
function showDetail(section, row, call, go) {
  const head = make("div", "head");
  const title = make("h2", "", `Frame ${row.n}: ${printable(row.kind)}`);
  const link = make("a", "", "Link to this frame");
  link.href = `#frame-${row.n}`;
  head.append(title, link, button("quiet", "Copy", () => copy(row.data ?? row.words)));
  const parts = [head];
  if (row.problem !== undefined) parts.push(make("p", "wrong", printable(row.problem)));
  if (row.place) {
    const [text, column] = row.place;
    parts.push(verbatim("place", "Where it is wrong", `${text}\n${" ".repeat(column)}^`));
  }
  if (row.unknown_kind) parts.push(make("p", "odd", "The kind is not known."));
  for (const path of row.unknown ?? []) parts.push(make("p", "odd", `The member ${printable(path)} is not known.`));
  const facts = make("dl");
  const fact = (name, ...value) => {
    const dd = make("dd");
    dd.append(...value);
    facts.append(make("dt", "", name), dd);
  };
  fact("Time", seconds(row.at));
  fact("Connection", String(row.conn));
  if (row.dir) fact("Direction", SIDES[row.dir]);
  if (row.code !== undefined) fact("Code", String(row.code));
  if (row.call !== undefined) fact("Call", printable(row.call));
  const goTo = (n, text) => button("quiet", text, () => go(n));
  if (row.answers) {
    const { line, kind, after } = row.answers;
    fact("Answers", goTo(line, `frame ${line}, ${printable(kind)}`), ` after ${millis(after)}`);
  }
  if (call) {
    const some = call.lines.slice(0, 20).map((n) => goTo(n, `frame ${n}`));
    const more = call.lines.length > some.length ? ` and ${call.lines.length - some.length} more` : "";
    fact("Answered by", ...(some.length > 0 ? some : ["nothing"]), more);
    fact("State", call.state + (call.last === null ? "" : `, ${millis(call.last - call.at)}`));
  }
  parts.push(facts);
  if (row.redacted) parts.push(make("p", "small", "Secrets are left out. The option --show shows them."));
  const text = row.data ?? "";
  const value = row.entry === "text" || row.entry === "sse" ? parse(text) : undefined;
  if (value !== undefined && (!isFolded(value) || Object.keys(value).length > 0)) parts.push(tree(value, "Contents"));
  else if (text !== "") {
    const shown = text.length > 100000 ? `${text.slice(0, 100000)}… (${text.length} characters)` : text;
    parts.push(verbatim("raw", "Contents", shown));
  } else parts.push(make("p", "", printable(row.words)));
  section.replaceChildren(...parts);
}
