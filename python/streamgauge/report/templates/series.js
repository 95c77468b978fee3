// What flows did in any stretch of time, for tables.
//
// <script class="series"> of the figure over time of each scenario is {scenario, id, modes: {MODE: {n, edges_s, flows:
// {FLOW: {role, sent, received, lost, good, waited, packets}}}}}: in each stretch from edges_s[i] to edges_s[i + 1], in s,
// the mean over the n valid trials of the bits sent, received, lost and good, of the seconds that its packets waited at the
// bottleneck, all together, and of how many those packets were. `streamgauge.over(SCENARIO, MODE, begin, end)` makes metrics
// of it.
(() => {
  const series = new Map();
  for (const script of document.querySelectorAll("script.series")) {
    series.set(script.closest("figure").dataset.scenario, script);
  }
  function read(scenario) {
    const found = series.get(scenario);
    if (found instanceof Element) series.set(scenario, JSON.parse(found.textContent));
    return series.get(scenario);
  }
  const sum = (values, from, to) => values?.slice(from, to).reduce((total, value) => total + value, 0);
  const ratio = (over, under) => (over === undefined || !under ? null : over / under);

  // What flows did between two times, rounded to edges: {begin_s, end_s, n, flows: {FLOW: {role, throughput_bps,
  // received_bps, goodput_bps, loss, queue_delay_s}}}, null where there is nothing to measure; null of a mode or
  // scenario that is not there. The whole time without begin and end.
  function over(scenario, mode, begin = null, end = null) {
    const found = read(scenario)?.modes[mode];
    if (!found) return null;
    const edges = found.edges_s, last = edges.length - 1;
    const nearest = (time) => edges.reduce((best, edge, i) => (Math.abs(edge - time) < Math.abs(edges[best] - time) ? i : best), 0);
    let from = begin === null ? 0 : nearest(begin), to = end === null ? last : nearest(end);
    if (to <= from) [from, to] = from < last ? [from, from + 1] : [last - 1, last];
    const length = edges[to] - edges[from];
    const flows = {};
    for (const [name, flow] of Object.entries(found.flows)) {
      const sent = sum(flow.sent, from, to);
      flows[name] = {
        role: flow.role,
        throughput_bps: ratio(sent, length),
        received_bps: ratio(sum(flow.received, from, to), length),
        goodput_bps: ratio(sum(flow.good, from, to), length),
        loss: ratio(sum(flow.lost, from, to), sent),
        queue_delay_s: ratio(sum(flow.waited, from, to), sum(flow.packets, from, to)),
      };
    }
    return { begin_s: edges[from], end_s: edges[to], n: found.n, flows };
  }
  window.streamgauge = { ...window.streamgauge, over, series: read, scenarios: () => [...series.keys()] };
})();
