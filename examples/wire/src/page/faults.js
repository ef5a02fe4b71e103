// The faults of a running proxy, switched by hand.

class Faults {
  constructor() {
    this.items = new Map();
    get("rule-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await this.send({ add: get("rule").value })) get("rule").value = "";
    });
  }

  /** Asks the proxy for a change. Returns whether it has agreed. */
  async send(change) {
    try {
      const { rules } = await ask("/rules", { method: "POST", body: JSON.stringify(change) });
      setText(get("rule-error"), "");
      this.show(rules);
      return true;
    } catch (error) {
      setText(get("rule-error"), printable(error.message));
      return false;
    }
  }

  show(rules) {
    get("tab-faults").hidden = false;
    const list = get("rules");
    for (const [id, item] of this.items) {
      if (rules.some((rule) => rule.id === id)) continue;
      item.remove();
      this.items.delete(id);
    }
    for (const rule of rules) {
      let item = this.items.get(rule.id);
      if (!item) {
        item = make("li");
        const label = make("label");
        const box = make("input");
        box.type = "checkbox";
        box.addEventListener("change", async () => {
          item.setAttribute("aria-busy", "true");
          await this.send({ id: rule.id, on: box.checked });
          item.removeAttribute("aria-busy");
        });
        label.append(box, make("code", "", rule.text));
        const remove = button("quiet", "Remove", () => this.send({ remove: rule.id }));
        remove.setAttribute("aria-label", `Remove ${rule.text}`);
        item.append(label, make("span", "small"), remove);
        this.items.set(rule.id, item);
        list.append(item);
      }
      item.querySelector("input").checked = rule.on;
      setText(item.querySelector("span"), rule.hits === 1 ? "happened once" : `happened ${rule.hits} times`);
    }
  }
}
