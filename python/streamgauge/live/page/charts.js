// Stacked charts that share a time axis. Apache-2.0
"use strict";

const SYNC = "trial";
const milli = (value) => (value === null || value === undefined ? null : 1e3 * value);

// A chart: its title, its series (label, colour of the style sheet, a function of a sample) and when it is there.
const CHARTS = [
  {
    id: "rate", title: "Rate, kbit/s", first: true,
    series: [
      { label: "limit down", colour: "--limit", dash: [6, 4], step: true, of: (s) => kbit(s.settings["down.rate"]) },
      { label: "offered down", colour: "--s2", of: (s) => s.down.offered_bps / 1e3 },
      { label: "delivered down", colour: "--s1", of: (s) => s.down.delivered_bps / 1e3 },
      { label: "delivered up", colour: "--s3", of: (s) => s.up.delivered_bps / 1e3 },
    ],
  },
  {
    id: "queue", title: "Queue down, ms; drops as marks",
    series: [
      { label: "most", colour: "--s1", of: (s) => milli(s.down.queue_s) },
      { label: "mean", colour: "--s3", of: (s) => milli(s.down.queue_mean_s) },
      { label: "drops", colour: "--bad", points: true, of: (s) => (s.down.lost > 0 ? milli(s.down.queue_s) : null) },
    ],
  },
  {
    id: "delay", title: "One-way delay, ms",
    series: [
      { label: "down p50", colour: "--s3", of: (s) => milli(s.down.delay_p50_s) },
      { label: "down p95", colour: "--s1", of: (s) => milli(s.down.delay_p95_s) },
      { label: "up p95", colour: "--s2", of: (s) => milli(s.up.delay_p95_s) },
    ],
  },
  {
    id: "loss", title: "Lost and marked, packets in 0.1 s",
    series: [
      { label: "lost down", colour: "--bad", bars: true, of: (s) => s.down.lost },
      { label: "lost up", colour: "--s2", bars: true, of: (s) => s.up.lost },
      { label: "marked down", colour: "--s4", of: (s) => s.down.marked },
    ],
  },
];
const COLOURS = ["--s1", "--s2", "--s3", "--s4", "--s5"];

function kbit(text) {
  const found = /^([\d.]+) (k|M|G)?bit\/s$/.exec(text || "");
  return found ? Number(found[1]) * { k: 1, M: 1e3, G: 1e6 }[found[2] || ""] || Number(found[1]) / 1e3 : null;
}

function sharesOf(flows) {
  return {
    id: "shares", title: "Shares of the flows down, kbit/s",
    series: flows.slice(0, 8).map((name, n) => ({
      label: name, colour: COLOURS[n % COLOURS.length],
      of: (s) => (s.flows[name] ? s.flows[name].down.delivered_bps / 1e3 : null),
    })),
  };
}

function playersOf(names) {
  const chosen = names.slice(0, 4);
  const of = (name, key, scale) => (s) => {
    const seen = s.players[name];
    return seen && seen[key] !== undefined && seen[key] !== null ? seen[key] * scale : null;
  };
  const each = (word, key, scale, colours) => chosen.map((name, n) => ({
    label: `${name} ${word}`, colour: colours[n % colours.length], step: true, of: of(name, key, scale),
  }));
  return [
    { id: "buffer", title: "Players: buffer, s; seconds stalled so far",
      series: [...each("buffer", "buffer_s", 1, COLOURS), ...each("stalled", "stalled_s", 1, ["--bad", "--s5"])] },
    { id: "level", title: "Players: level and estimate, kbit/s",
      series: [...each("level", "level", 1e-3, COLOURS), ...each("estimate", "estimate_bps", 1e-3, ["--s2", "--s4"])] },
  ];
}

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function shown(value) {
  if (value === null || value === undefined) return "-";
  return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

class Chart {
  constructor(plan, home) {
    this.plan = plan;
    this.home = document.createElement("section");
    this.home.className = plan.first ? "plot first" : "plot";
    this.home.id = `plot-${plan.id}`;
    const title = document.createElement("h2");
    title.textContent = plan.title;
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    this.canvas = document.createElement("div");
    this.canvas.setAttribute("role", "img");
    this.home.append(title, this.legend, this.canvas);
    home.append(this.home);
    this.make();
  }

  make() {
    if (this.plot) this.plot.destroy();
    this.legend.replaceChildren();
    this.values = this.plan.series.map((one) => {
      const item = document.createElement("li");
      const dot = document.createElement("i");
      dot.style.background = colourOf(one.colour);
      const text = document.createElement("span");
      item.append(dot, text);
      this.legend.append(item);
      return text;
    });
    const axis = { stroke: colourOf("--faint"), grid: { stroke: colourOf("--grid"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot({
      width: this.width(), height: 150, legend: { show: false }, cursor: { sync: { key: SYNC }, y: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high || 0, 1e-9) * 1.08] } },
      axes: [{ ...axis, size: 28, values: (_, ticks) => ticks.map((t) => `${t} s`) }, { ...axis, size: 56 }],
      series: [{}, ...this.plan.series.map((one) => this.series(one))],
    }, [[], ...this.plan.series.map(() => [])], this.canvas);
  }

  series(one) {
    const stroke = colourOf(one.colour);
    const said = { label: one.label, stroke, width: 1.6, points: { show: false }, dash: one.dash };
    if (one.points) return { ...said, width: 0, paths: () => null, points: { show: true, size: 4, fill: stroke } };
    if (one.step) return { ...said, paths: uPlot.paths.stepped({ align: 1 }) };
    if (one.bars) return { ...said, fill: stroke, paths: uPlot.paths.bars({ size: [0.9, 3] }) };
    return said;
  }

  width() {
    return Math.max(220, this.home.clientWidth - 14);
  }

  draw(samples, span) {
    const times = samples.map((s) => s.t_s);
    const data = this.plan.series.map((one) => samples.map((s) => one.of(s)));
    this.plot.setData([times, ...data], false);
    this.plot.setScale("x", { min: span[0], max: span[1] });
    const last = data.map((values) => values.length ? values[values.length - 1] : null);
    last.forEach((value, n) => { this.values[n].textContent = `${this.plan.series[n].label} ${shown(value)}`; });
    const words = this.plan.series.map((one, n) => `${one.label} ${shown(last[n])}`);
    this.canvas.setAttribute("aria-label", `${this.plan.title}. Now: ${words.join(", ")}`);
  }

  resize() {
    this.plot.setSize({ width: this.width(), height: 150 });
  }
}

// One picture of all charts, one below the other.
function picture(charts, title) {
  const gap = 26, ratio = window.devicePixelRatio || 1;
  const canvases = charts.map((one) => one.plot.ctx.canvas);
  const made = document.createElement("canvas");
  made.width = Math.max(...canvases.map((one) => one.width));
  made.height = canvases.reduce((sum, one) => sum + one.height + gap * ratio, gap * ratio);
  const pen = made.getContext("2d");
  pen.fillStyle = colourOf("--panel");
  pen.fillRect(0, 0, made.width, made.height);
  pen.fillStyle = colourOf("--ink");
  pen.font = `${14 * ratio}px system-ui, sans-serif`;
  pen.fillText(title, 8 * ratio, 18 * ratio);
  let at = gap * ratio;
  charts.forEach((one, n) => {
    const words = one.plan.series.map((s, k) => one.values[k].textContent);
    pen.fillText(`${one.plan.title}: ${words.join(", ")}`.slice(0, 160), 8 * ratio, at + 18 * ratio);
    pen.drawImage(canvases[n], 0, at + gap * ratio);
    at += canvases[n].height + gap * ratio;
  });
  return made;
}
