// Where frames come from: the program that serves the page, or the page itself.

/** How long the program is left alone when it has nothing new, in milliseconds. */
const PAUSE = 120;

/** A row of the program. The page calls the number of its line `n`. */
const named = ({ line, ...row }) => ({ n: line, ...row });

/** Waits. */
const sleep = (ms) => new Promise((then) => setTimeout(then, ms));

async function ask(path, options) {
  const answer = await fetch(path, { ...options, cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
  return answer;
}

/** Sends the program a text or a file. */
const post = (path, body) => ask(path, { method: "POST", body });

/** Frames of the program, as they come. */
class Live {
  constructor(model, told) {
    Object.assign(this, { model, told, after: 0, isPaused: false, isOver: false });
  }

  async run() {
    while (!this.isOver) {
      if (this.isPaused) {
        await sleep(PAUSE);
        continue;
      }
      let more = false;
      try {
        const news = await (await ask(`/rows?after=${this.after}`)).json();
        if (this.isOver) return;
        const rows = news.rows.map(named);
        // Another run of the program has begun from the start, or it shows another recording.
        if (news.last < this.after || news.name !== (this.name ??= news.name)) {
          this.model.clear();
          Object.assign(this, { after: 0, name: news.name });
          continue;
        }
        this.after = rows.at(-1)?.n ?? this.after;
        await this.model.add(rows);
        // What the program has forgotten before it was asked for.
        this.model.dropped = Math.max(this.model.dropped, news.dropped);
        more = news.more;
        const complete = news.complete && !more;
        if (complete) await this.model.end();
        this.told({ ...news, rows, complete });
        if (complete) return;
      } catch (error) {
        this.told({ error: `The program does not answer: ${error.message}` });
        await sleep(1000);
      }
      if (!more) await sleep(PAUSE);
    }
  }
}

/** The frames that the page itself has: it was saved with them. */
class Inlined {
  constructor(model, told, elements) {
    Object.assign(this, { model, told, elements, isOver: false });
  }

  async run() {
    let about = {};
    for (const element of this.elements) {
      const lines = element.textContent.split("\n").filter((line) => line !== "");
      element.remove();
      if (element === this.elements[0]) about = JSON.parse(lines.shift());
      await this.model.add(lines.map((line) => named(JSON.parse(line))));
      await turn();
    }
    await this.model.end();
    this.told({ ...about, complete: true });
  }
}
