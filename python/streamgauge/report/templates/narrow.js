// A figure's specification for a place of `room` CSS pixels: what stands side by side goes below one another.
function narrow(spec, room, { left = 58, right = 20 }) {
  const inner = Math.max(120, room - left - right);
  function walk(part) {
    if (Array.isArray(part)) return part.map(walk);
    if (part === null || typeof part !== "object") return part;
    const found = {};
    for (const [key, value] of Object.entries(part)) {
      if (key === "config") found[key] = { ...value, legend: { ...value.legend, columns: 2 } };
      else if (key === "data" || key === "usermeta") found[key] = value;
      else if (key === "hconcat") found.vconcat = value.map(walk);
      else if (key === "width" && typeof value === "number") found.width = Math.min(value, inner);
      else if (key === "tickCount") found.tickCount = Math.min(value, 5);
      else found[key] = walk(value);
    }
    if (part.hconcat && found.spacing !== undefined) found.spacing = Math.max(18, found.spacing);
    if (found.facet?.column) found.facet = { row: found.facet.column };
    if (typeof part.name === "string" && part.name.endsWith("_words")) found.data = { values: beside(part) };
    // What stood beside a title goes below it, into the plot.
    if (typeof part.name === "string" && /_(note|ground)$/.test(part.name)) {
      found.mark = { ...part.mark, dx: -4, dy: Math.max(part.mark.dy, 8) };
    }
    return found;
  }
  // What stands beside a plot's title moves out of its way.
  function beside({ data, encoding }) {
    const [title, ...others] = data.values, end = encoding.x.scale.domain[1];
    const least = ((title.text.length + 2) * 6.1 * end) / inner;
    return [title, ...others.map((one) => (one.value === title.value ? { ...one, at: Math.max(one.at, least) } : one))];
  }
  return walk(spec);
}
