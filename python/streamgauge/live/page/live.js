// The page of a trial that runs. Apache-2.0
"use strict";

const token = document.body.dataset.token;
const at = (path) => `${path}?token=${encodeURIComponent(token)}`;
const byId = (id) => document.getElementById(id);
const MOST = 6000;
const state = { samples: [], charts: [], knobs: new Map(), paused: false, over: null, hello: null, dirty: false };

function say(text) { byId("said").textContent = text; byId("wrong").textContent = ""; }
function complain(text) { byId("wrong").textContent = text; }

async function change(settings) {
  try {
    const answer = await fetch(at("/change"), {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(settings),
    });
    const words = await answer.json();
    if (!answer.ok) { complain(words.error); return false; }
    const what = Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(", ");
    say(`${what}: from ${words.t_s.toFixed(3)} s on`);
    return true;
  } catch (error) {
    complain(state.over === null ? `the trial does not answer (${error.message})` : "the trial is over");
    return false;
  }
}

// A slider's place is the square root of its share: small values have more room.
const place = (number, top) => Math.round(1000 * Math.sqrt(Math.min(1, number / top)));
const number = (spot, top, unit) => {
  const value = top * (spot / 1000) ** 2;
  return unit === "packets" ? Math.max(1, Math.round(value)) : Number(value.toPrecision(3));
};
const UNITS = { "kbit/s": { "bit/s": 1e-3, "kbit/s": 1, "Mbit/s": 1e3, "Gbit/s": 1e6 }, ms: { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3, min: 6e4 },
  kB: { B: 1e-3, kB: 1, MB: 1e3, KiB: 1.024, MiB: 1048.576 }, "%": { "%": 1 }, packets: { packets: 1, packet: 1 } };

function inUnit(text, unit) {
  const found = /^\s*([\d.]+)\s*(\S+)\s*$/.exec(text);
  const scale = found && UNITS[unit] && UNITS[unit][found[2]];
  return scale ? Number(found[1]) * scale : null;
}

function knob(control, home) {
  const name = control.name.split(".")[1];
  const row = document.createElement("div");
  row.className = "knob";
  const label = document.createElement("label");
  label.textContent = name;
  label.htmlFor = `knob-${control.name}`;
  if (control.unit === "") return toggle(control, row, label, home);
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: 1000, step: 10, id: `knob-${control.name}`, value: place(control.number, control.top) });
  const field = document.createElement("input");
  Object.assign(field, { type: "text", value: control.value });
  field.setAttribute("aria-label", `${control.name}, with its unit`);
  const words = () => `${number(slider.value, control.top, control.unit)} ${control.unit}`;
  let timer = null, asked = null;
  const send = async () => {
    timer = null;
    const value = asked;
    if (!(await change({ [control.name]: value }))) show(state.settings[control.name]);
  };
  slider.addEventListener("input", () => {
    asked = words();
    field.value = asked;
    slider.setAttribute("aria-valuetext", asked);
    if (timer === null) timer = setTimeout(send, 120);
  });
  field.addEventListener("change", () => { asked = field.value; send(); });
  const show = (text) => {
    if (document.activeElement !== field) field.value = text;
    const value = inUnit(text, control.unit);
    if (value !== null && document.activeElement !== slider) slider.value = place(value, control.top);
    slider.setAttribute("aria-valuetext", text);
  };
  slider.setAttribute("aria-valuetext", control.value);
  row.append(label, slider, field);
  home.append(row);
  state.knobs.set(control.name, show);
}

function toggle(control, row, label, home) {
  row.classList.add("switch");
  const box = document.createElement("input");
  Object.assign(box, { type: "checkbox", id: `knob-${control.name}`, checked: control.value === "on" });
  box.addEventListener("change", async () => {
    if (!(await change({ [control.name]: box.checked ? "on" : "off" }))) box.checked = !box.checked;
  });
  row.append(label, box);
  home.append(row);
  state.knobs.set(control.name, (text) => { box.checked = text === "on"; });
}

function hello(words) {
  state.hello = words;
  state.samples = [];
  document.title = `${words.title} - StreamGauge live`;
  byId("title").textContent = `${words.title} (${words.mode})`;
  const sliders = byId("sliders");
  sliders.replaceChildren();
  state.knobs.clear();
  for (const way of ["down", "up"]) {
    const home = document.createElement("fieldset");
    const name = document.createElement("legend");
    name.textContent = way === "down" ? "down, to the player" : "up, from the player";
    home.append(name);
    words.controls.filter((one) => one.name.startsWith(`${way}.`)).forEach((one) => knob(one, home));
    sliders.append(home);
  }
  const presets = byId("preset");
  while (presets.options.length > 1) presets.remove(1);
  for (const name of Object.keys(words.presets)) presets.add(new Option(name, name));
  const plans = words.flows.length > 1 ? [...CHARTS, sharesOf(words.flows)] : [...CHARTS];
  byId("plots").replaceChildren();
  state.charts = plans.map((plan) => new Chart(plan, byId("plots")));
}

function sample(one) {
  state.samples.push(one);
  if (state.samples.length > MOST) state.samples.shift();
  state.settings = one.settings;
  state.dirty = true;
  const names = Object.keys(one.players);
  if (names.length && !state.charts.some((chart) => chart.plan.id === "buffer")) {
    playersOf(names).forEach((plan) => state.charts.push(new Chart(plan, byId("plots"))));
  }
}

function words(one) {
  byId("clock").textContent = `${one.t_s.toFixed(1)} s`;
  const verdict = byId("verdict");
  verdict.textContent = state.over === null ? one.verdict : `over; so far ${one.verdict}`;
  verdict.classList.toggle("bad", one.verdict.startsWith("INVALID"));
  byId("pages").textContent = one.pages > 1 ? `${one.pages} pages are open; each can steer` : "";
  for (const [name, show] of state.knobs) if (one.settings[name] !== undefined) show(one.settings[name]);
  for (const row of document.querySelectorAll("#totals tbody tr")) {
    const total = one.total[row.dataset.way];
    const cells = row.querySelectorAll("td");
    ["offered_packets", "delivered_packets", "delivered_bytes", "lost"].forEach((key, n) => { cells[n].textContent = total[key]; });
  }
}

function span() {
  const last = state.samples.length ? state.samples[state.samples.length - 1].t_s : 1;
  const length = Number(byId("window").value);
  const first = state.samples.length ? state.samples[0].t_s : 0;
  let end = Math.max(last, Math.min(length, 10));
  if (state.paused) end = Math.max(first + length, first + ((last - first) * byId("scroll").value) / 1000);
  return [Math.max(0, end - length), end];
}

function draw(force) {
  if (!state.samples.length || (!state.dirty && !force)) return;
  state.dirty = false;
  words(state.samples[state.samples.length - 1]);
  if (state.paused && !force) return;
  const [from, to] = span();
  // The last one may cover no time to speak of, and has no rate then.
  const shown = state.samples.filter((one) => one.t_s >= from - 1 && one.t_s <= to && one.span_s > 0.05);
  state.charts.forEach((chart) => chart.draw(shown, [from, to]));
}

function over(words) {
  state.over = words;
  state.source.close();
  byId("clock").focus();
  say("the trial is over; what is shown stays, and can be saved");
  state.dirty = true;
  draw(true);
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function saveScenario() {
  let text = state.over && state.over.yaml;
  if (!text) {
    const answer = await fetch(at("/scenario"));
    text = await answer.text();
    if (!answer.ok) { complain(JSON.parse(text).error); return; }
  }
  save(new Blob([text], { type: "application/yaml" }), "steered.yaml");
  say("saved as steered.yaml; streamgauge run steered.yaml runs it");
}

function savePicture() {
  draw(true);
  picture(state.charts, byId("title").textContent).toBlob((blob) => save(blob, "live.png"));
  say("saved as live.png");
}

async function mark() {
  const word = byId("word").value.trim() || "here";
  if (await change({ mark: word })) byId("word").value = "";
}

function listen() {
  state.source = new EventSource(at("/events"));
  state.source.addEventListener("hello", (event) => hello(JSON.parse(event.data)));
  state.source.addEventListener("history", (event) => { JSON.parse(event.data).forEach(sample); draw(true); });
  state.source.addEventListener("over", (event) => over(JSON.parse(event.data)));
  state.source.onmessage = (event) => sample(JSON.parse(event.data));
  state.source.onerror = () => { if (state.over === null) complain("the connection is interrupted; the page tries again"); };
  state.source.onopen = () => { byId("wrong").textContent = ""; };
}

byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  byId("pause").textContent = state.paused ? "Go on" : "Pause";
  byId("back").hidden = !state.paused;
  byId("scroll").value = 1000;
  draw(true);
});
byId("scroll").addEventListener("input", () => draw(true));
byId("window").addEventListener("change", () => draw(true));
byId("mark").addEventListener("click", mark);
byId("word").addEventListener("keydown", (event) => { if (event.key === "Enter") mark(); });
byId("scenario").addEventListener("click", saveScenario);
byId("picture").addEventListener("click", savePicture);
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("preset").addEventListener("change", (event) => {
  const chosen = state.hello.presets[event.target.value];
  if (chosen) change(chosen);
});
window.addEventListener("resize", () => { state.charts.forEach((chart) => chart.resize()); draw(true); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  state.charts.forEach((chart) => chart.make());
  draw(true);
});
setInterval(() => draw(false), 200);
listen();
