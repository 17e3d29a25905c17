"use strict";
// The sections of the page, for one run at a time, and the comparison of several.

function tiles(facts) {
  const causes = new Set(facts.causes.map((one) => one.cause).concat("CPU", "exposed communication", "exposed remote memory"));
  return element("div", {class: "tiles"}, facts.figures.filter(([name, text]) => !causes.has(name) && text !== "complete").map(([name, text]) => {
    const [, main, more] = text.match(/^(.*?)( \(.*\))?$/);
    return element("div", {class: "tile"}, element("span", {}, name), element("b", {}, element("span", {class: "figure"}, main), element("wbr"), more ? element("small", {}, more) : null));
  }));
}

/** A bar whose parts are the causes. scale: the part of the width that it takes. */
function stack(causes, scale = 1) {
  const all = causes.reduce((sum, one) => sum + one.time, 0) || 1;
  return element("div", {class: "stack", style: `width: ${100 * scale}%`}, causes.map((one) => {
    const share = one.time / all, text = `${one.cause}: ${readable(one.time, "ps")}, ${readable(share, "share")}`;
    return element("div", {style: `flex: ${share} 1 0; background: ${colour(one.cause)}; color: ${ink(colour(one.cause))}`, title: text},
      share * scale > 0.09 ? readable(share, "share") : "");
  }));
}

/** Fills a part of a column. Narrow columns begin at whole pixels and touch, so that no stripes appear. */
function fillColumn(context, left, column, wide, top, high) {
  const from = left + column * wide;
  if (wide > 6) context.fillRect(from, top, wide - 1, high);
  else context.fillRect(Math.floor(from), top, Math.max(Math.floor(from + wide) - Math.floor(from), 1), high);
}

/** Columns of NPUs, stacked of the shares of causes; `chosen` says which cause stands out. */
function npuColumns(series, facts, chosen) {
  const causes = Object.entries(series.causes).map(([cause, encoded]) => [cause, numbers(encoded)]);
  const left = 40, foot = 34;
  const canvas = drawing(Math.max(220, 24 * causes.length), (context, width, height) => {
    const wide = (width - left - 4) / series.columns, bottom = height - foot, high = bottom - 8;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = theme("soft");
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) context.fillText(`${100 * tick} %`, left - 5, bottom - tick * high);
    for (let column = 0; column < series.columns; ++column) {
      let y = bottom;
      for (const [cause, shares] of causes) {
        const part = shares[column] * high;
        context.globalAlpha = chosen.cause && chosen.cause !== cause ? 0.18 : 1;
        context.fillStyle = colour(cause);
        fillColumn(context, left, column, wide, y - part, part);
        y -= part;
      }
    }
    context.globalAlpha = 1;
    npuAxis(context, series, left, wide, bottom, "mean");
  }, "Where the time of each NPU went");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), column = Math.floor((event.clientX - box.left - left) / ((box.width - left - 4) / series.columns));
    if (column < 0 || column >= series.columns) return showTip(event, "");
    const lines = causes.filter(([, shares]) => shares[column] > 0).map(([cause, shares]) => `${cause} ${readable(shares[column], "share")}`);
    showTip(event, [npusOf(series, column), ...lines.reverse()].join("\n"));
  });
  return canvas;
}

function npusOf(series, column) {
  const first = Math.floor(column * series.count / series.columns), last = Math.floor((column + 1) * series.count / series.columns) - 1;
  return first >= last ? `NPU ${first}` : `NPUs ${first} to ${last}, mean`;
}

function npuAxis(context, series, left, wide, bottom, each) {
  context.fillStyle = theme("soft");
  context.textAlign = "center";
  for (const tick of ticksOf(0, series.count - 1, series.columns * wide / 70).filter(Number.isInteger))
    context.fillText(digits(tick), Math.min(left + (tick + 0.5) * wide * series.columns / series.count, left + wide * series.columns - context.measureText(digits(tick)).width / 2), bottom + 11);
  context.textAlign = "left";
  context.fillText(series.columns < series.count ? `NPU (a column is the ${each} of about ${Math.round(series.count / series.columns)})` : "NPU", left, bottom + 26);
}

function breakdownSection(run) {
  const {facts, series} = run, chosen = {cause: null};
  const columns = npuColumns(series.npus, facts, chosen);
  const choose = (cause) => {
    chosen.cause = cause;
    for (const row of rows) row.classList.toggle("chosen", row.dataset.cause === cause);
    setState({cause});
    columns.redraw();
  };
  const rows = facts.causes.map((one) => element("tr", {class: "choose", "data-cause": one.cause, title: "Click to see this cause alone", click: () => choose(chosen.cause === one.cause ? null : one.cause)}, element("td", {class: "cause"}, swatch(one.cause), one.cause), element("td", {class: "number"}, readable(one.time, "ps")),
  element("td", {class: "number"}, readable(one.share, "share")), element("td", {class: "wide soft"}, one.meaning)));
  if (facts.causes.some((one) => one.cause === state.get("cause"))) choose(state.get("cause"));
  const perNpu = () => [["npu", ...Object.keys(series.npus.causes)], ...Array.from({length: series.npus.columns}, (_, column) => [npusOf(series.npus, column), ...Object.values(series.npus.causes).map((encoded) => numbers(encoded)[column])])];
  return element("section", {id: "breakdown"}, element("h2", {}, "Where the time of a step goes"),
    element("p", {class: "soft"}, "Mean over all NPUs. An NPU counts for one cause at a time; communication and memory count while nothing is computed."),
    tiles(facts), facts.causes.length ? stack(facts.causes) : element("p", {}, "No time passed."),
    element("div", {class: "two", style: "margin-top: 1rem"}, element("table", {id: "causes"}, element("tbody", {}, rows)),
      element("div", {}, element("div", {class: "soft"}, "Each NPU"), columns)),
    element("div", {class: "savers"}, savers("causes", () => barsSvg(facts.causes.map((one) => ({name: one.cause, after: readable(one.share, "share"), parts: [{share: one.share, colour: colour(one.cause), text: ""}]}))),
      () => [["cause", "time_ps", "share", "meaning"], ...facts.causes.map((one) => [one.cause, one.time, one.share, one.meaning])]), element("span", {class: "soft"}, "each NPU:"), savers("npus", columns, perNpu)),
    facts.hints.length ? element("div", {class: "hints"}, facts.hints.map((hint) => element("p", {}, hint))) : null);
}

function pathSection(run) {
  const path = run.facts.critical_path;
  if (!path) return null;
  return element("section", {id: "path"}, element("h2", {}, "Critical path"),
    element("p", {class: "soft"}, `The chain of ${path.segments.toLocaleString("en-US")} segments that determined the end of the run. Below are the longest.`), stack(path.causes),
    sortableTable({name: "path", rows: path.longest, order: "duration", save: true, columns: [
      {name: "cause", key: "cause"}, {name: "duration", key: "duration", number: true, text: (row) => readable(row.duration, "ps")},
      {name: "from", key: "start", number: true, text: (row) => readable(row.start, "ps")}, {name: "NPU", key: "npu", number: true},
      {name: "node", key: "name", code: true, click: run.view ? (row) => {
        run.view.goToNode(row.npu, row.name, row.start, row.start + row.duration);
        goTo("timeline");
      } : null}]}));
}

function memorySection(run) {
  const {memory, npus} = run.series;
  if (!memory && !npus.peak_memory) return null;
  const parts = [];
  if (memory && memory.lines.length) parts.push(element("div", {class: "soft"}, "Largest size of the tensors over time"), memoryChart(memory), savers("memory", () => memorySvg(memory), () => memoryRows(memory)));
  if (npus.peak_memory) {
    const peaks = peakColumns(npus);
    parts.push(element("div", {class: "soft", style: "margin-top: .8rem"}, "Peak of each NPU"), peaks,
      savers("peaks", peaks, () => [["npu", "peak_bytes"], ...Array.from(numbers(npus.peak_memory), (peak, column) => [npusOf(npus, column).replace(", mean", ", largest"), peak])]));
  }
  const size = memory && memory.size ? element("p", {class: "soft"}, `An NPU has room for ${readable(memory.size, "byte")}.`) : null;
  return element("section", {id: "memory"}, element("h2", {}, "Local memory"), size, parts);
}

function memoryName(line) { return `NPU${line.npus.length > 1 ? "s" : ""} ${line.npus.join(", ")}`; }

function memoryRows(memory) {
  const lines = memory.lines.map((line) => numbers(line.usage)), bins = lines[0].length;
  return [["time_ps", ...memory.lines.map((line) => `${memoryName(line)} (bytes)`)], ...Array.from({length: bins}, (_, bin) => [Math.round((bin + 0.5) / bins * memory.end), ...lines.map((line) => line[bin])])];
}

function memorySvg(memory) {
  const lines = memory.lines.map((line) => numbers(line.usage)), bins = lines[0].length, peak = Math.max(...lines.map((line) => line.reduce((most, value) => Math.max(most, value), 0)), 1);
  const most = memory.size && memory.size < FAR * peak ? memory.size : peak, [unit, size] = unitOf(memory.end, "ps"), [room, bytes] = unitOf(most, "byte");
  return linesSvg({x: Array.from({length: bins}, (_, bin) => (bin + 0.5) / bins * memory.end / size), xLabel: unit, yLabel: room, most: 1.06 * most / bytes,
    lines: [...memory.lines.map((line, i) => ({name: memoryName(line), colour: SERIES[i % SERIES.length], values: Array.from(lines[i], (value) => value / bytes)})),
      ...(most === memory.size ? [{name: "size of the memory", colour: theme("text"), values: new Array(bins).fill(most / bytes)}] : [])]});
}

const FAR = 4; // a memory that is so many times as large as what it holds would flatten the lines

function memoryChart(memory) {
  const holder = element("div");
  const [unit, size] = unitOf(memory.end, "ps");
  const lines = memory.lines.map((line) => numbers(line.usage)), bins = lines[0].length;
  const peak = Math.max(...lines.map((line) => line.reduce((most, value) => Math.max(most, value), 0)));
  const limit = memory.size && memory.size < FAR * peak ? memory.size : 0, largest = Math.max(limit, peak);
  const [room, bytes] = unitOf(largest, "byte");
  const x = Array.from({length: bins}, (_, bin) => (bin + 0.5) / bins * memory.end / size);
  let chart = null;
  const draw = () => {
    const width = holder.clientWidth;
    if (!width) return;
    if (chart) chart.destroy();
    const axis = {stroke: theme("soft"), grid: {stroke: theme("line"), width: 1}, ticks: {stroke: theme("line")}, font: "12px system-ui, 'DejaVu Sans', sans-serif"};
    const value = (_, raw) => raw === null || raw === undefined ? "–" : `${raw.toFixed(2)} ${room}`;
    const series = [{label: "time", value: (_, raw) => raw === null || raw === undefined ? "–" : `${raw.toFixed(2)} ${unit}`},
      ...memory.lines.map((line, i) => ({label: memoryName(line), stroke: SERIES[i % SERIES.length], width: 1.5, paths: uPlot.paths.stepped({align: 1}), points: {show: false}, value}))];
    const values = [x, ...lines.map((line) => Array.from(line, (one) => one / bytes))];
    if (limit) {
      series.push({label: "size of the memory", stroke: theme("text"), dash: [6, 4], width: 1, points: {show: false}, value});
      values.push(new Array(bins).fill(limit / bytes));
    }
    chart = new uPlot({width, height: 260, series, axes: [{...axis, values: (_, ticks) => ticks.map((tick) => `${tick} ${unit}`)}, {...axis, size: 70, values: (_, ticks) => ticks.map((tick) => `${tick} ${room}`)}],
      scales: {x: {time: false}, y: {range: [0, 1.06 * largest / bytes || 1]}}, cursor: {drag: {x: true, y: false}}}, values, holder);
  };
  let before = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (holder.clientWidth !== before) draw();
    before = holder.clientWidth;
  })).observe(holder);
  redraws.add(draw);
  return holder;
}

function peakColumns(npus) {
  const peaks = numbers(npus.peak_memory), most = peaks.reduce((a, b) => Math.max(a, b), 0), left = 70;
  const canvas = drawing(150, (context, width, height) => {
    const wide = (width - left - 4) / npus.columns, bottom = height - 34, high = bottom - 8;
    const [unit, size] = unitOf(most, "byte");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of ticksOf(0, most / size, 3)) {
      const y = bottom - tick * size / most * high;
      context.fillStyle = theme("line");
      context.fillRect(left, y, width, 1);
      context.fillStyle = theme("soft");
      context.fillText(`${tick} ${unit}`, left - 6, y);
    }
    context.fillStyle = colour("memory");
    peaks.forEach((peak, column) => fillColumn(context, left, column, wide, bottom - peak / most * high, peak / most * high));
    npuAxis(context, npus, left, wide, bottom, "largest");
  }, "Peak of the local memory of each NPU");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), column = Math.floor((event.clientX - box.left - left) / ((box.width - left - 4) / npus.columns));
    showTip(event, column >= 0 && column < npus.columns ? `${npusOf(npus, column).replace(", mean", ", largest")}\n${readable(peaks[column], "byte")}` : "");
  });
  return canvas;
}

function networkSection(run) {
  const {facts, series} = run, row = (name, details, share, fill) => [element("div", {class: "name"}, element("b", {}, name), ` ${details}`),
    ...(share === null ? [element("div"), element("div")] : [element("div", {class: "track"},
      element("div", {style: `width: ${100 * share}%; ${fill ? `background: ${fill}` : ""}`})), element("div", {class: "number"}, readable(share, "share"))])];
  const rows = facts.dimensions.filter((one) => one.size > 1).flatMap((one) => row(`Dimension ${one.dimension}`,
    `${[`${one.shape || "group"} of ${one.size}`, one.bandwidth, one.latency].filter(Boolean).join(", ")} · ${readable(one.bytes, "byte")} sent`, one.utilisation));
  for (const one of facts.stages) rows.push(...row(`Memory ${one.name}`, `${one.servers.toLocaleString("en-US")} servers · ${readable(one.bytes, "byte")} passed`, one.utilisation, COLOURS.memory));
  return element("section", {id: "network"}, element("h2", {}, facts.stages.length ? "Network and remote memory" : "Network"),
    element("p", {class: "soft"}, "Share of the time in which the links were busy, mean over all links."), element("div", {class: "use"}, rows),
    savers("network", () => barsSvg(facts.dimensions.filter((one) => one.size > 1).map((one) => ({name: `dimension ${one.dimension}: ${one.shape} of ${one.size}`, after: readable(one.utilisation, "share"), parts: [{share: one.utilisation, colour: "#d55e00"}]}))),
      () => [["dimension", "shape", "size", "bandwidth", "latency", "bytes", "utilisation"], ...facts.dimensions.map((one) => [one.dimension, one.shape, one.size, one.bandwidth, one.latency, one.bytes, one.utilisation])]),
    series.links && series.links.dimensions.length ? linksOf(series.links) : element("p", {class: "soft"}, "Single links are known in runs with --network congestion-aware."));
}

/** What became of each job; nothing of a run without jobs. */
function jobsSection(run) {
  const {jobs} = run.facts;
  if (!jobs.length) return null;
  const time = (name, key) => ({name, key, number: true, text: (row) => readable(row[key], "ps")});
  const alone = jobs[0].slowdown === null ? [] : [time("alone", "alone"), {name: "slowdown", key: "slowdown", number: true, text: (row) => row.slowdown.toFixed(4)}];
  return element("section", {id: "jobs"}, element("h2", {}, "Jobs"),
    element("p", {class: "soft"}, "Workloads that share the system, each on NPUs of its own. Times of NPUs are means over those of the job; the slowdown is the time together over the time alone."),
    sortableTable({name: "jobs", rows: jobs, columns: [{name: "job", key: "name"}, {name: "NPUs", key: "npus", number: true, text: (row) => row.npus.toLocaleString("en-US")},
      time("start", "start"), time("finish", "finish"), time("run time", "run"), time("compute", "compute"), time("exposed communication", "exposed"), time("idle", "idle"), ...alone]}));
}

/** How long messages of the packet network took, and the deepest queues; nothing if they were not recorded. */
function flowsSection(run) {
  const {flows, queues} = run.facts, parts = [];
  const time = (key) => ({name: key.replace("time_", "").replace("p", "").replace("max", "longest"), key, number: true, text: (row) => readable(row[key], "ps")});
  const factor = (key) => ({name: `slowdown ${key.replace("slowdown_", "").replace("p", "")}`, key, number: true, text: (row) => row[key].toFixed(2), wide: true});
  const points = ["mean", "p50", "p95", "p99", "max"];
  if (flows.length) parts.push(element("p", {class: "soft"}, "Time from the start of a message to its last byte, with percentiles; the slowdown is this time over that in an empty network."),
    sortableTable({name: "flow classes", rows: flows, columns: [{name: "messages", key: "class"}, {name: "number", key: "flows", number: true, text: (row) => row.flows.toLocaleString("en-US")},
      ...points.map((point) => time(`time_${point}`)), ...points.map((point) => factor(`slowdown_${point}`))]}));
  if (queues.length) parts.push(element("h3", {}, "Deepest queues"), sortableTable({name: "queues", rows: queues, total: queues.length, search: "filter links", order: "deepest", columns: [
    {name: "link", key: "link"}, {name: "most that waited", key: "deepest", number: true, text: (row) => readable(row.deepest, "byte")}, {name: "marks", key: "marks", number: true},
    {name: "pauses", key: "pauses", number: true}, {name: "stopped", key: "stopped", number: true, text: (row) => readable(row.stopped, "ps")}]}));
  return parts.length ? element("section", {id: "flows"}, element("h2", {}, "Messages and queues"), parts) : null;
}

/** For what the thread blocks of GPUs spent their time; nothing if none carried out collectives. */
function blocksSection(run) {
  const {blocks} = run.facts;
  if (!blocks.length) return null;
  const rows = blocks.flatMap((one) => [element("div", {class: "name"}, element("b", {}, one.reason), ` ${one.meaning} · ${readable(one.time, "ps")}`),
    element("div", {class: "track"}, element("div", {style: `width: ${100 * one.share}%`})), element("div", {class: "number"}, readable(one.share, "share"))]);
  return element("section", {id: "blocks"}, element("h2", {}, "Thread blocks of GPUs"),
    element("p", {class: "soft"}, "For what thread blocks that carried out collectives spent their time, all of them together."), element("div", {class: "use"}, rows));
}

function collectivesSection(run) {
  const {collectives, groups} = run.facts, rate = (key) => (row) => row[key] === null ? "–" : (row[key] / 1e9).toFixed(2);
  const micro = (key) => (row) => row[key] === null ? "–" : (row[key] / 1e6).toFixed(2), parts = [];
  if (collectives.rows.length) {
    parts.push(element("p", {class: "soft"}, "In the columns of nccl-tests. Times count from the last arrival; the wait is the mean time between the first and the last arrival. ",
      "* stands for numbers in the names of groups."),
    sortableTable({name: "collectives", save: true, rows: collectives.rows, total: collectives.total, search: "filter collectives", order: "total", columns: [
      {name: "operation", key: "kind"}, {name: "groups", key: "family"}, {name: "size (B)", key: "bytes", number: true, text: (row) => row.bytes === null ? "–" : row.bytes.toLocaleString("en-US")},
      {name: "members", key: "members", number: true}, {name: "number", key: "number", number: true, text: (row) => row.number.toLocaleString("en-US")},
      {name: "time (µs)", key: "time", number: true, text: micro("time")}, {name: "min (µs)", key: "least", number: true, text: micro("least"), wide: true},
      {name: "max (µs)", key: "most", number: true, text: micro("most"), wide: true}, {name: "algbw (GB/s)", key: "algorithm_bandwidth", number: true, text: rate("algorithm_bandwidth")},
      {name: "busbw (GB/s)", key: "bus_bandwidth", number: true, text: rate("bus_bandwidth")}, {name: "wait (µs)", key: "spread", number: true, text: micro("spread"), wide: true},
      {name: "total (ms)", key: "total", number: true, text: (row) => (row.total / 1e9).toFixed(2)}]}));
  } else parts.push(element("p", {class: "soft"}, "The run had no collectives."));
  parts.push(element("h3", {}, "Groups"), sortableTable({name: "groups", rows: groups.rows, total: groups.total, search: "filter groups", columns: [
    {name: "group", key: "name"}, {name: "size", key: "size", number: true}, {name: "NPUs", key: "npus"},
    {name: "collectives", key: "number", number: true, text: (row) => row.number.toLocaleString("en-US")},
    {name: "bytes", key: "bytes", number: true, text: (row) => readable(row.bytes, "byte")}, {name: "total (ms)", key: "total", number: true, text: (row) => (row.total / 1e9).toFixed(2)}]}));
  return element("section", {id: "collectives"}, element("h2", {}, "Collectives and groups"), parts);
}

function configurationSection(run) {
  const rows = Object.entries(run.facts.settings).map(([key, value]) => ({key, value}));
  return element("section", {id: "configuration"}, element("h2", {}, "Configuration"), element("pre", {class: "line"}, run.facts.command_line),
    sortableTable({name: "configuration", save: true, rows, search: "filter keys and values", columns: [{name: "key", key: "key", code: true}, {name: "value", key: "value", code: true}]}));
}

// ---- several runs ----

function comparisonSection() {
  const found = DATA.comparison;
  if (!found) return null;
  const names = found.runs, most = Math.max(...DATA.runs.map((run) => run.facts.step_time), 1);
  const head = (first) => element("thead", {}, element("tr", {}, element("th", {}, first), names.map((name) => element("th", {class: "number"}, name))));
  const table = (first, rows, id) => element("div", {class: "scroll"}, element("table", {id}, head(first), element("tbody", {}, rows)));
  // Shares differ by points: 8 % more of 50 % could be 54 % or 58 %.
  const change = (now, before, unit) => unit === "ps" ? signed(now - before, unit) : unit === "share" ? `${signed(100 * (now - before), "1").replace(/([\d.]+)/, (text) => Number(text).toFixed(1))} points` : signed(100 * (now / before - 1), "%");
  const difference = (now, before, unit, lessIsBetter) => now === before || now === null || before === null ? "" :
    element("span", {class: (now < before) === lessIsBetter ? "better" : "worse"}, ` ${change(now, before, unit)}`);
  const bars = DATA.runs.map((run, at) => element("div", {}, element("div", {class: "soft"}, `${names[at]}: ${readable(run.facts.step_time, "ps")}`), stack(run.facts.causes, run.facts.step_time / most)));
  return element("section", {id: "comparison"}, element("h2", {}, "Comparison"), found.said.map((text) => element("p", {}, text)), element("h3", {}, "Time of a step by cause"), bars,
    savers("comparison", () => barsSvg(DATA.runs.map((run, at) => ({name: names[at], after: readable(run.facts.step_time, "ps"),
      parts: run.facts.causes.map((one) => ({share: one.time / most, colour: colour(one.cause), text: readable(one.share, "share")}))}))),
    () => [["cause", ...names.map((name) => `${name} (ps)`)], ...found.causes.map((one) => [one.cause, ...one.times])]), bothTimelines(names),
    table("cause", found.causes.map((one) => element("tr", {}, element("td", {}, swatch(one.cause), one.cause),
      one.times.map((time, at) => element("td", {class: "number"}, readable(time, "ps"), at && Math.abs(time - one.times[0]) >= 1 ? difference(time, one.times[0], "ps", one.cause !== "none") : "")))), "compared-causes"),
    element("h3", {}, "Figures"), table("figure", found.figures.map((one) => element("tr", {}, element("td", {}, one.name),
      one.values.map((value, at) => element("td", {class: "number"}, readable(value, one.unit), at ? difference(value, one.values[0], one.unit === "share" ? "share" : "%", ["ps"].includes(one.unit) || one.name === "pipeline bubble") : "")))), "compared-figures"),
    element("h3", {}, "What differs in the configuration"), found.keys.length ? table("key", found.keys.map((one) => element("tr", {}, element("td", {class: "key"}, one.key),
      one.values.map((value) => element("td", {class: "number key"}, value === null ? "–" : String(value))))), "compared-keys") : element("p", {}, "Nothing."));
}

/** The bands of all runs over one axis of time, so that one can see where one of them falls behind; nothing without timelines. */
function bothTimelines(names) {
  const known = DATA.runs.map((run, at) => ({name: names[at], series: run.series.timeline})).filter((one) => one.series);
  if (known.length < 2) return null;
  const end = Math.max(...known.map((one) => one.series.end)), high = 14, gap = 26, left = 12;
  const rows = known.map((one) => one.series.bands.length * high + gap), height = rows.reduce((sum, one) => sum + one, AXIS);
  const canvas = drawing(height, (context, width) => {
    const view = Object.create(TimelineView.prototype);
    Object.assign(view, {begin: 0, end, plotLeft: left, plotWidth: width - left - 8});
    view.drawAxis(context);
    let top = AXIS;
    known.forEach((one, at) => {
      context.textBaseline = "middle";
      context.textAlign = "left";
      context.fillStyle = theme("text");
      context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
      context.fillText(fromTheEnd(context, `${one.name}: ${readable(one.series.end, "ps")}`, width - left), left, top + 9);
      view.series = {bins: one.series.bins, end: one.series.end};
      view.plotWidth = (width - left - 8) * one.series.end / end;
      view.end = one.series.end;
      one.series.bands.forEach((band, row) => view.drawShares(context, band, top + 18 + row * high, high - 2));
      Object.assign(view, {end, plotWidth: width - left - 8});
      top += rows[at];
    });
  }, "The timelines of all runs over one axis");
  const states = [...new Set(known.flatMap((one) => one.series.bands.flatMap((band) => Object.keys(band.states))))];
  return element("div", {id: "timelines"}, element("h3", {}, "What all NPUs did when, over one axis"), canvas, element("div", {class: "legend"}, states.map((name) => element("span", {}, swatch(name), name)), element("span", {}, swatch("idle"), "idle")),
    savers("timelines", canvas, null));
}

/** What was simulated, in one table, with the memory and the configuration to copy. */
function headSection(run) {
  const {facts} = run, whole = facts.memory.reduce((sum, one) => sum + one.bytes, 0);
  const fills = {"parameters, gradients, optimizer": "#0072b2", "activations and buffers at the peak": "#cc79a7", "reserved": "#8a8a8a"};
  const memory = whole ? [element("dt", {}, "Memory"), element("dd", {}, element("div", {class: "stack small"}, facts.memory.map((one) => element("div", {style: `flex: ${one.bytes} 1 0; background: ${fills[one.name] || theme("idle")}`, title: `${one.name}: ${readable(one.bytes, "byte")}`}))),
    element("span", {class: "legend"}, facts.memory.map((one) => element("span", {}, element("span", {class: "swatch", style: `background: ${fills[one.name] || theme("idle")}`}), `${one.name} ${readable(one.bytes, "byte")}`))))] : [];
  const copy = (name, text) => element("button", {type: "button", title: `Copy ${name}`, click: async (event) => {
    const button = event.currentTarget;
    await navigator.clipboard.writeText(text).catch(() => saveFile("config.yaml", text, "text/yaml"));
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }}, "copy");
  const texts = [["CONFIG.yaml as it was given", run.given], ["with all defaults", run.resolved]].filter(([, text]) => text);
  return element("section", {id: "simulated"}, element("h2", {}, "What was simulated"), element("dl", {class: "facts"}, facts.header.map(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]), memory),
    texts.map(([name, text]) => element("details", {}, element("summary", {}, name), element("div", {class: "controls"}, copy(name, text), element("button", {type: "button", title: `Save ${name}`, click: () => saveFile("config.yaml", text, "text/yaml")}, "save")), element("pre", {class: "line tall"}, text))));
}

// ---- the page ----

function show(which) {
  const run = DATA.runs[which], {facts} = run;
  redraws.clear();
  const network = facts.dimensions.map((one) => `${one.shape} ${one.size}`.trim()).join(" × ");
  document.getElementById("title").textContent = DATA.runs.length > 1 ? `${DATA.names.length} runs` :
    `${facts.name}: ${facts.status === "complete" ? "one step takes" : `${facts.status} after`} ${readable(facts.step_time, "ps")}`;
  document.getElementById("subtitle").textContent = `${DATA.runs.length > 1 ? `${DATA.names[which]}: ` : ""}${facts.num_npus.toLocaleString("en-US")} NPUs · ${network} · ${facts.settings["system.network.model"] || ""}`;
  document.getElementById("made").textContent = `Made from ${facts.path}, which Orrery ${facts.version} wrote on ${facts.created}.`;
  const named = DATA.runs.length > 1 ? element("h1", {style: "margin-top: 1.6rem"}, `${DATA.names[which]}: ${readable(facts.step_time, "ps")}`) : null;
  const sections = [comparisonSection(), named, headSection(run), breakdownSection(run), timelineSection(run), operatorsSection(run), pathSection(run), memorySection(run), networkSection(run), jobsSection(run), flowsSection(run), blocksSection(run), collectivesSection(run), configurationSection(run)];
  document.getElementById("main").replaceChildren(...sections.filter(Boolean));
  fillContents(sections.filter((part) => part && part.id));
  if (DATA.runs.length > 1) document.getElementById("runs").replaceChildren(...DATA.names.map((name, at) =>
    element("button", {type: "button", "aria-pressed": String(at === which), click: () => {
      setState({run: at || null, from: null, to: null, npus: null, node: null});
      show(at);
    }}, name)));
}

/** Shows the run and the section that the address names. */
function showState() {
  show(Math.min(Math.max(Number(state.get("run")) || 0, 0), DATA.runs.length - 1));
  if (state.has("section")) goTo(state.get("section"));
}

startTheme();
showState();
addEventListener("hashchange", () => {
  readState();
  showState();
});
