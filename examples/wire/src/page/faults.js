// The faults of a running proxy.

/** Shows the rules of the proxy. */
function showFaults(rules) {
  get("tab-faults").hidden = false;
  setText(get("rules"), rules);
}
