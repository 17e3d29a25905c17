"use strict";
// Parallel coordinates: an axis for each column, a line for each trial, and a brush on each axis.

const AXIS_WIDTH = 84, PARALLEL_HEIGHT = 320, PARALLEL_TOP = 52, PARALLEL_BOTTOM = 14, MOST_AXES = 12;
const DENSITIES = 6; // shades of lines by how many trials they stand for
const MOST_LINES = 1200; // between two axes

class Parallel {
  constructor(columns) {
    this.columns = columns;
    this.canvas = element("canvas", {role: "img", "aria-label": "Parallel coordinates of all trials"});
    this.behind = document.createElement("canvas"); // all trials, drawn once
    this.svg = d3.create("svg").attr("class", "overlay");
    this.plot = element("div", {class: "plot"}, this.canvas, this.svg.node());
    this.element = element("div", {class: "wide-plot"}, this.plot);
    this.lost = Uint8Array.from({length: COUNT}, (_, row) => isDone(row) ? 0 : 1);
    drawWhenSeen(this.element, () => this.draw());
    redraws.add(() => this.layout());
    new ResizeObserver(() => requestAnimationFrame(() => this.element.clientWidth !== this.width && this.layout())).observe(this.element);
  }

  /** Shows these columns. */
  show(columns) {
    unfilter("parallel");
    this.columns = columns;
    this.layout();
    select();
  }

  layout() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const range = [PARALLEL_HEIGHT - PARALLEL_BOTTOM, PARALLEL_TOP];
    this.scales = this.columns.map((column) => scaleOf(column, startsLog(column), spanOf(column, startsLog(column)), range));
    // The texts of an axis stand on its right: the next axis begins behind them.
    const widths = this.columns.map((_, at) => widthOf(this.axis(at)) + 18), gaps = Math.max(this.columns.length - 1, 1), left = 25, right = Math.max(25, widths.at(-1) ?? 0);
    const width = Math.max(this.width, left + right + gaps * Math.max(AXIS_WIDTH, ...widths)), step = (width - left - right) / gaps;
    Object.assign(this, {step, ratio: devicePixelRatio || 1, left, right});
    this.plot.style.width = `${width}px`;
    for (const canvas of [this.canvas, this.behind]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(PARALLEL_HEIGHT * this.ratio);
    }
    this.canvas.style.height = `${PARALLEL_HEIGHT}px`;
    // The pixel of each trial on each axis; 0: it has none there.
    this.pixels = this.columns.map((column, at) => Uint16Array.from(column.at, (value) => value === value ? Math.round(this.scales[at](value)) : 0));
    this.drawAxes(width);
    const context = this.behind.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawLines(context, () => true, [theme("faded")], 0.9);
    this.draw();
  }

  axis(at) { return axisOf(this.columns[at], this.scales[at], d3.axisRight, 7); }

  drawAxes(width) {
    this.svg.attr("width", width).attr("height", PARALLEL_HEIGHT).selectAll("*").remove();
    const isTight = this.columns.some((column) => 6.9 * column.title.length > 0.75 * this.step);
    this.brushes = this.columns.map((column, at) => {
      const group = this.svg.append("g").attr("class", "axis").attr("transform", `translate(${this.left + at * this.step},0)`);
      group.call(this.axis(at)).call(thinOut);
      const isLast = at === this.columns.length - 1;
      const name = shortened(column.title, Math.max(8, Math.floor((isTight ? 1.3 : 1) * this.step / 7.4)));
      group.append("text").attr("class", "title").attr("y", at % 2 && isTight ? 16 : 34).attr("x", at ? 0 : -20).attr("text-anchor", isLast ? "end" : at ? "middle" : "start")
        .attr("dx", isLast ? this.right - 4 : 0).text(name).append("title").text([column.title, column.description].filter(Boolean).join(": "));
      const brush = d3.brushY().extent([[-14, PARALLEL_TOP - 6], [14, PARALLEL_HEIGHT - PARALLEL_BOTTOM + 6]]).on("brush end", (event) => {
        if (!event.sourceEvent) return;
        const box = event.selection, [low, high] = box ? [this.scales[at].invert(box[1]), this.scales[at].invert(box[0])] : [];
        filter("parallel", column, box && {low, high});
        select();
      });
      const holder = group.append("g").attr("class", "brush").call(brush);
      return () => holder.call(brush.move, null);
    });
  }

  /** Takes all brushes away. */
  clear() { for (const clear of this.brushes) clear(); }

  draw() {
    if (!this.width) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.behind, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawSelected(context);
    this.marks = numSelected;
    this.element.dataset.marks = this.marks;
  }

  drawSelected(context) {
    STUDIES.forEach((_, study) => {
      const begin = TRIALS.starts[study], end = TRIALS.starts[study + 1] ?? COUNT;
      const inside = (row) => selected[row] && row >= begin && row < end;
      if (STUDIES.length > 1) return this.drawLines(context, inside, [CATEGORIES[study]], 0.75);
      this.drawLines(context, (row) => inside(row) && this.lost[row], [theme("soft")], 0.6);
      this.drawLines(context, (row) => inside(row) && !this.lost[row], ["#0072b2"], 0.9);
      return undefined;
    });
    context.lineWidth = 1.8;
    STUDIES.forEach((_, study) => this.drawLines(context, (row) => selected[row] && isTop[row] && studyOf(row) === study, [STUDIES.length > 1 ? CATEGORIES[study] : "#d55e00"], 1));
    if (this.pinned !== undefined) {
      context.lineWidth = 2.5;
      this.drawLines(context, (row) => row === this.pinned, [theme("text")], 1);
    }
    context.lineWidth = 1;
  }

  /**
   * Draws the lines of the trials that `wanted` tells. Between two axes trials with the same pixels at both ends are one line, the darker the
   * more they are; of too many lines every so many is drawn. So the cost does not grow with the number of trials.
   */
  drawLines(context, wanted, [colour], opacity) {
    const rows = [];
    for (let row = 0; row < COUNT; ++row) if (wanted(row)) rows.push(row);
    if (!rows.length) return;
    context.strokeStyle = colour;
    for (let gap = 0; gap + 1 < this.columns.length; ++gap) {
      const counts = new Uint32Array(PARALLEL_HEIGHT * PARALLEL_HEIGHT), from = this.pixels[gap], to = this.pixels[gap + 1], keys = [];
      for (const row of rows) {
        if (!from[row] || !to[row]) continue;
        const key = from[row] * PARALLEL_HEIGHT + to[row];
        if (!counts[key]++) keys.push(key);
      }
      if (keys.length) this.drawGap(context, gap, keys, counts, opacity);
    }
    context.globalAlpha = 1;
  }

  drawGap(context, gap, every, counts, opacity) {
    const each = Math.ceil(every.length / MOST_LINES), keys = each > 1 ? every.filter((_, at) => at % each === 0) : every;
    const most = keys.reduce((sum, key) => Math.max(sum, counts[key]), 1), groups = d3.range(DENSITIES).map(() => []);
    for (const key of keys) groups[Math.floor((DENSITIES - 1) * Math.sqrt(counts[key] / most))].push(key);
    const x = this.left + gap * this.step, thin = Math.min(1, 9 / Math.sqrt(keys.length));
    groups.forEach((group, at) => {
      context.globalAlpha = opacity * Math.min(1, thin * (0.3 + 0.7 * (at + 1) / DENSITIES));
      context.beginPath();
      for (const key of group) {
        context.moveTo(x, Math.floor(key / PARALLEL_HEIGHT));
        context.lineTo(x + this.step, key % PARALLEL_HEIGHT);
      }
      context.stroke();
    });
  }
}
