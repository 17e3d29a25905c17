"use strict";
// Charts as files: SVG of what is drawn, CSV of the numbers behind it.

/** Escapes a text for SVG. */
function escaped(text) { return String(text).replace(/[&<>"]/g, (letter) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[letter])); }

/** Takes the calls of a canvas context that the charts of this page use, and makes SVG of them. */
class SvgContext {
  constructor(width, height) {
    Object.assign(this, {width, height, parts: [], stack: [], fillStyle: "#000", strokeStyle: "#000", globalAlpha: 1, lineWidth: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic"});
    this.path = "";
    this.clips = 0;
    this.measure = document.createElement("canvas").getContext("2d");
  }

  paint(style) { return typeof style === "string" ? escaped(style) : theme("hatch"); } // patterns become their colour
  opacity() { return this.globalAlpha < 1 ? ` opacity="${Number(this.globalAlpha.toFixed(3))}"` : ""; }
  number(value) { return Number(value.toFixed(2)); }
  add(text) { this.parts.push(this.clipId ? `<g clip-path="url(#${this.clipId})">${text}</g>` : text); }
  rectangle(x, y, wide, high) { return `x="${this.number(Math.min(x, x + wide))}" y="${this.number(Math.min(y, y + high))}" width="${this.number(Math.abs(wide))}" height="${this.number(Math.abs(high))}"`; }
  fillRect(x, y, wide, high) { this.add(`<rect ${this.rectangle(x, y, wide, high)} fill="${this.paint(this.fillStyle)}"${this.opacity()}/>`); }
  strokeRect(x, y, wide, high) { this.add(`<rect ${this.rectangle(x, y, wide, high)} fill="none" stroke="${this.paint(this.strokeStyle)}"${this.opacity()}/>`); }
  fillText(text, x, y) {
    const [, weight = "", size = "12"] = /^(\d{3} )?(\d+)px/.exec(this.font) || [];
    const anchor = {center: "middle", right: "end"}[this.textAlign] || "start";
    this.add(`<text x="${this.number(x)}" y="${this.number(y)}" font-size="${size}"${weight ? ` font-weight="${weight.trim()}"` : ""} text-anchor="${anchor}"${this.textBaseline === "middle" ? ' dominant-baseline="central"' : ""} fill="${this.paint(this.fillStyle)}"${this.opacity()}>${escaped(text)}</text>`);
  }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${this.number(x)} ${this.number(y)}`; }
  lineTo(x, y) { this.path += `L${this.number(x)} ${this.number(y)}`; }
  closePath() { this.path += "Z"; }
  rect(x, y, wide, high) { this.path += `M${this.number(x)} ${this.number(y)}h${this.number(wide)}v${this.number(high)}h${this.number(-wide)}Z`; }
  arc(x, y, radius) { this.path += `M${this.number(x - radius)} ${this.number(y)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`; }
  stroke() { this.add(`<path d="${this.path}" fill="none" stroke="${this.paint(this.strokeStyle)}" stroke-width="${this.lineWidth}"${this.opacity()}/>`); }
  fill() { this.add(`<path d="${this.path}" fill="${this.paint(this.fillStyle)}"${this.opacity()}/>`); }
  clip() {
    this.clipId = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${this.clipId}"><path d="${this.path}"/></clipPath>`);
  }
  save() {
    const {fillStyle, strokeStyle, globalAlpha, lineWidth, font, textAlign, textBaseline, clipId} = this;
    this.stack.push({fillStyle, strokeStyle, globalAlpha, lineWidth, font, textAlign, textBaseline, clipId});
  }
  restore() { Object.assign(this, this.stack.pop()); }
  setLineDash() {}
  clearRect() {}
  createPattern() { return null; }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="system-ui, 'DejaVu Sans', sans-serif">`
      + `<rect width="100%" height="100%" fill="${theme("card")}"/>${this.parts.join("\n")}</svg>\n`;
  }
}
/** Returns a canvas that was made by `drawing` as SVG. */
function svgOf(canvas) {
  const width = canvas.clientWidth, {draw, height} = canvas.paint, high = typeof height === "function" ? height(width) : height;
  const context = new SvgContext(width, high);
  draw(context, width, high);
  return context.text();
}

/** Returns rows of cells as CSV (RFC 4180). */
function csvOf(rows) {
  return rows.map((row) => row.map((cell) => {
    const text = cell === null || cell === undefined || Number.isNaN(cell) ? "" : String(cell);
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }).join(",")).join("\n") + "\n";
}

/** Lets the browser save a text as a file. */
function saveFile(name, text, kind) {
  const address = URL.createObjectURL(new Blob([text], {type: kind}));
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/**
 * Returns the buttons that save a chart. name: of the files. svg: returns the text of the picture, or a canvas of `drawing`.
 * rows: returns the cells, the header first.
 */
function savers(name, svg, rows) {
  const button = (kind, text, click) => element("button", {type: "button", class: "save", "data-save": `${name}.${kind}`, title: `Save ${name}.${kind}`, click}, text);
  return element("div", {class: "savers"},
    svg ? button("svg", "SVG", () => saveFile(`${name}.svg`, svg instanceof HTMLCanvasElement ? svgOf(svg) : svg(), "image/svg+xml")) : null,
    rows ? button("csv", "CSV", () => saveFile(`${name}.csv`, csvOf(rows()), "text/csv")) : null);
}

/** Returns horizontal bars as SVG. bars: [{name, parts: [{share, colour, text}]}]; shares are of the width. */
function barsSvg(bars) {
  const width = 900, left = 260, high = 26, context = new SvgContext(width, bars.length * high + 8);
  context.textBaseline = "middle";
  bars.forEach((bar, at) => {
    const top = 4 + at * high;
    let x = left;
    context.fillStyle = theme("text");
    context.textAlign = "right";
    context.fillText(bar.name, left - 8, top + high / 2);
    for (const part of bar.parts) {
      const wide = part.share * (width - left - 60);
      context.fillStyle = part.colour;
      context.fillRect(x, top + 3, wide, high - 6);
      context.textAlign = "center";
      context.fillStyle = ink(part.colour);
      if (wide > 46 && part.text) context.fillText(part.text, x + wide / 2, top + high / 2);
      x += wide;
    }
    context.fillStyle = theme("soft");
    context.textAlign = "left";
    if (bar.after) context.fillText(bar.after, x + 6, top + high / 2);
  });
  return context.text();
}

/** Returns lines as SVG. lines: [{name, colour, dash, values}] over `x`; units: texts. */
function linesSvg({x, lines, xLabel, yLabel, most}) {
  const width = 900, height = 320, left = 70, bottom = height - 46, context = new SvgContext(width, height), wide = width - left - 20;
  const xOf = (value) => left + (value - x[0]) / (x[x.length - 1] - x[0] || 1) * wide, yOf = (value) => bottom - value / (most || 1) * (bottom - 34);
  context.textBaseline = "middle";
  for (const tick of ticksOf(0, most, 5)) {
    context.fillStyle = theme("line");
    context.fillRect(left, yOf(tick), wide, 1);
    context.fillStyle = theme("soft");
    context.textAlign = "right";
    context.fillText(`${digits(tick)} ${yLabel}`, left - 6, yOf(tick));
  }
  context.textAlign = "center";
  for (const tick of ticksOf(x[0], x[x.length - 1], 8)) context.fillText(`${digits(tick)} ${xLabel}`, xOf(tick), bottom + 14);
  let legend = left;
  for (const line of lines) {
    context.beginPath();
    line.values.forEach((value, at) => at ? context.lineTo(xOf(x[at]), yOf(value)) : context.moveTo(xOf(x[at]), yOf(value)));
    context.strokeStyle = line.colour;
    context.lineWidth = 1.5;
    context.stroke();
    context.fillStyle = line.colour;
    context.fillRect(legend, 8, 12, 12);
    context.fillStyle = theme("text");
    context.textAlign = "left";
    context.fillText(line.name, legend + 17, 14);
    legend += 34 + context.measureText(line.name).width;
  }
  return context.text();
}
