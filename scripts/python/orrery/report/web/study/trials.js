"use strict";
// All trials as columns, and which of them are selected. Charts and the table filter columns here, and are told when the selection changes.

const TRIALS = DATA.trials, COUNT = TRIALS.count, STUDIES = DATA.studies;
const COLUMNS = TRIALS.columns.map(decoded), BY_NAME = new Map(COLUMNS.map((column) => [column.name, column]));
const OBJECTIVE = BY_NAME.get(STUDIES[0].objectives[0].metric);
const BEST = STUDIES.every((study) => study.objectives.length > 1) ? "those of the Pareto front" : "the best";
const DONE = BY_NAME.get("status").words.indexOf("done");
const isTop = new Uint8Array(COUNT), isFront = new Uint8Array(COUNT);
for (const rows of TRIALS.top) for (const row of rows) isTop[row] = 1;
for (const rows of TRIALS.front) for (const row of rows) isFront[row] = 1;

/**
 * Returns a column with `at`, the place of each trial on an axis: the index of its word, or its number (NaN: not known). `low` and `high` are
 * the ends of that axis.
 */
function decoded(column) {
  const made = {...column, isWord: Boolean(column.words)};
  if (made.isWord) {
    made.at = numbers(column.codes);
    made.low = -0.5;
    made.high = column.words.length - 0.5;
    return made;
  }
  const values = numbers(column.values);
  made.at = column.codes ? Float64Array.from(numbers(column.codes), (code) => values[code]) : values;
  [made.low, made.high] = d3.extent(values);
  return made;
}

/** Returns a value of a column as a text. */
function textOf(column, row) { return textAt(column, column.at[row]); }
function textAt(column, at) {
  if (column.isWord) return roundedWord(column.words[Math.round(at)] ?? "–");
  const isFar = ["parameter", "derived"].includes(column.role) && column.unit === "1" && (Math.abs(at) >= 1e9 || Math.abs(at) < 1e-3);
  return isFar && at ? String(Number(at.toPrecision(4))) : readable(at, column.unit);
}

/** Returns a word; one that is a number with many digits is rounded to four. */
function roundedWord(word) { return word.length > 12 && Number.isFinite(Number(word)) ? String(Number(Number(word).toPrecision(4))) : word; }
function valueOf(column, row) { return column.isWord ? column.at[row] : column.less === false ? -column.at[row] : column.at[row]; }
function studyOf(row) { return TRIALS.starts.findLastIndex((start) => start <= row); }
function isDone(row) { return BY_NAME.get("status").at[row] === DONE; }

// ---- the selection ----

const filters = new Map();       // {"owner column": {owner, column, low, high} or {owner, column, words}}
const selected = new Uint8Array(COUNT).fill(1);
const changed = [];              // what is called when the selection has changed
const late = new Map();          // {element: draw} of charts that are out of sight and not drawn since
const speed = {lastBrush: 0};    // milliseconds from a change of a filter to the end of drawing
let numSelected = COUNT;

/** Sets or, without `wanted`, removes the filter that `owner` has for a column. wanted: {low, high} on the axis, or {words: indices}. */
function filter(owner, column, wanted) {
  if (wanted) filters.set(`${owner} ${column.name}`, {owner, column, ...wanted});
  else filters.delete(`${owner} ${column.name}`);
}

function unfilter(owner) { for (const [key, one] of filters) if (!owner || one.owner === owner) filters.delete(key); }

/** Finds out which trials are selected, and draws everything anew that depends on it. */
function select() {
  const begin = performance.now();
  selected.fill(1);
  for (const {column, low, high, words} of filters.values()) {
    const {at} = column;
    if (words) {
      const wanted = new Uint8Array(column.words.length);
      for (const word of words) wanted[word] = 1;
      for (let row = 0; row < COUNT; ++row) if (!wanted[at[row]]) selected[row] = 0;
    } else for (let row = 0; row < COUNT; ++row) if (!(at[row] >= low && at[row] <= high)) selected[row] = 0;
  }
  numSelected = selected.reduce((sum, one) => sum + one, 0);
  for (const draw of changed) draw();
  speed.lastBrush = performance.now() - begin;
}

const sight = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) {
    target.isSeen = isIntersecting;
    if (isIntersecting) drawLate(target);
  }
}, {rootMargin: "100px"});

/** Calls `draw` when the selection has changed and the element is in sight. */
function drawWhenSeen(node, draw) {
  sight.observe(node);
  changed.push(() => node.isSeen ? draw() : late.set(node, draw));
}

/** Draws a chart that was out of sight; without one, all of them. */
function drawLate(node) {
  for (const one of node ? [node] : [...late.keys()]) {
    const draw = late.get(one);
    late.delete(one);
    draw?.();
  }
}

/** Says what a filter wants, in words. */
function filterText({column, low, high, words}) {
  if (words) return `${column.title}: ${words.map((word) => column.words[word]).join(", ")}`;
  if (!column.isWord) return `${column.title}: ${readable(low, column.unit)} to ${readable(high, column.unit)}`;
  const inside = column.words.filter((_, at) => at >= low && at <= high);
  return `${column.title}: ${inside.length > 4 ? `${inside[0]} to ${inside[inside.length - 1]}` : inside.join(", ") || "none"}`;
}

/** Returns the trials of a list than which no other one is better on both columns, in the order of the first column. */
function frontOf(rows, x, y) {
  const sorted = rows.filter((row) => valueOf(x, row) === valueOf(x, row) && valueOf(y, row) === valueOf(y, row))
    .sort((a, b) => valueOf(x, a) - valueOf(x, b) || valueOf(y, a) - valueOf(y, b));
  let best = Infinity;
  return sorted.filter((row) => valueOf(y, row) < best && (best = valueOf(y, row), true));
}

const MOST_MARKS = 20000; // that a chart draws; of more it draws the top, the front and a sample of each part of the chart

/**
 * Returns the rows to draw of those that `wanted` tells: all of them, or the top, the front and a sample that has something of each cell of
 * a grid. cell(row): the index of its cell, below `cells`.
 */
function drawnRows(wanted, cell, cells) {
  const rows = [];
  for (let row = 0; row < COUNT; ++row) if (wanted(row)) rows.push(row);
  if (rows.length <= MOST_MARKS) return rows;
  const counts = new Uint32Array(cells), taken = new Uint32Array(cells), share = 0.9 * MOST_MARKS / rows.length;
  for (const row of rows) ++counts[cell(row)];
  return rows.filter((row) => {
    if (isTop[row] || isFront[row]) return true;
    const at = cell(row), seen = taken[at]++;
    return Math.floor((seen + 1) * share) > Math.floor(seen * share) || seen === 0;
  });
}

// ---- colours ----

const CATEGORIES = [...SERIES, "#8c6bb1", "#a6761d", "#666666", "#e7298a"];
const STATUS = {done: "#0072b2", excluded: "#e69f00", "ruled-out": "#93a1ad", "does-not-fit": "#d55e00", refused: "#a63a50", stuck: "#8c1d40", "timed-out": "#cc79a7", failed: "#7a1f1f"};
const SHADES = 12; // of numbers
const knownColours = new Map();

/** Returns {groups: [{name, colour}], of(row)}: in how many colours trials are drawn, and which of them a trial has. */
function coloursOf(column) {
  if (!knownColours.has(column)) knownColours.set(column, madeColours(column));
  return knownColours.get(column);
}

function madeColours(column) {
  if (column.isWord) {
    const ofStudy = (name) => CATEGORIES[STUDIES.findIndex((study) => study.name === name)]; // as headings have them
    if (column.name === "study") return {groups: column.words.map((name) => ({name, colour: ofStudy(name)})), of: (row) => column.at[row]};
    const many = column.words.length > CATEGORIES.length, ordered = column.role === "parameter" || column.role === "derived";
    const groups = column.words.map((name, at) => ({name, colour: column.name === "status" && STATUS[name] ? STATUS[name] : ordered || many ?
      d3.interpolateViridis(0.05 + 0.87 * at / Math.max(column.words.length - 1, 1)) : CATEGORIES[at]}));
    return {groups, of: (row) => column.at[row]};
  }
  const known = Float64Array.from(column.at).filter((value) => value === value).sort();
  const edges = d3.range(1, SHADES).map((part) => known[Math.floor(part * known.length / SHADES)]);
  const groups = d3.range(SHADES).map((at) => ({name: at % 4 && at < SHADES - 1 ? "" : readable(at ? edges[at - 1] : known[0], column.unit), colour: d3.interpolateViridis(0.05 + 0.87 * at / (SHADES - 1))}));
  groups.push({name: "not known", colour: "#93a1ad"});
  return {groups, of: (row) => column.at[row] === column.at[row] ? d3.bisectRight(edges, column.at[row]) : SHADES};
}

/** Returns what the pointer says of a trial. */
function about(row) {
  const lines = [`${STUDIES.length > 1 ? `${STUDIES[studyOf(row)].name}, ` : ""}trial ${BY_NAME.get("number").at[row]}, ${textOf(BY_NAME.get("status"), row)}`];
  const told = (roles) => COLUMNS.filter((column) => roles.includes(column.role) && textOf(column, row) !== "–" && (!column.isWord || column.words.length > 1)).map((column) => `${column.title} ${textOf(column, row)}`);
  return [...lines, told(["parameter", "derived"]).join(", "), ...told(["objective", "metric"])].filter(Boolean).join("\n");
}

/** Returns the commands that run a trial again. */
function commandOf(row) { return STUDIES[studyOf(row)].commands.join(BY_NAME.get("number").at[row]); }

/** Puts a text into the clipboard. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // pages from files may not use it
    const field = element("textarea", {style: "position: fixed; opacity: 0"});
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** Makes a button that copies a text and says so for a moment. */
function copyButton(name, text, title) {
  return element("button", {type: "button", class: "copy", title, click: async (event) => {
    const button = event.currentTarget;
    event.stopPropagation();
    await copied(text());
    button.textContent = "copied";
    setTimeout(() => { button.textContent = name; }, 1200);
  }}, name);
}

/** Makes a field to choose one of the columns. */
function columnChoice(label, columns, chosen, change) {
  const field = element("select", {"aria-label": label, change: () => change(BY_NAME.get(field.value))},
    columns.map((column) => element("option", {value: column.name, selected: column === chosen ? "" : null}, column.title)));
  return element("label", {}, label, field);
}
