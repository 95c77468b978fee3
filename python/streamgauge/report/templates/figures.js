// Figures. Each is in the page as a picture that needs no script (`streamgauge.report.placing`); this makes more of
// it: values where the pointer is, a stretch of time to choose, lines to hide, files to save, a narrow form.
//
// <figure id data-axis data-scenario?>
//   <div class="chart"><svg class="marks">      groups "plotN_MODE_group", one a plot, as the specification names them
//   <figcaption>
//   <script class="figure-data">                {spec, columns, data, single?}: `DrawnFigure.to_json`
//   <script class="series">                     of the figure over time of each scenario, for tables: series.js
//
// Events of the document: "streamgauge:window" {begin, end} in s when a stretch of time is chosen, null twice when it
// is given up. Who dispatches one chooses it: figures shade what it says. "streamgauge:at" {at} in s, or null, as
// the crosshair moves. For tests: data-window and data-at of the root element say the same, data-ready of a figure
// that it listens, data-narrow that it was drawn anew.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const TIME = "time_s";
  const CHANGED = "streamgauge:window";
  const HINT = "Point at a plot for values and single trials; drag to choose a time, double-click to give it up.";

  const PARTS = new Set(["line", "thin", "bar", "bound"]);

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const named = (text) => (text.length <= 24 ? text : `${text.slice(0, 23)}…`);

  function said(value) {
    if (value === null || value === undefined) return "";
    const size = Math.abs(value);
    return size >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
  }

  function element(name, attributes = {}, text = "") {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  }

  // Columns of a figure: text comes as runs.
  function columnsOf({ columns, data }) {
    const plain = data.map((column) =>
      Array.isArray(column[0]) ? column.flatMap(([value, count]) => Array(count).fill(value)) : column);
    return Object.fromEntries(columns.map((name, i) => [name, plain[i]]));
  }

  class Figure {
    constructor(place) {
      this.place = place;
      this.chart = place.querySelector(".chart");
      this.svg = this.chart.querySelector("svg");
      this.width = Number(this.svg.getAttribute("width"));
      this.axis = place.dataset.axis;
      this.hidden = new Set();
      this.isVisible = false;
      this.active = 0;
    }

    get data() {
      return (this.parsed ??= JSON.parse(this.place.querySelector("script.figure-data").textContent));
    }

    get meta() {
      return this.data.spec.usermeta?.streamgauge ?? {};
    }

    get columns() {
      return (this.unpacked ??= columnsOf(this.data));
    }

    // The plots with their lines: points are [x, y, low, high], bars [begin, end, share].
    get plots() {
      if (this.read) return this.read;
      const { meta, columns } = this;
      if (!meta.plots) return (this.read = []);
      const [x, y] = [columns[meta.x ?? TIME], columns[meta.y ?? "value"]];
      const low = meta.y ? [] : columns.low, high = meta.y ? [] : columns.high;
      const plots = (meta.plots ?? []).map((plot) => ({ ...plot, lines: new Map() }));
      const byKey = new Map(plots.map((plot) => [`${plot.panel}\n${plot.mode}`, plot]));
      for (let i = 0; i < x.length; i++) {
        const plot = byKey.get(`${columns.panel[i]}\n${columns.mode[i]}`);
        if (!plot) continue;
        const name = columns.series[i], part = columns.part?.[i] ?? "line";
        if (!PARTS.has(part)) continue;
        if (!plot.lines.has(name)) plot.lines.set(name, { name, part, points: [] });
        plot.lines.get(name).points.push(
          part === "bar" ? [x[i], columns.end_s[i], y[i]] : [x[i], y[i], low?.[i], high?.[i]]);
      }
      return (this.read = plots);
    }

    colour(name) {
      return this.meta.colours?.[name] ?? "#777777";
    }

    // Where a plot is in the picture: its group, and its size there.
    frame(plot) {
      const group = this.svg.querySelector(`.${CSS.escape(`${plot.name}_group`)} > g`);
      const size = group?.querySelector("path.background")?.getAttribute("d").match(/h([\d.]+)v([\d.]+)/);
      return size ? { group, width: Number(size[1]), height: Number(size[2]) } : null;
    }

    overlay(frame) {
      let found = frame.group.querySelector(":scope > .overlay");
      if (!found) frame.group.append((found = element("g", { class: "overlay" })));
      return found;
    }

    // The plot below a point of the screen, or next to it, and the place on its axis.
    at(event) {
      let best = null;
      this.plots.forEach((plot, index) => {
        const frame = this.frame(plot);
        if (!frame) return;
        const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(frame.group.getScreenCTM().inverse());
        if (here.x < -8 || here.x > frame.width + 8) return;
        const off = Math.max(-here.y, here.y - frame.height, 0);
        const [begin, end] = plot.domain;
        const value = begin + (clamp(here.x, 0, frame.width) / frame.width) * (end - begin);
        if (!best || off < best.off) best = { index, off, value };
      });
      return best;
    }

    // Draws rule, values, the stretch that is chosen, and the single trials of the plot pointed at.
    paint(state) {
      const at = state.axis === this.axis && (this.axis === TIME || state.figure === this) ? state.at : null;
      const chosen = this.axis === TIME ? state.window : null;
      const lowest = new Map(this.plots.map((plot) => [plot.mode, plot]));
      this.plots.forEach((plot, index) => {
        const frame = this.frame(plot);
        if (!frame) return;
        const parts = [];
        const [begin, end] = plot.domain;
        const place = (value) => ((value - begin) / (end - begin)) * frame.width;
        if (chosen && chosen.begin < end && chosen.end > begin) {
          const from = place(Math.max(chosen.begin, begin)), to = place(Math.min(chosen.end, end));
          parts.push(element("rect", { class: "chosen", x: from, y: 0, width: Math.max(to - from, 0.5), height: frame.height }));
        }
        const isActive = state.figure === this && this.active === index;
        if (isActive && at !== null) parts.push(...this.trials(plot, frame));
        if (at !== null && at >= begin && at <= end) {
          parts.push(element("line", { class: "rule", x1: place(at), x2: place(at), y1: 0, y2: frame.height }));
          parts.push(...this.values(plot, frame, at, isActive));
          if (lowest.get(plot.mode) === plot && this.axis === TIME) {
            const text = `${said(at)} s`, half = 3.4 * text.length + 3;
            parts.push(element("rect", { class: "ground", x: place(at) - half, y: frame.height + 2, width: 2 * half, height: 14 }));
            parts.push(element("text", { class: "at", x: place(at), y: frame.height + 13, "text-anchor": "middle" }, text));
          }
        }
        const overlay = this.overlay(frame);
        if (parts.length || overlay.firstChild) overlay.replaceChildren(...parts);
      });
    }

    // The point of each line that is next to a place on the axis.
    nearest(plot, at) {
      const found = [];
      for (const { name, part, points } of plot.lines.values()) {
        if (this.hidden.has(name) || !points.length) continue;
        if (part === "bar") {
          const bar = points.find(([begin, end]) => at >= begin && at < end);
          found.push({ name, part, value: bar ? bar[2] : 0 });
          continue;
        }
        if (part === "bound") {
          const corner = points.findLast(([x]) => x <= at) ?? points[0];
          found.push({ name, part, x: at, value: corner[1] });
          continue;
        }
        let low = 0, high = points.length - 1;
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          if (points[middle][0] <= at) low = middle; else high = middle;
        }
        const best = Math.abs(points[low][0] - at) <= Math.abs(points[high][0] - at) ? points[low] : points[high];
        const apart = points.length > 1 ? (points.at(-1)[0] - points[0][0]) / (points.length - 1) : Infinity;
        if (best[1] === null || Math.abs(best[0] - at) > Math.max(2 * apart, 0)) continue;
        found.push({ name, part, x: best[0], value: best[1], low: best[2], high: best[3] });
      }
      return found;
    }

    values(plot, frame, at, isActive) {
      const [begin, end] = plot.domain;
      const place = (value) => ((value - begin) / (end - begin)) * frame.width;
      const parts = [], labels = [];
      for (const one of this.nearest(plot, at)) {
        const colour = this.colour(one.name);
        const row = plot.bars?.indexOf(one.name) ?? -1;
        const y = row >= 0
          ? ((row + 0.55) / plot.bars.length) * frame.height
          : frame.height * (1 - one.value / plot.top);
        if (y < 0) continue;
        if (row < 0) parts.push(element("circle", { class: "dot", cx: place(one.x), cy: y, r: 2.8, fill: colour }));
        let text = row >= 0 ? `${said(one.value)} %` : said(one.value);
        if (isActive && typeof one.low === "number") text += ` (${said(one.low)} to ${said(one.high)})`;
        labels.push({ y, text, colour });
      }
      labels.sort((a, b) => a.y - b.y);
      for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + 10.5);
      const over = labels.length ? labels.at(-1).y - frame.height : 0;
      const isLeft = place(at) > frame.width - (isActive ? 110 : 44);
      for (const { y, text, colour } of labels) {
        parts.push(element("text", {
          x: place(at) + (isLeft ? -6 : 6), y: y - Math.max(over, 0) + 3.5, fill: colour,
          "text-anchor": isLeft ? "end" : "start",
        }, text));
      }
      return parts;
    }

    // Courses of single trials, a byte a point (`streamgauge.report.multiples`).
    trials(plot, frame) {
      const single = this.data.single, mine = single?.plots[plot.name];
      if (!mine) return [];
      const times = single.others[plot.name] ?? single.times, [begin, end] = plot.domain;
      const parts = [];
      for (const [name, trials] of Object.entries(mine)) {
        if (this.hidden.has(name)) continue;
        for (const trial of trials) {
          const bytes = atob(trial);
          let path = "", isOpen = false;
          for (let i = 0; i < bytes.length; i++) {
            const step = bytes.charCodeAt(i);
            if (step === 255) { isOpen = false; continue; }
            const x = (((times[i] - begin) / (end - begin)) * frame.width).toFixed(1);
            path += `${isOpen ? "L" : "M"}${x},${(frame.height * (1 - step / 250)).toFixed(1)}`;
            isOpen = true;
          }
          parts.push(element("path", { class: "trial", d: path, stroke: this.colour(name) }));
        }
      }
      return parts;
    }

    words(at) {
      const plot = this.plots[this.active];
      const told = this.nearest(plot, at).map(({ name, value, low, high }) =>
        `${name} ${said(value)}${typeof low === "number" ? ` (${said(low)} to ${said(high)})` : ""}`);
      return `${plot.panel}, ${plot.mode}, at ${said(at)}: ${told.join("; ") || "nothing"}`;
    }

    // Hides or shows a line wherever it is.
    toggle(name) {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      this.dress();
    }

    // A layer has a group for each of its series, in the order of the data.
    dress() {
      for (const plot of this.plots) {
        const isGone = (name) => this.hidden.has(name);
        for (const part of ["line", "thin", "bound"]) {
          const names = [...plot.lines.values()].filter((line) => line.part === part).map((line) => line.name);
          const layers = part === "line" ? ["line", "band"] : [part];
          for (const layer of layers) {
            const groups = this.svg.querySelectorAll(`.${CSS.escape(`${plot.name}_${layer}_pathgroup`)} > g`);
            groups.forEach((group, i) => { group.style.display = isGone(names[i]) ? "none" : ""; });
          }
        }
        const bars = [...plot.lines.values()].filter((line) => line.part === "bar");
        const owners = bars.flatMap((line) => line.points.map(() => line.name));
        this.svg.querySelectorAll(`.${CSS.escape(`${plot.name}_bar_marks`)} > path`).forEach((bar, i) => {
          bar.style.display = isGone(owners[i]) ? "none" : "";
        });
        const labels = this.svg.querySelectorAll(`.${CSS.escape(`${plot.name}_words_marks`)} > text`);
        for (const label of labels) {
          const name = [...plot.lines.keys()].find((one) => named(one) === label.textContent);
          if (name !== undefined) label.style.opacity = isGone(name) ? 0.35 : "";
        }
      }
      for (const button of this.place.querySelectorAll("button[data-series]")) {
        button.setAttribute("aria-pressed", String(!this.hidden.has(button.dataset.series)));
      }
    }

    get series() {
      return [...new Set(this.plots.flatMap((plot) => [...plot.lines.keys()]))];
    }

    // As a specification with its data.
    get whole() {
      const { columns } = this;
      const names = Object.keys(columns);
      const values = columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
      return { ...this.data.spec, data: { values }, config: THEME };
    }

    // In a narrow place: what stands side by side goes below one another, as wide as there is room.
    async fit() {
      const room = this.chart.clientWidth;
      if (!room || this.fitted === room) return;
      this.fitted = room;
      this.wide ??= this.svg;
      if (room >= 0.8 * this.width) {
        if (this.svg !== this.wide) { this.svg.replaceWith(this.wide); this.svg = this.wide; }
        delete this.place.dataset.narrow;
      } else {
        if (await this.redraw(room)) this.place.dataset.narrow = String(room);
      }
      this.dress();
      paintSoon();
    }

    // Whether it did: not if it was made for another room meanwhile, or to tell its values.
    async redraw(room) {
      const before = this.svg;
      const { view } = await embed(document.createElement("div"), narrow(this.whole, room, this.meta));
      const holder = document.createElement("div");
      holder.innerHTML = (await view.toSVG()).replace(/\bclip\d+\b/g, (clip) => `${this.place.id}-narrow-${clip}`);
      view.finalize();
      const svg = holder.querySelector("svg");
      // The chart around it has the name.
      svg.setAttribute("aria-hidden", "true");
      await released;
      if (this.fitted !== room || this.svg !== before) return false;
      this.svg.replaceWith(svg);
      this.svg = svg;
      return true;
    }

    // Bars and points tell their values themselves when they are pointed at.
    async tell() {
      if (this.told || this.axis) return;
      this.told = true;
      const room = this.chart.clientWidth;
      const spec = room >= 0.8 * this.width ? this.whole : narrow(this.whole, room, this.meta);
      const height = this.chart.clientHeight;
      this.chart.style.minHeight = `${height}px`;
      const place = document.createElement("div");
      await embed(place, spec);
      await released;
      this.wide ??= this.svg;
      this.svg.replaceWith(place);
      this.svg = place.querySelector("svg");
      this.svg.style.cssText = "";
    }

    // The picture as it came, as text.
    picture() {
      const copy = (this.wide ?? this.svg).cloneNode(true);
      copy.querySelectorAll(".overlay").forEach((one) => one.remove());
      copy.querySelectorAll("[style]").forEach((one) => one.removeAttribute("style"));
      copy.removeAttribute("class");
      return new XMLSerializer().serializeToString(copy);
    }

    csv() {
      const { columns } = this;
      const names = Object.keys(columns);
      const cell = (value) => {
        const text = value === null || value === undefined ? "" : String(value);
        return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const rows = columns[names[0]].map((_, i) => names.map((name) => cell(columns[name][i])).join(","));
      return `${[names.map(cell).join(","), ...rows].join("\n")}\n`;
    }

    // `streamgauge.report.exports.program` does the same.
    program() {
      const { columns } = this;
      const numbers = Object.keys(columns).filter((name) => !columns[name].some((value) => typeof value === "string"));
      const spec = JSON.stringify({ ...this.data.spec, config: THEME }, null, 1);
      const caption = this.place.querySelector("figcaption b").textContent + " " + this.place.querySelector(".caption").textContent;
      const filled = {
        __TITLE__: JSON.stringify(caption), __ID__: this.place.id, __NUMBERS__: JSON.stringify(numbers),
        __SPEC__: spec.replaceAll("'", "\\u0027"),
      };
      return PROGRAM.replace(/__(TITLE|ID|NUMBERS|SPEC)__/g, (name) => filled[name]);
    }

    async png() {
      const image = new Image();
      const text = this.picture();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
      const context = canvas.getContext("2d");
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((done) => { canvas.toBlob(done, "image/png"); });
    }

    async save(kind) {
      const types = { svg: "image/svg+xml", csv: "text/csv", py: "text/x-python" };
      const texts = { svg: () => this.picture(), csv: () => this.csv(), py: () => this.program() };
      const blob = kind === "png" ? await this.png() : new Blob([texts[kind]()], { type: `${types[kind]};charset=utf-8` });
      const link = document.createElement("a");
      link.download = `${this.place.id}.${kind}`;
      link.href = URL.createObjectURL(blob);
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }
  }

  // What is pressed stays where it is until it is let go: a figure that grows above it would move it from under the
  // pointer, and nothing would have been clicked.
  let released = Promise.resolve(), release = null;
  document.addEventListener("pointerdown", ({ button }) => {
    if (button !== 0 || release) return;
    released = new Promise((done) => {
      // A click comes after its release, where fingers press in a later task.
      release = () => { release = null; setTimeout(done, 50); };
    });
  }, true);
  for (const end of ["pointerup", "pointercancel", "contextmenu", "dragend"]) document.addEventListener(end, () => release?.(), true);
  document.addEventListener("pointermove", ({ buttons }) => { if (!buttons) release?.(); }, true);
  window.addEventListener("blur", () => release?.());

  function embed(place, spec) {
    if (!window.vegaEmbed) window.loadVega();
    return window.vegaEmbed(place, spec, { mode: "vega-lite", renderer: "svg", actions: false });
  }

  const figures = [...document.querySelectorAll("figure.figure")].map((place) => new Figure(place));
  const state = { axis: "", at: null, figure: null, window: null };
  const live = document.createElement("output");
  live.className = "figure-said";
  document.body.append(live);

  let isPainting = false;
  function paintSoon() {
    if (isPainting) return;
    isPainting = true;
    requestAnimationFrame(() => {
      isPainting = false;
      for (const figure of figures) if (figure.isVisible && figure.axis) figure.paint(state);
    });
  }

  function move(figure, at) {
    Object.assign(state, { axis: figure?.axis ?? "", at, figure });
    const root = document.documentElement;
    if (at === null || figure.axis !== TIME) delete root.dataset.at; else root.dataset.at = String(Number(at.toPrecision(6)));
    if (!figure || figure.axis === TIME) document.dispatchEvent(new CustomEvent("streamgauge:at", { detail: { at } }));
    paintSoon();
  }

  function choose(begin, end) {
    document.dispatchEvent(new CustomEvent(CHANGED, { detail: { begin, end } }));
  }

  document.addEventListener(CHANGED, ({ detail }) => {
    const { begin, end } = detail ?? {};
    const isChosen = Number.isFinite(begin) && Number.isFinite(end) && end > begin;
    state.window = isChosen ? { begin, end } : null;
    if (isChosen) document.documentElement.dataset.window = `${begin},${end}`;
    else delete document.documentElement.dataset.window;
    paintSoon();
  });

  function listen(figure) {
    const { chart } = figure;
    let from = null;
    chart.addEventListener("pointermove", (event) => {
      const here = figure.at(event);
      if (!here) { if (from === null) move(null, null); return; }
      if (from !== null && Math.abs(event.clientX - from.clientX) > 4) {
        from.isDragged = true;
        const [begin, end] = [from.value, here.value].sort((a, b) => a - b);
        state.window = { begin, end };
      }
      figure.active = here.index;
      move(figure, here.value);
    });
    chart.addEventListener("pointerleave", () => { if (from === null) move(null, null); });
    chart.addEventListener("pointerdown", (event) => {
      const here = event.button === 0 ? figure.at(event) : null;
      if (!here || here.off > 20 || figure.axis !== TIME) return;
      from = { value: here.value, clientX: event.clientX, before: state.window, isDragged: false };
      chart.setPointerCapture(event.pointerId);
    });
    const release = (event) => {
      if (from === null) return;
      const begun = from;
      from = null;
      if (event.type === "pointercancel") { state.window = begun.before; paintSoon(); return; }
      if (begun.isDragged && state.window) choose(state.window.begin, state.window.end);
    };
    // The name at the end of a line hides it.
    chart.addEventListener("click", (event) => {
      const text = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.tagName === "text");
      const name = text && figure.series.find((one) => named(one) === text.textContent);
      if (name !== undefined) { figure.toggle(name); paintSoon(); }
    });
    chart.addEventListener("pointerup", release);
    chart.addEventListener("pointercancel", release);
    chart.addEventListener("dblclick", () => choose(null, null));
    chart.addEventListener("keydown", (event) => {
      const plot = figure.plots[figure.active];
      const [begin, end] = plot.domain;
      const step = (end - begin) / 100;
      const now = state.figure === figure && state.at !== null ? state.at : begin;
      const keys = { ArrowLeft: now - step, ArrowRight: now + step, PageUp: now - 10 * step, PageDown: now + 10 * step, Home: begin, End: end };
      if (event.key in keys) {
        const at = clamp(keys[event.key], begin, end);
        if (event.shiftKey && figure.axis === TIME) {
          figure.anchor ??= now;
          choose(...[figure.anchor, at].sort((a, b) => a - b));
        } else figure.anchor = null;
        move(figure, at);
      } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        figure.active = clamp(figure.active + (event.key === "ArrowUp" ? -1 : 1), 0, figure.plots.length - 1);
        move(figure, clamp(now, begin, end));
      } else if (event.key === "Escape") {
        figure.anchor = null;
        if (state.window) choose(null, null); else move(null, null);
      } else return;
      event.preventDefault();
      if (state.at !== null) live.textContent = figure.words(state.at);
    });
    chart.addEventListener("blur", () => move(null, null));
  }

  function offer(figure) {
    const tools = document.createElement("div");
    tools.className = "figure-tools";
    const fold = (name, ...inside) => {
      const details = document.createElement("details"), summary = document.createElement("summary"), box = document.createElement("div");
      summary.textContent = name;
      box.append(...inside);
      details.append(summary, box);
      return details;
    };
    const button = (text, work, data = {}) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      Object.assign(made.dataset, data);
      made.addEventListener("click", work);
      return made;
    };
    const kinds = { SVG: "svg", PNG: "png", CSV: "csv", Python: "py" };
    const files = Object.entries(kinds).map(([text, kind]) => button(text, () => figure.save(kind), { save: kind }));
    const pdf = document.createElement("span");
    pdf.append("PDF: ");
    pdf.append(Object.assign(document.createElement("code"), { textContent: "streamgauge report DIR --figures pdf" }));
    tools.append(fold("Save", ...files, pdf));
    if (figure.axis) {
      const lines = fold("Lines");
      // Which there are is known when the data is read.
      lines.addEventListener("toggle", () => {
        const box = lines.querySelector("div");
        if (!lines.open || box.firstChild) return;
        box.append(...figure.series.map((name) => {
          const made = button(name, () => { figure.toggle(name); paintSoon(); }, { series: name });
          const swatch = document.createElement("span");
          swatch.className = "swatch";
          swatch.style.background = figure.colour(name);
          made.prepend(swatch);
          made.setAttribute("aria-pressed", String(!figure.hidden.has(name)));
          return made;
        }));
      });
      tools.append(lines);
      const hint = document.createElement("span");
      hint.textContent = figure.axis === TIME ? HINT : "Point at a line for values.";
      tools.append(hint);
    }
    figure.place.querySelector("figcaption").append(tools);
  }

  const byPlace = new Map(figures.map((figure) => [figure.place, figure]));
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      const figure = byPlace.get(target);
      figure.isVisible = isIntersecting;
      if (isIntersecting) figure.fit();
    }
    paintSoon();
    // A screen ahead of the reader, who does not see it grow.
  }, { rootMargin: "100%" });
  for (const figure of figures) {
    offer(figure);
    if (figure.axis) {
      figure.chart.dataset.x = figure.axis;
      figure.chart.tabIndex = 0;
      figure.chart.setAttribute("role", "group");
      figure.chart.setAttribute("aria-roledescription", "chart; arrow keys read values");
      listen(figure);
    } else {
      figure.chart.addEventListener("pointerenter", () => figure.tell());
    }
    watcher.observe(figure.place);
    figure.place.dataset.ready = "true";
  }
  let resizing = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => { for (const figure of figures) if (figure.isVisible) figure.fit(); }, 150);
  });
})();
