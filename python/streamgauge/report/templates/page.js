"use strict";
// What is no drawing: tabs, panels, sorting, filtering, folding for print. Without it all is there, shown at once.
(() => {
  const all = (wanted, within = document) => [...within.querySelectorAll(wanted)];
  const make = (tag, more = {}) => Object.assign(document.createElement(tag), more);
  let count = 0;

  function tabs(box) {
    const parts = all(":scope > [data-tab]", box);
    if (!parts.length) return;
    if (parts.length === 1) { parts[0].classList.add("current"); return; }
    const list = make("div", { className: "tablist" });
    list.setAttribute("role", "tablist");
    const buttons = parts.map((part) => {
      part.id ||= `tab-${++count}`;
      part.setAttribute("role", "tabpanel");
      const button = make("button", { type: "button", textContent: part.dataset.tab, id: `${part.id}-name` });
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", part.id);
      part.setAttribute("aria-labelledby", button.id);
      list.append(button);
      return button;
    });
    const show = (at, focus = false) => {
      parts.forEach((part, i) => {
        part.classList.toggle("current", i === at);
        buttons[i].setAttribute("aria-selected", i === at);
        buttons[i].tabIndex = i === at ? 0 : -1;
      });
      if (focus) buttons[at].focus();
    };
    buttons.forEach((button, i) => {
      button.addEventListener("click", () => show(i));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const to = event.key === "Home" ? 0 : event.key === "End" ? parts.length - 1 : step && (i + step + parts.length) % parts.length;
        if (to !== undefined) { event.preventDefault(); show(to, true); }
      });
    });
    box.prepend(list);
    show(0);
  }

  function panels(box) {
    const parts = all(":scope > .panel", box);
    const picker = make("div", { className: "picker" });
    picker.setAttribute("role", "group");
    picker.setAttribute("aria-label", "Scenario");
    const buttons = parts.map((part) => {
      const button = make("button", { type: "button", textContent: part.dataset.label });
      picker.append(button);
      return button;
    });
    const show = (at) => parts.forEach((part, i) => {
      part.classList.toggle("current", i === at);
      buttons[i].setAttribute("aria-pressed", i === at);
    });
    buttons.forEach((button, i) => button.addEventListener("click", () => show(i)));
    box.before(picker);
    show(Math.max(0, parts.findIndex((part) => part.hasAttribute("data-shown"))));
  }

  // Numbers as they are written: 1.2 Mbit/s comes after 900 kbit/s.
  const UNITS = { "Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1, GB: 8e9, MB: 8e6, kB: 8e3, B: 8, s: 1, ms: 1e-3, "µs": 1e-6, "%": 0.01 };
  function keyOf(cell) {
    if (cell === undefined) return "";
    const told = cell.dataset.sort;
    const text = (told ?? cell.textContent).trim();
    if (told !== undefined) return Number.isNaN(Number(text)) || text === "" ? text : Number(text);
    const found = text.match(/^[-+]?[\d.\u202f]+/);
    if (!found) return text.toLowerCase();
    const unit = text.match(/(?<=[\d\]]\s?)(Gbit\/s|Mbit\/s|kbit\/s|bit\/s|GB|MB|kB|B|ms|µs|s|%)(?![A-Za-z])/);
    return Number(found[0].replaceAll("\u202f", "")) * (unit ? UNITS[unit[1]] : 1);
  }
  function sortable(table) {
    const heads = all("thead th", table);
    heads.forEach((head, at) => {
      const button = make("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        // Each body is an entry where there are several, else each row.
        const many = table.tBodies.length > 1;
        const rows = (many ? [...table.tBodies] : [...table.tBodies[0].rows])
          .map((entry) => [keyOf((many ? entry.rows[0] : entry).cells[at]), entry]);
        rows.sort(([a], [b]) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1) * (down ? -1 : 1));
        (many ? table : table.tBodies[0]).append(...rows.map(([, entry]) => entry));
      });
    });
  }

  function filter(label) {
    const input = label.querySelector("input");
    const none = document.querySelector(".nothing-left");
    label.hidden = false;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const one of all("[data-filter]")) {
        const text = one.dataset.filter.toLowerCase();
        one.hidden = !words.every((word) => text.includes(word));
        if (!one.hidden && one.matches("section")) left++;
      }
      none.hidden = left > 0;
    });
  }

  // Where one is, in the contents.
  function follow() {
    const links = new Map(all(".side nav a").map((link) => [link.hash.slice(1), link]));
    const seen = new Set();
    const watcher = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) isIntersecting ? seen.add(target) : seen.delete(target);
      for (const link of links.values()) link.removeAttribute("aria-current");
      const first = [...links.keys()].map((id) => document.getElementById(id)).filter((one) => seen.has(one));
      // The innermost, which comes last.
      if (first.length) links.get(first.at(-1).id).setAttribute("aria-current", "true");
    }, { rootMargin: "-10% 0px -75% 0px" });
    for (const id of links.keys()) { const target = document.getElementById(id); if (target) watcher.observe(target); }
  }

  // A link into what is folded, behind a tab or filtered away opens it.
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) { if (at.tagName === "DETAILS") at.open = true; at.hidden = false; }
    target.scrollIntoView();
  }

  // Tables of flows over the stretch of time that is chosen in a figure, which knows what flows did in it.
  const OVER = {
    throughput: ["throughput_bps", "bit/s"], receiver_rate: ["received_bps", "bit/s"], goodput: ["goodput_bps", "bit/s"],
    loss: ["loss", "%"], queue_delay: ["queue_delay_s", "s"],
  };
  const LADDERS = {
    "bit/s": [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]], s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]], "%": [[0.01, "%"]],
  };
  function said(value, kind) {
    if (value === null || value === undefined) return "–";
    const ladder = LADDERS[kind];
    const [scale, unit] = ladder.find(([size]) => Math.abs(value) >= size) ?? ladder.at(value === 0 ? Math.min(1, ladder.length - 1) : -1);
    const shown = value / scale;
    return `${Math.abs(shown) >= 100 ? shown.toFixed(0) : Number(shown.toPrecision(3))}\u00a0${unit}`;
  }
  const kept = new Map();
  function overWindow({ detail }) {
    const { begin, end } = detail ?? {};
    const isChosen = Number.isFinite(begin) && Number.isFinite(end) && end > begin;
    for (const table of all("table.flows-table")) {
      const over = table.closest("section").querySelector("[data-window]");
      if (!kept.has(over)) kept.set(over, over.innerHTML);
      let seen = null;
      for (const cell of all("[data-metric]", table)) {
        const { flow, mode, metric } = cell.dataset;
        const found = isChosen ? window.streamgauge?.over?.(table.dataset.scenario, mode, begin, end) : null;
        seen ??= found;
        if (!kept.has(cell)) kept.set(cell, cell.innerHTML);
        const [name, kind] = OVER[metric] ?? [];
        const value = name && found?.flows[flow]?.[name];
        cell.classList.toggle("window", Boolean(found) && value !== undefined);
        cell.classList.toggle("whole", Boolean(found) && value === undefined);
        if (!found || value === undefined) cell.innerHTML = kept.get(cell); else cell.textContent = said(value, kind);
      }
      if (seen) over.textContent = `Sent to lost and time in the bottleneck: means from ${seen.begin_s} s to ${seen.end_s} s, as chosen in the figure; the rest over the measurement window.`;
      else over.innerHTML = kept.get(over);
    }
  }

  all("[data-tabs]").forEach(tabs);
  all("[data-panels]").forEach(panels);
  all("table.sortable").forEach(sortable);
  all(".filter").forEach(filter);
  const menu = document.querySelector(".menu");
  if (menu) {
    const narrow = window.matchMedia("(max-width: 1179.98px)");
    const fit = () => { menu.open = !narrow.matches; };
    narrow.addEventListener("change", fit);
    fit();
    menu.addEventListener("click", (event) => { if (narrow.matches && event.target.closest("a")) menu.open = false; });
    follow();
  }
  window.addEventListener("hashchange", reveal);
  reveal();
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const one of folded) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
  document.addEventListener("streamgauge:window", overWindow);
})();
