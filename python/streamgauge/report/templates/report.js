"use strict";
(() => {
  const darkly = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (darkly.matches ? "dark" : "light");
  const drawn = new Map();

  function painted(text, wanted) {
    if (wanted !== "dark") return text;
    return text.replace(/"#[0-9A-Fa-f]{6}"/g, (colour) => {
      const other = IN_THE_DARK[colour.slice(1, -1)];
      return other ? `"${other}"` : colour;
    });
  }

  // Nothing here waits for more than promises that are ready, so a page about to be printed is completed in time.
  async function draw(figure, wanted) {
    const before = drawn.get(figure);
    if (before?.wanted === wanted) return before.view;
    const entry = { wanted };
    drawn.set(figure, entry);
    const { spec, columns, rows } = JSON.parse(painted(figure.querySelector("script").textContent, wanted));
    const values = rows.map((row) => Object.fromEntries(row.map((value, i) => [columns[i], value])));
    const whole = { ...spec, data: { values }, config: THEMES[wanted] };
    const place = figure.querySelector(".chart");
    entry.view = vegaEmbed(place, whole, {
      mode: "vega-lite", renderer: "svg", actions: false, tooltip: { theme: wanted },
    }).then(({ view }) => {
      const svg = place.querySelector("svg");
      if (svg) { svg.style.width = ""; svg.style.height = ""; }
      return view;
    });
    (await before?.view)?.finalize();
    return entry.view;
  }

  function offer(figure) {
    const button = document.createElement("button");
    button.textContent = "Save as SVG";
    button.addEventListener("click", async () => {
      const view = await draw(figure, "light");
      const link = document.createElement("a");
      link.download = `${figure.id}.svg`;
      link.href = await view.toImageURL("svg");
      link.click();
      draw(figure, theme());
    });
    figure.querySelector("figcaption").append(" ", button);
  }

  const figures = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector("script"));
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) draw(target, theme());
  }, { rootMargin: "800px" });
  for (const figure of figures) { offer(figure); watcher.observe(figure); }

  // What is far from view is drawn one by one whenever the browser has nothing better to do.
  const idly = window.requestIdleCallback
    ? (work) => window.requestIdleCallback(work, { timeout: 500 })
    : (work) => setTimeout(work, 50);
  async function drawRest() {
    const next = figures.find((figure) => !drawn.has(figure));
    if (!next) return;
    await draw(next, theme());
    idly(drawRest);
  }
  idly(drawRest);
  darkly.addEventListener("change", () => { for (const figure of drawn.keys()) draw(figure, theme()); });
  window.addEventListener("beforeprint", () => { for (const figure of figures) draw(figure, "light"); });
  window.addEventListener("afterprint", () => { for (const figure of drawn.keys()) draw(figure, theme()); });
})();
