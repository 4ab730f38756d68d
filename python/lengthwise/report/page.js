// Draws the charts of the page in the colours of its theme, again when the theme changes.
(() => {
  const data = (id) => JSON.parse(document.getElementById(id).textContent);
  const specs = data("charts");
  const configs = data("configs");
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;

  const draw = async () => {
    const theme = chosen ?? (dark.matches ? "dark" : "light");
    root.dataset.theme = theme;
    const places = [...document.querySelectorAll("[data-chart]")].filter((place) => specs[place.dataset.chart]);
    await Promise.all(places.map((place) =>
      vegaEmbed(place, structuredClone(specs[place.dataset.chart]),
        { actions: false, renderer: "svg", config: configs[theme], tooltip: { theme: "custom" } })));
    root.dataset.drawn = String(places.length);
  };

  dark.addEventListener("change", draw);
  document.getElementById("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    draw();
  });
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.nextElementSibling.textContent);
      button.textContent = "copied";
    });
  }
  draw();
})();
