// Draws the charts of the page in the colours of its theme, again when the theme changes.
(() => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;

  const config = () => {
    const css = getComputedStyle(root);
    const colour = (name) => css.getPropertyValue("--" + name).trim();
    const quiet = colour("quiet");
    const text = { labelColor: quiet, titleColor: quiet, labelFont: "system-ui, sans-serif", titleFont: "system-ui, sans-serif", titleFontWeight: "normal" };
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      view: { stroke: null },
      axis: { ...text, gridColor: colour("line"), domainColor: colour("line"), tickColor: colour("line"), labelFontSize: 11, titleFontSize: 12 },
      axisX: { grid: false },
      legend: { ...text, labelLimit: 260, symbolType: "square" },
      range: { category: ["padding", "real", "boundary", "tokens"].map(colour) },
      style: {
        real: { color: colour("real") },
        other: { color: colour("other") },
        padding: { color: colour("padding") },
        line: { color: colour("real"), strokeWidth: 2 },
        tokens: { color: colour("tokens"), strokeWidth: 2 },
        boundary: { color: colour("boundary"), strokeWidth: 1.5, strokeDash: [4, 3] },
        target: { color: "transparent" },
        dots: { color: colour("real"), filled: true, size: 26, opacity: 1 },
        knee: { color: colour("boundary"), strokeWidth: 2.5, size: 160, opacity: 1 },
        gap: { color: colour("padding"), strokeWidth: 1.5 },
        note: { color: colour("ink"), fontSize: 12 },
      },
    };
  };

  const draw = async () => {
    root.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
    const places = [...document.querySelectorAll("[data-chart]")].filter((place) => specs[place.dataset.chart]);
    await Promise.all(places.map((place) =>
      vegaEmbed(place, structuredClone(specs[place.dataset.chart]), { actions: false, renderer: "svg", config: config(), tooltip: { theme: "custom" } })));
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
