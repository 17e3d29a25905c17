"use strict";
// What all parts of the page use: the data, numbers as people write them, elements, colours, canvases and tables.

const DATA = JSON.parse(document.getElementById("data").textContent);
const TYPES = {float32: Float32Array, float64: Float64Array, int32: Int32Array, uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array};
const arrays = new WeakMap();

/** Returns the numbers of an encoded array. Each is decoded once. */
function numbers(encoded) {
  if (!arrays.has(encoded)) {
    const bytes = Uint8Array.from(atob(encoded.data), (letter) => letter.charCodeAt(0));
    arrays.set(encoded, encoded.kind === "float24" ? fromThreeBytes(bytes) : new TYPES[encoded.kind](bytes.buffer));
  }
  return arrays.get(encoded);
}

/** Returns numbers that were stored without the last byte of a float32. */
function fromThreeBytes(bytes) {
  const bits = new Uint32Array(bytes.length / 3);
  for (let i = 0; i < bits.length; ++i) bits[i] = (bytes[3 * i] << 8) | (bytes[3 * i + 1] << 16) | (bytes[3 * i + 2] << 24);
  return new Float32Array(bits.buffer);
}

const UNITS = {
  ps: [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]],
  s: [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]],
  USD: [["M USD", 1e6], ["USD", 1]],
  W: [["GW", 1e9], ["MW", 1e6], ["kW", 1e3], ["W", 1]],
  FLOPS: [["PFLOPS", 1e15], ["TFLOPS", 1e12], ["GFLOPS", 1e9], ["FLOPS", 1]],
  J: [["GJ", 1e9], ["MJ", 1e6], ["kJ", 1e3], ["J", 1]],
  "byte/s": [["TB/s", 1e12], ["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3]],
  byte: [["PB", 1e15], ["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["bytes", 1]],
};

/** Returns [name, size] of the unit in which to write numbers up to `largest`. */
function unitOf(largest, unit) {
  const known = UNITS[unit];
  return known ? known.find(([, size]) => largest >= size) || known[known.length - 1] : [unit, 1];
}

function digits(value) {
  if (Math.abs(value) >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
}

/** Returns a number with its unit, with four significant digits. */
function readable(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (unit === "share") return `${(100 * value).toFixed(1)} %`;
  if (unit === "%") return `${Number(value.toPrecision(3))} %`;
  if (unit === "1" || value === 0) return digits(value);
  const [name, size] = unitOf(Math.abs(value), unit);
  return `${digits(value / size)} ${name}`;
}

function signed(value, unit) {
  return value === 0 ? "±0" : (value > 0 ? "+" : "−") + readable(Math.abs(value), unit);
}

/** Makes an element. Attributes that are functions are listeners. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

const COLOURS = {
  "compute": "#0072b2", "cpu": "#e69f00", "host": "#f0d264", "CPU": "#e69f00", "exposed communication": "#d55e00", "tensor": "#d55e00", "sequence": "#f0915a",
  "forward": "#0072b2", "backward": "#00395a", "other compute": "#7f9db0", "CPU alone": "#f0d264", "context": "#a63a50", "expert": "#8c1d40", "data": "#009e73", "pipeline": "#56b4e9", "bubble": "#93b7cc", "stragglers": "#8c6bb1",
  "memory": "#cc79a7", "exposed remote memory": "#cc79a7", "other": "#8a8a8a",
  "collective": "#d55e00", "send": "#009e73", "receive": "#56b4e9", "mem-load": "#cc79a7", "mem-store": "#b0558a",
};
const SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

function theme(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }
const IN_THE_DARK = {"backward": "#9ccbea"}; // colours that a dark page would swallow
function colour(name) { return (isDark() && IN_THE_DARK[name]) || COLOURS[name] || theme("idle"); }
function isDark() { return document.documentElement.classList.contains("dark"); }

/** Returns the relative luminance of a colour such as "#0072b2", as WCAG 2 defines it. */
function luminance(hex) {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

/** Returns black or white, whichever can be read better on a colour: the contrast is then at least 4.5. */
function ink(hex) { return /^#[0-9a-f]{6}$/i.test(hex) && luminance(hex) < 0.179 ? "#ffffff" : "#000000"; }
function swatch(name) { return element("span", {class: "swatch", style: `background: ${colour(name)}`}); }

const tip = document.getElementById("tip");

/** Shows a text beside the pointer; without a text it hides it. */
function showTip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

const redraws = new Set(); // of everything that depends on the width or the theme

/** Makes a canvas that is drawn anew when its width or the theme changes. draw(context, width, height) gets pixels of the page. */
function drawing(height, draw, about) {
  const canvas = element("canvas", {role: "img", "aria-label": about});
  const redraw = () => {
    const width = canvas.clientWidth, high = typeof height === "function" ? height(width) : height;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.height = `${high}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    draw(context, width, high);
  };
  new ResizeObserver(() => requestAnimationFrame(redraw)).observe(canvas);
  redraws.add(redraw);
  canvas.redraw = redraw;
  canvas.paint = {draw, height}; // for pictures in other formats
  canvas.addEventListener("pointerleave", (event) => showTip(event, ""));
  return canvas;
}

/** Returns round numbers from `low` to `high` for an axis. */
function ticksOf(low, high, most) {
  const raw = Math.max((high - low) / Math.max(most, 1), 1e-300), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let value = Math.ceil(low / step); value * step <= high * (1 + 1e-12); ++value) found.push(value * step);
  return found;
}

/**
 * Makes a table whose columns can be sorted by a click on their name and whose rows can be searched.
 * columns: {name, key, number, text(row), wide, unit, click(row)}; wide columns are left out on a phone. save: whether it can be saved as CSV.
 */
function sortableTable({columns, rows, search, name, total, order, save}) {
  let by = order || null, falling = true, wanted = "";
  const body = element("tbody"), count = element("span", {class: "soft"});
  const heads = columns.map((column) => element("th", {class: [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ")},
    element("button", {type: "button", click: () => {
      falling = by === column.key ? !falling : Boolean(column.number);
      by = column.key;
      fill();
    }}, column.name)));
  const textOf = (column, row) => column.text ? column.text(row) : String(row[column.key]);
  function fill() {
    let shown = rows.filter((row) => !wanted || columns.some((column) => textOf(column, row).toLowerCase().includes(wanted)));
    if (by) {
      const number = columns.find((column) => column.key === by).number;
      shown = [...shown].sort((a, b) => (number ? (a[by] ?? -Infinity) - (b[by] ?? -Infinity) : String(a[by]).localeCompare(String(b[by]))) * (falling ? -1 : 1));
    }
    columns.forEach((column, at) => {
      if (column.key === by) heads[at].setAttribute("aria-sort", falling ? "descending" : "ascending");
      else heads[at].removeAttribute("aria-sort");
    });
    body.replaceChildren(...shown.map((row) => element("tr", {}, columns.map((column) =>
      element("td", {class: [column.number && "number", column.wide && "wide", column.code && "key"].filter(Boolean).join(" ")},
        column.click ? element("button", {type: "button", class: "link", click: () => column.click(row)}, textOf(column, row)) : textOf(column, row))))));
    const all = total && total > rows.length ? ` (of ${total.toLocaleString("en-US")}: those that took the most time)` : "";
    count.textContent = `${shown.length.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} rows${all}`;
  }
  fill();
  const field = element("input", {type: "search", placeholder: search, "aria-label": search, input: (event) => {
    wanted = event.target.value.trim().toLowerCase();
    fill();
  }});
  return element("div", {"data-table": name}, element("div", {class: "controls"}, search ? field : null, count,
    save ? savers(name, null, () => [columns.map((column) => column.unit ? `${column.name} (${column.unit})` : column.name), ...rows.map((row) => columns.map((column) => row[column.key]))]) : null),
    element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, heads)), body)));
}
