"use strict";
// The chart of a study that varies one parameter: a metric over this parameter, a line for each study. And charts of studies as files.

/** Returns {word: number} of a column of words that are all numbers, or numbers with one unit; null for other columns. */
function numbersOfWords(column) {
  const found = column.words.map((word) => /^([-+]?[\d.]+(?:e[-+]?\d+)?) *([A-Za-z/%]*)$/i.exec(word));
  return found.every((one) => one && one[2] === found[0][2]) ? found.map((one) => Number(one[1])) : null;
}

/** Returns the parameters that have more than one value. */
function variedParameters() {
  return COLUMNS.filter((column) => column.role === "parameter" && (column.isWord ? column.words.length > 1 : column.high > column.low));
}

class Curve {
  constructor(parameter, metric) {
    const values = parameter.isWord ? numbersOfWords(parameter) : null;
    Object.assign(this, {parameter, metric, values});
    [this.low, this.high] = values ? d3.extent(values) : [parameter.low, parameter.high];
    this.isLine = !parameter.isWord || values !== null;
    this.canvas = drawing((width) => Math.min(Math.max(0.36 * width, 240), 360), (context, width, height) => this.draw(context, width, height), "A metric over the parameter");
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("click", (event) => {
      const point = this.nearest(event);
      if (point) pin(point.row);
    });
    changed.push(() => this.canvas.redraw());
  }

  show(metric) {
    this.metric = metric;
    this.canvas.redraw();
  }

  /** Returns the trials of a study that are done, in the order of the parameter. */
  rows(study) {
    const end = TRIALS.starts[study + 1] ?? COUNT, {parameter, metric} = this, found = [];
    for (let row = TRIALS.starts[study]; row < end; ++row) {
      const x = this.values ? this.values[parameter.at[row]] : parameter.at[row], y = metric.at[row];
      if (selected[row] && isDone(row) && x === x && y === y) found.push({row, x, y});
    }
    return found.sort((a, b) => a.x - b.x);
  }

  draw(context, width, height) {
    const {parameter, metric} = this, all = STUDIES.map((_, study) => this.rows(study)), known = all.flat();
    const isShare = metric.unit === "share", left = 78, bottom = height - 44, top = 14, right = width - 26;
    const high = isShare ? 1 : Math.max(...known.map((one) => one.y), 0) * 1.06 || 1;
    const [name, size] = isShare ? ["%", 0.01] : unitOf(high, metric.unit);
    const isLog = this.isLine && this.low > 0 && this.high >= 8 * this.low;
    const place = (value) => isLog ? Math.log(value / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low || 1);
    this.xOf = (value) => left + 12 + place(value) * (right - left - 24);
    this.yOf = (value) => bottom - value / high * (bottom - top);
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of ticksOf(0, high / size, 5)) {
      context.fillStyle = theme("line");
      context.fillRect(left, this.yOf(tick * size), right - left, 1);
      context.fillStyle = theme("soft");
      context.fillText(name === "1" ? digits(tick) : `${digits(tick)} ${name}`, left - 7, this.yOf(tick * size));
    }
    context.textAlign = "center";
    let last = -Infinity;
    for (const value of [...new Set(known.map((one) => one.x))].sort((a, b) => a - b)) {
      const text = this.values ? parameter.words[this.values.indexOf(value)] : textAt(parameter, value), half = context.measureText(text).width / 2, x = this.xOf(value);
      if (x - half < last + 8) continue;
      context.fillText(text, Math.min(x, width - half), bottom + 14);
      last = x + half;
    }
    context.fillText(`${parameter.title} →`, (left + right) / 2, bottom + 32);
    all.forEach((points, study) => this.line(context, points, STUDIES.length > 1 ? CATEGORIES[study] : theme("accent")));
  }

  line(context, points, fill) {
    context.strokeStyle = context.fillStyle = fill;
    context.lineWidth = 2;
    if (this.isLine) {
      context.beginPath();
      points.forEach((point, at) => at ? context.lineTo(this.xOf(point.x), this.yOf(point.y)) : context.moveTo(this.xOf(point.x), this.yOf(point.y)));
      context.stroke();
    }
    context.lineWidth = 1;
    for (const point of points) {
      context.beginPath();
      context.arc(this.xOf(point.x), this.yOf(point.y), isTop[point.row] ? 5 : 3.5, 0, 7);
      context.fill();
    }
  }

  nearest(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let found, least = 400;
    for (const point of STUDIES.flatMap((_, study) => this.rows(study))) {
      const far = (this.xOf(point.x) - x) ** 2 + (this.yOf(point.y) - y) ** 2;
      if (far < least) [found, least] = [point, far];
    }
    return found;
  }

  hover(event) {
    const point = this.nearest(event);
    showTip(event, point ? about(point.row) : "");
  }

  csv() {
    return [["study", this.parameter.name, this.metric.name], ...STUDIES.flatMap((study, at) => this.rows(at).map((one) => [study.name, this.parameter.isWord && !this.values ? this.parameter.words[one.x] : one.x, one.y]))];
  }
}

/** Fills the section of a study that varies one parameter; takes it away from other studies. */
function makeCurve() {
  const varied = variedParameters(), metrics = COLUMNS.filter((column) => ["objective", "metric"].includes(column.role) && !column.isWord && column.high >= column.low);
  if (varied.length !== 1 || !metrics.length) return document.getElementById("curve").remove();
  const curve = charts.curve = new Curve(varied[0], OBJECTIVE && metrics.includes(OBJECTIVE) ? OBJECTIVE : metrics[0]);
  document.querySelector("#curve h2").textContent = `Over ${varied[0].title}`;
  const legend = STUDIES.length > 1 ? element("div", {class: "legend"}, STUDIES.map((study, at) => element("span", {}, element("span", {class: "swatch", style: `background: ${CATEGORIES[at]}`}), study.name))) : null;
  fillSection("curve", element("div", {class: "controls"}, columnChoice("metric", metrics, curve.metric, (column) => curve.show(column))), curve.canvas, legend, savers("curve", curve.canvas, () => curve.csv()));
  return undefined;
}

// ---- files ----

/** Returns an SVG element of the page as a file of its own, with the colours of the page, and with what `behind` draws below it. */
function standalone(node, width, height, behind) {
  const context = new SvgContext(width, height);
  behind?.(context);
  const look = `.axis text{fill:${theme("soft")};font-size:11.5px}.axis .tick line{stroke:${theme("line")}}.axis .domain{stroke:${theme("soft")};fill:none}`
    + `.title{fill:${theme("text")};font-weight:600;font-size:12px}.brush{display:none}.cell text{font-size:11px}`;
  context.parts.push(`<style>${look}</style>`, ...[...node.children].map((child) => new XMLSerializer().serializeToString(child)));
  return context.text();
}

/** Returns the selected trials as rows of these columns, with the numbers of the trials. */
function trialRows(columns) {
  const rows = [["study", "trial", ...columns.map((column) => column.name)]], number = BY_NAME.get("number");
  for (let row = 0; row < COUNT; ++row) if (selected[row]) rows.push([STUDIES[studyOf(row)].name, number ? number.at[row] : row, ...columns.map((column) => column.isWord ? column.words[column.at[row]] : column.at[row])]);
  return rows;
}

function plotSavers(name, plot) {
  return savers(name, () => standalone(plot.svg.node(), plot.canvas.clientWidth, plot.canvas.clientHeight, (context) => {
    plot.drawPoints(context);
    if (!plot.diagonal) plot.drawFronts(context);
  }), () => trialRows([plot.x, plot.y, plot.colour].filter(Boolean)));
}

function parallelSavers(chart) {
  return savers("parallel", () => standalone(chart.svg.node(), Number(chart.svg.attr("width")), PARALLEL_HEIGHT, (context) => chart.drawSelected(context)), () => trialRows(chart.columns));
}

function heatSavers(map) {
  return savers("heat", () => standalone(map.svg.node(), Number(map.svg.attr("width")), Number(map.svg.attr("height"))), () => {
    const levelsX = levelsOf(map.x), levelsY = levelsOf(map.y);
    return [[map.x.name, map.y.name, map.metric.name, "trials"], ...map.cells(levelsX, levelsY).map((cell) => [levelsX.names[cell.x], levelsY.names[cell.y], map.metric.isWord ? "" : map.metric.at[cell.row], cell.count])];
  });
}
