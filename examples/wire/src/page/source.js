// Where frames come from: the program that serves the page, a file that the user opens, or the page itself.

/** How long the program is left alone when it has nothing new, in milliseconds. */
const PAUSE = 120;
/** How much of a file is sent at once, in bytes. */
const PIECE = 256 * 1024;

/** Waits. */
const sleep = (ms) => new Promise((then) => setTimeout(then, ms));

async function ask(path, options) {
  const answer = await fetch(path, { ...options, cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
  return answer.json();
}

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
        const news = await ask(`/rows?after=${this.after}`);
        if (this.isOver) return;
        const { rows } = news;
        // Another run of the program has begun from the start.
        if (news.last < this.after) {
          this.model.clear();
          this.after = 0;
          continue;
        }
        this.after = rows.at(-1)?.n ?? this.after;
        await this.model.add(rows);
        // What the program has forgotten before it was asked for.
        this.model.dropped = Math.max(this.model.dropped, news.dropped);
        more = news.more;
        if (news.complete && !more) await this.model.end();
        this.told(news);
        if (news.complete && !more) return;
      } catch (error) {
        this.told({ error: `The program does not answer: ${error.message}` });
        await sleep(1000);
      }
      if (!more) await sleep(PAUSE);
    }
  }
}

/** Returns what a file holds that is compressed, or the file itself. */
async function unzipped(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (first !== 0x1f || second !== 0x8b) return file;
  const plain = new Response(file.stream().pipeThrough(new DecompressionStream("gzip")));
  return new File([await plain.blob()], file.name);
}

/** The frames of a file, which the program explains. */
class Opened {
  constructor(model, told, file) {
    Object.assign(this, { model, told, file, isOver: false });
  }

  async run() {
    let { file } = this;
    const id = randomId();
    try {
      file = await unzipped(file);
    } catch (error) {
      this.told({ error: `${file.name} cannot be opened: ${error.message}` });
      return;
    }
    for (let at = 0; at === 0 || at < file.size; at += PIECE) {
      const isLast = at + PIECE >= file.size;
      let news;
      try {
        const body = await file.slice(at, at + PIECE).arrayBuffer();
        news = await ask(`/explain?id=${id}${isLast ? "&last" : ""}`, { method: "POST", body });
      } catch (error) {
        if (!this.isOver) this.told({ error: `${file.name} cannot be opened: ${error.message}` });
        return;
      }
      if (this.isOver) return;
      await this.model.add(news.rows);
      if (isLast) await this.model.end();
      this.told({ ...news, name: file.name, complete: isLast, part: Math.min(1, (at + PIECE) / file.size) });
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
      await this.model.add(lines.map((line) => JSON.parse(line)));
      await turn();
    }
    await this.model.end();
    this.told({ ...about, complete: true });
  }
}
