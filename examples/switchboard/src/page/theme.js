// Light, dark or as the system is. It is set before the page is shown, so this script is no module.

{
  const PLACE = "theme";
  const NAMES = ["system", "light", "dark"];
  const root = document.documentElement;

  const kept = () => {
    try {
      return localStorage.getItem(PLACE);
    } catch {
      return null;
    }
  };

  const show = (name) => {
    root.dataset.theme = NAMES.includes(name) ? name : "system";
    const button = document.getElementById("theme");
    if (button) button.textContent = `Colours: ${root.dataset.theme}`;
  };

  show(kept());
  addEventListener("storage", ({ key }) => key === PLACE && show(kept()));
  document.addEventListener("DOMContentLoaded", () => {
    show(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const next = NAMES[(NAMES.indexOf(root.dataset.theme) + 1) % NAMES.length];
      try {
        localStorage.setItem(PLACE, next);
      } catch {
        // It lasts until a reload.
      }
      show(next);
    });
  });
}
