"use strict";
// Puts the charts into the page that is there without JavaScript, and lets other scripts select trials: window.orrery.

const charts = {}; // the charts by name
const panel = element("div", {id: "pinned", hidden: ""});

/** Shows a trial with all of its values and the commands that run it again, and marks it in the charts. */
function pin(row) {
  for (const chart of [charts.scatter, charts.bound, charts.parallel]) if (chart) chart.pinned = row;
  charts.scatter?.redraw();
  charts.bound?.redraw();
  charts.parallel?.draw();
  panel.hidden = row === undefined;
  if (row === undefined) return;
  const error = textOf(BY_NAME.get("error"), row), [first, ...lines] = about(row).split("\n");
  panel.replaceChildren(element("div", {class: "bar"}, element("b", {}, first), element("button", {type: "button", class: "close", title: "Close", click: () => pin()}, "×")),
    ...lines.map((line) => element("div", {}, line)), error === "–" ? "" : element("div", {class: "worse"}, error),
    element("pre", {class: "line"}, commandOf(row)), copyButton("copy command", () => commandOf(row), "Copies the commands"));
}

/** Takes the rectangles of all brushes away, and not what they have selected. */
function clearBrushes() { for (const chart of [charts.parallel, charts.scatter, charts.bound]) if (chart?.extent || chart?.brushes) chart.clear(); }

function clearAll() {
  unfilter();
  clearBrushes();
  select();
}

/** Makes the live part of a section below its heading. */
function fillSection(name, ...parts) {
  const section = document.getElementById(name);
  section.classList.add("live");
  section.append(...parts.filter(Boolean));
  return section;
}

function legendOf(column) {
  const {groups} = coloursOf(column), used = groups.map((group, at) => ({...group, at})).filter((group) => column.isWord || group.name);
  return element("div", {class: "legend"}, element("b", {}, column.title), used.slice(0, 16).map((group) => element("span", {}, element("span", {class: "swatch", style: `background: ${group.colour}`}), group.name)));
}

function usable(columns) { return columns.filter((column) => column.isWord ? column.words.length > 1 : column.high >= column.low); }

// Columns that may be axes, the most telling ones first.
const AXES = usable(["objective", "metric", "parameter", "derived", "status", "study"].flatMap((role) => COLUMNS.filter((column) => column.role === role)));

function makeScatter() {
  const known = (name) => AXES.find((column) => column.name === name);
  const y = known(STUDIES[0].objectives[1]?.metric) ?? ["peak_memory", "usd_per_step", "capex", "mfu"].map(known).find((column) => column && column !== OBJECTIVE) ?? AXES[1] ?? AXES[0];
  const plot = charts.scatter = new Plot({x: known(OBJECTIVE?.name) ?? AXES[0], y, colour: BY_NAME.get("study") ?? BY_NAME.get("status"), owner: "scatter"});
  const legend = element("div"), shown = element("p", {class: "soft"});
  const paint = plot.placed = () => {
    legend.replaceChildren(legendOf(plot.colour));
    const all = COUNT - plot.marks, less = d3.count(plot.x.at, (one) => one) < COUNT || d3.count(plot.y.at, (one) => one) < COUNT;
    shown.textContent = `${plot.marks.toLocaleString("en-US")} points${all ? ` of ${COUNT.toLocaleString("en-US")} trials${less ? "; trials without a number on an axis have none" : ""}` : ""}. Circles mark ${BEST}, the line the trials than which no other one is better on both axes.`;
  };
  const logs = element("span", {class: "controls"});
  const boxes = () => logs.replaceChildren(...["X", "Y"].filter((side) => canBeLog(plot[side.toLowerCase()])).map((side) => element("label", {}, element("input", {type: "checkbox", checked: plot[`isLog${side}`] ? "" : null, change: (event) => {
    plot[`isLog${side}`] = event.target.checked;
    plot.whole();
  }}), `log ${side.toLowerCase()}`)));
  const axis = (side) => (column) => {
    plot.show(side === "x" ? column : plot.x, side === "y" ? column : plot.y);
    boxes();
    select();
  };
  const mode = element("button", {type: "button", "aria-pressed": "false", title: "A dragged rectangle zooms instead of selecting", click: () => {
    plot.isZooming = !plot.isZooming;
    mode.setAttribute("aria-pressed", String(plot.isZooming));
  }}, "drag zooms");
  boxes();
  fillSection("scatter", element("p", {class: "soft"}, "A point is a trial. Drag to select trials in all charts and in the table; double-click shows all again, ctrl and the wheel zoom; click a point for its command."),
    element("div", {class: "controls"}, columnChoice("x", AXES, plot.x, axis("x")), columnChoice("y", AXES, plot.y, axis("y")),
      columnChoice("colour", AXES.concat(COLUMNS.filter((column) => column.role === "status" && !AXES.includes(column))), plot.colour, (column) => { plot.colour = column; plot.redraw(); paint(); }), logs, mode,
      element("button", {type: "button", title: "Zoom in", click: () => plot.zoom(0.7)}, "+"), element("button", {type: "button", title: "Zoom out", click: () => plot.zoom(1 / 0.7)}, "−"),
      element("button", {type: "button", title: "Show all", click: () => plot.whole()}, "all")),
    plot.element, legend, shown, plotSavers("scatter", plot));
}

function makeParallel() {
  const of = (role) => AXES.filter((column) => column.role === role);
  const first = [...of("parameter"), ...of("objective"), ...of("metric").filter((column) => ["peak_memory", "mfu", "usd_per_step", "lower_bound"].includes(column.name))].slice(0, MOST_AXES);
  const chart = charts.parallel = new Parallel(first);
  const chosen = new Set(first);
  const boxes = AXES.map((column) => element("label", {class: "chip"}, element("input", {type: "checkbox", checked: chosen.has(column) ? "" : null, change: (event) => {
    if (event.target.checked) chosen.add(column);
    else chosen.delete(column);
    const order = ["parameter", "derived", "objective", "metric", "status", "study"].flatMap((role) => of(role)).filter((one) => chosen.has(one));
    chart.show(order);
  }}), column.title));
  fillSection("parallel", element("p", {class: "soft"}, `A line is a trial. Drag along an axis to select; click an axis to take its brush away. ${STUDIES.length > 1 ? `Colours are studies; thick lines are ${BEST}.` : `Blue trials are done, grey ones are not; orange ones are ${BEST}.`}`),
    chart.element, element("details", {}, element("summary", {}, "Choose axes"), element("div", {class: "controls"}, boxes)), parallelSavers(chart));
}

function makeHeat() {
  const parameters = AXES.filter((column) => column.role === "parameter").concat(AXES.filter((column) => column.role === "derived")).filter((column) => !column.isWord || column.words.length <= 40);
  const metrics = AXES.filter((column) => !column.isWord);
  if (parameters.length < 2 || !metrics.length) return document.getElementById("heat").remove();
  // The two that explain most of the objective, or change it most.
  const effects = [...document.querySelectorAll("[data-effect]"), ...document.querySelectorAll("[data-changed]")].map((one) => one.dataset.effect ?? one.dataset.changed);
  const ranked = [...parameters].sort((a, b) => (effects.indexOf(a.name) + 1 || 99) - (effects.indexOf(b.name) + 1 || 99));
  const map = charts.heat = new HeatMap(ranked[0], ranked[1], OBJECTIVE && metrics.includes(OBJECTIVE) ? OBJECTIVE : metrics[0]);
  fillSection("heat", element("p", {class: "soft"}, "A cell has the best of all selected trials with its two values. Click it to select these trials."), element("div", {class: "controls"},
    columnChoice("across", parameters, map.x, (column) => map.show(column, map.y, map.metric)), columnChoice("up", parameters, map.y, (column) => map.show(map.x, column, map.metric)),
    columnChoice("best", metrics, map.metric, (column) => map.show(map.x, map.y, column))), map.element, heatSavers(map));
  return undefined;
}

function makeBound() {
  const holder = document.getElementById("bound-plot"), bound = BY_NAME.get("lower_bound"), time = BY_NAME.get("step_time");
  if (!holder || !bound || !time) return;
  const plot = charts.bound = new Plot({x: bound, y: time, colour: BY_NAME.get("study") ?? BY_NAME.get("status"), diagonal: true, owner: "bound"});
  holder.append(plot.element, element("p", {class: "soft"}, "No trial is below the line, on which the time equals its bound."), plotSavers("bound", plot));
}

/** Selects trials: {column: [words], column: [low, high] of numbers}; without an argument all of them. Returns how many are selected. */
function brush(wanted = {}) {
  unfilter();
  clearBrushes();
  for (const [name, values] of Object.entries(wanted)) {
    const column = BY_NAME.get(name);
    if (!column) throw new Error(`found no column ${name}; there are ${[...BY_NAME.keys()].join(", ")}`);
    if (column.isWord) filter("script", column, {words: values.map((value) => column.words.indexOf(String(value))).filter((at) => at >= 0)});
    else filter("script", column, {low: values[0], high: values[1]});
  }
  select();
  return numSelected;
}

/** Returns how many marks each chart has drawn. */
function marks() {
  drawLate();
  return {scatter: charts.scatter?.marks ?? 0, parallel: charts.parallel?.marks ?? 0, bound: charts.bound?.marks ?? 0, heat: Number(charts.heat?.element.dataset.marks ?? 0)};
}

/** Keeps the selection and the axes of the chart in the address. */
function rememberStudy() {
  const kept = [...filters.values()].filter((one) => one.owner !== "table").map(({owner, column, low, high, words}) => [owner, column.name, words ?? [low, high], Boolean(words)]);
  setState({select: kept.length ? JSON.stringify(kept) : null, x: charts.scatter?.x.name, y: charts.scatter?.y.name});
}

/** Shows what the address says. */
function restoreStudy() {
  const [x, y] = ["x", "y"].map((side) => BY_NAME.get(state.get(side)));
  if (charts.scatter && (x || y)) charts.scatter.show(x ?? charts.scatter.x, y ?? charts.scatter.y);
  try {
    for (const [owner, name, values, isWords] of JSON.parse(state.get("select") || "[]"))
      if (BY_NAME.has(name)) filter(owner, BY_NAME.get(name), isWords ? {words: values} : {low: values[0], high: values[1]});
  } catch { setState({select: null}); } // an address that somebody has changed
}

function startPage() {
  charts.table = new TrialTable();
  document.getElementById("trial-table").replaceChildren(charts.table.element);
  if (AXES.length > 1) { // else there is nothing to draw
    makeCurve();
    makeScatter();
    makeParallel();
    makeHeat();
  }
  makeBound();
  document.body.append(panel);
  fillContents([...document.querySelectorAll("main > section:not(.chart), .live")].filter((section) => section.id));
  startTheme();
  restoreStudy();
  select();
  changed.push(rememberStudy);
  if (state.has("section")) goTo(state.get("section"));
  window.orrery = {brush, marks, selected: () => numSelected, count: COUNT, pin, lastBrush: () => speed.lastBrush, rows: () => charts.table.rows()};
}

startPage();
