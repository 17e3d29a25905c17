"use strict";
// A chart of two columns: a point for each trial, the front, zoom, and a rectangle that selects.

const MARGIN = {left: 58, right: 22, top: 12, bottom: 42}; // left: at least
const LOG_RANGE = 40; // columns that span more than this factor begin with a logarithmic scale

/** Returns a fixed number from -0.5 to 0.5 for a row, which keeps points of one word apart. */
function jitter(row, seed) {
  let bits = Math.imul(row + 1, 0x9e3779b1) ^ seed;
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  return ((bits ^ (bits >>> 13)) >>> 0) / 4294967296 - 0.5;
}

/** Returns a scale of a column. span: [low, high] of what is shown. */
function scaleOf(column, isLog, span, range) {
  return (isLog ? d3.scaleLog() : d3.scaleLinear()).domain(span).range(range);
}

/** Returns the ends of a column with some room around it. */
function spanOf(column, isLog) {
  if (column.isWord) return [column.low, column.high];
  const {low, high} = column, room = isLog ? (high / low) ** 0.03 : (high - low || Math.abs(high) || 1) * 0.03;
  return isLog ? [low / room, high * room] : [low - room, high + room];
}

function canBeLog(column) { return !column.isWord && column.low > 0 && column.high > column.low; }
function startsLog(column) { return canBeLog(column) && column.high > LOG_RANGE * column.low; }

/** Makes the axis of a column. place: d3.axisLeft or d3.axisBottom. room: how many texts fit. */
function axisOf(column, scale, place, room) {
  const axis = place(scale).tickSizeOuter(0);
  if (!column.isWord) return axis.ticks(room).tickFormat((value, at, all) => axisText(column, value, scale, all.length, room));
  const each = Math.ceil(column.words.length / Math.max(room, 1));
  return axis.tickValues(d3.range(0, column.words.length, each)).tickFormat((at) => shortened(roundedWord(column.words[at] ?? ""), 12));
}

function axisText(column, value, scale, count, room) {
  if (scale.base && count > room + 2 && !/^[125]/.test(value.toExponential())) return "";
  return textAt(column, value);
}

function shortened(text, most) { return text.length > most ? `${text.slice(0, most - 1)}…` : text; }

const AXIS_FONT = "11.5px system-ui, 'DejaVu Sans', sans-serif"; // as study.css has it
const ruler = document.createElement("canvas").getContext("2d");

/** Returns the width of a text of an axis, in pixels. */
function textWidth(text) {
  ruler.font = AXIS_FONT;
  return ruler.measureText(text).width;
}

/** Returns the width of the longest text of an axis, in pixels. */
function widthOf(axis) {
  const scale = axis.scale(), values = axis.tickValues() ?? (scale.ticks ? scale.ticks(...axis.tickArguments()) : scale.domain());
  return Math.ceil(d3.max(values, (value, at) => textWidth(axis.tickFormat()(value, at, values))) ?? 0);
}

/** Hides the texts of a drawn axis that would lie over the one before, or say the same. */
function thinOut(axis) {
  let last;
  axis.selectAll(".tick text").each((_, at, all) => {
    const node = all[at], box = node.getBoundingClientRect();
    if (!node.textContent || !box.width) return;
    const isHidden = last && (node.textContent === last.text || (box.left < last.box.right + 6 && last.box.left < box.right + 6 && box.top < last.box.bottom && last.box.top < box.bottom));
    if (isHidden) node.remove();
    else last = {box, text: node.textContent};
  });
}

class Plot {
  /** x, y, colour: columns. diagonal: whether to draw where both are equal. owner: the name of its filters. */
  constructor({x, y, colour, diagonal = false, owner}) {
    Object.assign(this, {diagonal, owner, isZooming: false, marks: 0});
    this.canvas = drawing((width) => Math.min(Math.max(0.5 * width, 300), 460), (context, width, height) => this.draw(context, width, height), "Chart of all trials");
    this.svg = d3.create("svg").attr("class", "overlay");
    this.axes = this.svg.append("g");
    this.brush = d3.brush().on("start brush end", (event) => this.brushed(event));
    this.brushHolder = this.svg.append("g").attr("class", "brush");
    this.element = element("div", {class: "plot"}, this.canvas, this.svg.node());
    this.behind = document.createElement("canvas"); // all points, drawn once
    this.colour = colour;
    this.show(x, y);
    drawWhenSeen(this.element, () => this.redraw());
    const node = this.svg.node();
    node.addEventListener("pointermove", (event) => this.hover(event));
    node.addEventListener("pointerleave", (event) => showTip(event, ""));
    node.addEventListener("click", (event) => this.click(event));
    node.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    node.addEventListener("dblclick", () => this.whole());
  }

  /** Shows two columns from end to end. */
  show(x, y) {
    unfilter(this.owner);
    Object.assign(this, {x, y, isLogX: startsLog(x), isLogY: startsLog(y)});
    if (this.diagonal) this.isLogX = this.isLogY = this.isLogX || this.isLogY;
    this.whole();
  }

  redraw() { this.canvas.redraw(); }

  whole() {
    const [x, y] = this.ends();
    this.spanX = spanOf(x, this.isLogX);
    this.spanY = spanOf(y, this.isLogY);
    this.redraw();
  }

  /** Returns both columns with the ends of the trials that have a place on both axes. */
  ends() {
    const {x, y} = this, known = d3.range(COUNT).filter((row) => x.at[row] === x.at[row] && y.at[row] === y.at[row]);
    if (!known.length) return [x, y];
    return [x, y].map((column) => {
      const [low, high] = column.isWord ? [column.low, column.high] : d3.extent(known, (row) => column.at[row]);
      return {isWord: column.isWord, low, high};
    });
  }

  /** Makes the part that is shown smaller (factor below 1) or larger, around a point of the page. */
  zoom(factor, event) {
    const box = this.svg.node().getBoundingClientRect();
    const resized = (scale, middle) => scale.range().map((end) => scale.invert(middle + (end - middle) * factor));
    const x = event ? event.clientX - box.left : d3.mean(this.scaleX.range()), y = event ? event.clientY - box.top : d3.mean(this.scaleY.range());
    this.spanX = resized(this.scaleX, x);
    this.spanY = resized(this.scaleY, y);
    this.redraw();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    this.zoom(event.deltaY + event.deltaX > 0 ? 1.15 : 1 / 1.15, event);
  }

  draw(context, width, height) {
    const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
    const layout = [this.x.name, this.y.name, this.isLogX, this.isLogY, ...this.spanX, ...this.spanY, width, height, theme("faded")].join();
    if (this.layout !== layout) {
      this.layout = layout;
      this.scaleY = scaleOf(this.y, this.isLogY, this.spanY, [bottom, MARGIN.top]);
      this.left = Math.max(MARGIN.left, widthOf(this.axisY(bottom)) + 34); // room for the title and the texts
      this.extent = [[this.left, MARGIN.top], [right, bottom]];
      this.scaleX = scaleOf(this.x, this.isLogX, this.spanX, [this.left, right]);
      this.drawAxes(width, height, right, bottom);
      this.place(width, height);
    }
    context.drawImage(this.behind, 0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(this.left, MARGIN.top, right - this.left, bottom - MARGIN.top);
    context.clip();
    this.drawPoints(context);
    if (this.diagonal) this.drawLine(context, d3.extent([...this.spanX, ...this.spanY]).map((value) => [value, value]));
    else this.drawFronts(context);
    context.restore();
    this.element.dataset.marks = this.marks;
  }

  axisY(bottom) { return axisOf(this.y, this.scaleY, d3.axisLeft, (bottom - MARGIN.top) / 40); }

  drawAxes(width, height, right, bottom) {
    this.svg.attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
    const axes = [axisOf(this.x, this.scaleX, d3.axisBottom, (right - this.left) / 80), this.axisY(bottom)];
    this.grid = axes.map((axis) => (axis.tickValues() ?? axis.scale().ticks(...axis.tickArguments())).map((value) => Math.round(axis.scale()(value))));
    this.axes.selectAll("*").remove();
    this.axes.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(axes[0]).call(thinOut);
    this.axes.append("g").attr("class", "axis").attr("transform", `translate(${this.left},0)`).call(axes[1]).call(thinOut);
    this.axes.append("text").attr("class", "title").attr("x", right).attr("y", height - 6).attr("text-anchor", "end").text(`${this.x.title} →`);
    this.axes.append("text").attr("class", "title").attr("transform", `translate(13,${MARGIN.top}) rotate(-90)`).attr("text-anchor", "end").text(`${this.y.title} →`);
    this.clear();
  }

  /** Takes the rectangle of the brush away, and not what it has selected. */
  clear() {
    this.isQuiet = true;
    this.brushHolder.call(this.brush.extent(this.extent)).call(this.brush.move, null);
    this.isQuiet = false;
  }

  /** Finds the pixel of each trial, which trials are drawn, and draws all of them pale. */
  place(width, height) {
    const {x, y, scaleX, scaleY, behind} = this, [[left, top], [right, bottom]] = this.extent, grid = 64;
    this.px = Float32Array.from(x.at, (value, row) => scaleX(x.isWord ? value + 0.5 * jitter(row, 7) : value));
    this.py = Float32Array.from(y.at, (value, row) => scaleY(y.isWord ? value + 0.5 * jitter(row, 77) : value));
    const {px, py} = this, part = (value, low, high) => Math.min(grid - 1, Math.floor((value - low) / (high - low) * grid));
    this.rows = drawnRows((row) => px[row] >= left && px[row] <= right && py[row] >= top && py[row] <= bottom,
      (row) => part(px[row], left, right) * grid + part(py[row], top, bottom), grid * grid);
    this.marks = this.rows.length;
    this.size = this.marks > 4000 ? 2 : this.marks > 800 ? 3 : 5;
    const ratio = devicePixelRatio || 1, context = behind.getContext("2d");
    behind.width = Math.round(width * ratio);
    behind.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    context.fillStyle = theme("line");
    for (const at of this.grid[0]) context.fillRect(at, top, 1, bottom - top);
    for (const at of this.grid[1]) context.fillRect(left, at, right - left, 1);
    context.fillStyle = theme("faded");
    this.fillPoints(context, this.rows);
    this.placed?.();
  }

  fillPoints(context, rows) {
    const {px, py, size} = this, half = size / 2;
    for (const row of rows) context.fillRect(Math.round(px[row] - half), Math.round(py[row] - half), size, size);
  }

  drawPoints(context) {
    const colours = coloursOf(this.colour), groups = colours.groups.map(() => []);
    for (const row of this.rows) if (selected[row]) groups[colours.of(row)].push(row);
    groups.forEach((rows, at) => {
      context.fillStyle = colours.groups[at].colour;
      this.fillPoints(context, rows);
    });
    context.strokeStyle = theme("text");
    for (const row of this.rows) if (isTop[row] && selected[row]) this.ring(context, row, 5);
    if (this.pinned !== undefined) this.ring(context, this.pinned, 8);
  }

  ring(context, row, size) {
    context.beginPath();
    context.arc(this.px[row], this.py[row], size, 0, 7);
    context.stroke();
  }

  drawFronts(context) {
    STUDIES.forEach((_, study) => {
      const end = TRIALS.starts[study + 1] ?? COUNT, rows = [];
      for (let row = TRIALS.starts[study]; row < end; ++row) if (selected[row] && isDone(row)) rows.push(row);
      const front = frontOf(rows, this.x, this.y);
      this.drawLine(context, front.flatMap((row, at) => at ? [[this.x.at[row], this.y.at[front[at - 1]]], [this.x.at[row], this.y.at[row]]] : [[this.x.at[row], this.y.at[row]]]),
        STUDIES.length > 1 ? CATEGORIES[study] : theme("text"));
    });
  }

  drawLine(context, points, colour = theme("soft")) {
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    points.forEach(([x, y], at) => at ? context.lineTo(this.scaleX(x), this.scaleY(y)) : context.moveTo(this.scaleX(x), this.scaleY(y)));
    context.stroke();
    context.lineWidth = 1;
  }

  brushed(event) {
    if (this.isQuiet) return;
    const box = event.selection;
    if (this.isZooming) {
      if (event.type !== "end" || !box) return;
      this.spanX = [this.scaleX.invert(box[0][0]), this.scaleX.invert(box[1][0])];
      this.spanY = [this.scaleY.invert(box[1][1]), this.scaleY.invert(box[0][1])];
      return this.redraw();
    }
    if (event.type === "start" || (event.type === "end" && !event.sourceEvent)) return;
    filter(this.owner, this.x, box && {low: this.scaleX.invert(box[0][0]), high: this.scaleX.invert(box[1][0])});
    filter(this.owner, this.y, box && {low: this.scaleY.invert(box[1][1]), high: this.scaleY.invert(box[0][1])});
    select();
  }

  /** Returns the drawn trial that is nearest to the pointer, within 12 pixels. */
  nearest(event) {
    const box = this.svg.node().getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let found, least = 144;
    for (const row of this.rows || []) {
      const far = (this.px[row] - x) ** 2 + (this.py[row] - y) ** 2 + (selected[row] ? 0 : 40);
      if (far < least) [found, least] = [row, far];
    }
    return found;
  }

  hover(event) {
    const row = event.buttons ? undefined : this.nearest(event);
    showTip(event, row === undefined ? "" : about(row));
  }

  click(event) {
    const row = this.nearest(event);
    if (row !== undefined) pin(row);
  }
}
