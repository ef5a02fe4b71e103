// The faults of a running proxy, changed by hand.

class Faults {
  constructor() {
    this.text = "";
    get("rule-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await post("/faults", get("rules").value);
        setText(get("rule-error"), "");
      } catch (error) {
        setText(get("rule-error"), printable(error.message));
      }
    });
  }

  /** Shows the rules of the proxy, unless they are as before: the user may be writing. */
  show(text) {
    get("tab-faults").hidden = false;
    if (text !== this.text) get("rules").value = this.text = text;
  }
}
