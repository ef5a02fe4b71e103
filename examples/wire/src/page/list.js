// A list of any length that has only those rows in the page that can be seen.

/** Rows beyond each edge. */
const SPARE = 6;

class List {
  /**
   * `draw(item, row)` fills a row, `chosen(item)` is called when the user has gone to an item, and `entered()` when
   * they want to see what is in it.
   */
  constructor(parent, label, { draw, chosen, entered }) {
    Object.assign(this, { draw, chosen, entered, items: [], selected: null, follows: true, rows: new Map() });
    this.scroller = make("div", "list");
    this.scroller.setAttribute("role", "listbox");
    this.scroller.setAttribute("aria-label", label);
    this.scroller.tabIndex = 0;
    this.space = make("div", "space");
    this.space.setAttribute("role", "presentation");
    this.empty = make("p", "small none", "Nothing here.");
    this.scroller.append(this.space);
    parent.append(this.empty, this.scroller);
    this.id = `${parent.id}-row`;
    this.scroller.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.scroller;
      this.follows = scrollHeight - scrollTop - clientHeight < this.height;
      this.paint();
    });
    this.scroller.addEventListener("keydown", (event) => this.pressed(event));
    this.space.addEventListener("click", (event) => {
      const row = event.target.closest("[role=option]");
      if (row) this.choose(Number(row.dataset.place));
    });
    new ResizeObserver(() => this.paint()).observe(this.scroller);
  }

  /** The height of a row in pixels. */
  get height() {
    return matchMedia("(max-width: 40rem)").matches ? 48 : 26;
  }

  /** Shows these items. The same array may be shown again with more in it, or less at its start. */
  show(items) {
    const first = items[0]?.n ?? 0;
    // What is forgotten at the start must not move what somebody reads.
    if (items === this.items && !this.follows && first > this.first) {
      this.scroller.scrollTop -= this.height * Math.max(0, this.length - items.length);
    }
    Object.assign(this, { items, first, length: items.length });
    this.paint();
  }

  paint() {
    const { height, items } = this;
    const view = this.scroller.clientHeight;
    this.empty.hidden = items.length > 0;
    this.scroller.hidden = items.length === 0;
    if (view === 0 || items.length === 0) return;
    const total = `${items.length * height}px`;
    if (this.space.style.height !== total) this.space.style.height = total;
    if (this.follows && this.live) this.scroller.scrollTop = items.length * height;
    const top = this.scroller.scrollTop;
    const from = Math.max(0, Math.floor(top / height) - SPARE);
    const to = Math.min(items.length, Math.ceil((top + view) / height) + SPARE);
    this.shown = items.slice(Math.floor(top / height), Math.ceil((top + view) / height));
    this.before?.(this.shown);
    const unused = [];
    for (const [place, row] of this.rows) {
      if (place < from || place >= to) {
        unused.push(row);
        this.rows.delete(place);
      }
    }
    for (let place = from; place < to; place++) {
      const item = items[place];
      const row = this.rows.get(place) ?? unused.pop() ?? this.row();
      this.rows.set(place, row);
      row.id = `${this.id}-${place}`;
      row.dataset.place = place;
      row.style.transform = `translateY(${place * height}px)`;
      row.setAttribute("aria-setsize", items.length);
      row.setAttribute("aria-posinset", place + 1);
      row.setAttribute("aria-selected", item.n === this.selected);
      this.draw(item, row);
    }
    for (const row of unused) row.remove();
    const place = this.place();
    if (this.rows.has(place)) this.scroller.setAttribute("aria-activedescendant", `${this.id}-${place}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  row() {
    const row = make("div", "item");
    row.setAttribute("role", "option");
    this.space.append(row);
    return row;
  }

  /** The place of the selected item, or where it would be. */
  place() {
    return this.selected === null ? -1 : placeOf(this.items, this.selected);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
    const at = this.place();
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: Infinity }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (to !== undefined) {
      event.preventDefault();
      this.choose(Math.min(Math.max(0, to), this.items.length - 1));
    } else if (event.key === "Enter" && this.items[at]) {
      event.preventDefault();
      this.entered();
    }
  }

  choose(place) {
    const item = this.items[place];
    if (!item) return;
    this.select(item.n);
    this.chosen(item);
  }

  /** Selects the item of a line, and brings it into view if it is there. */
  select(n) {
    this.selected = n;
    const place = this.place();
    if (this.items[place]?.n === n) {
      const { scrollTop, clientHeight } = this.scroller;
      const top = place * this.height;
      if (top < scrollTop || top + this.height > scrollTop + clientHeight) {
        this.scroller.scrollTop = top - clientHeight / 2 + this.height;
      }
      this.follows = false;
    }
    this.paint();
  }
}
