"use strict";
// A map of the best value of a metric for each pair of values of two columns.

const MOST_LEVELS = 12; // of a column of numbers; one of words has a level for each word

/** Returns {names, of(row)}: the levels of a column, and that of a trial (-1: none). */
function levelsOf(column) {
  if (column.isWord) return {names: column.words, of: (row) => column.at[row], range: (level) => ({words: [level]})};
  const edges = d3.range(MOST_LEVELS + 1).map((at) => column.low + (column.high - column.low) * at / MOST_LEVELS);
  return {names: d3.range(MOST_LEVELS).map((at) => readable((edges[at] + edges[at + 1]) / 2, column.unit)),
    of: (row) => column.at[row] === column.at[row] ? Math.min(MOST_LEVELS - 1, d3.bisectRight(edges, column.at[row]) - 1) : -1,
    range: (level) => ({low: edges[level], high: edges[level + 1]})};
}

class HeatMap {
  constructor(x, y, metric) {
    this.svg = d3.create("svg").attr("class", "heat-map");
    this.caption = element("p", {class: "soft"});
    this.element = element("div", {}, element("div", {class: "wide-plot"}, this.svg.node()), this.caption);
    this.show(x, y, metric);
    drawWhenSeen(this.element, () => this.draw());
    redraws.add(() => this.draw());
    new ResizeObserver(() => requestAnimationFrame(() => this.element.clientWidth !== this.width && this.draw())).observe(this.element);
  }

  show(x, y, metric) {
    Object.assign(this, {x, y, metric});
    this.draw();
  }

  /** Returns {x, y, row, count} for each pair of levels: the best selected trial that is done. */
  cells(levelsX, levelsY) {
    const found = new Map();
    for (let row = 0; row < COUNT; ++row) {
      if (!selected[row] || !isDone(row)) continue;
      const x = levelsX.of(row), y = levelsY.of(row), value = valueOf(this.metric, row);
      if (x < 0 || y < 0 || value !== value) continue;
      const key = x * levelsY.names.length + y, known = found.get(key);
      if (!known) found.set(key, {x, y, row, value, count: 1});
      else {
        ++known.count;
        if (value < known.value) Object.assign(known, {row, value});
      }
    }
    return [...found.values()];
  }

  draw() {
    this.width = this.element.clientWidth;
    if (!this.width) return;
    const levelsX = levelsOf(this.x), levelsY = levelsOf(this.y), cells = this.cells(levelsX, levelsY);
    const left = 16 + 7 * Math.min(14, Math.max(...levelsY.names.map((name) => name.length), 3)), top = 6, bottom = 24;
    const width = Math.max(this.width, left + 26 * levelsX.names.length), wide = Math.min((width - left - 6) / levelsX.names.length, 130), high = Math.max(22, Math.min(40, 320 / levelsY.names.length));
    const height = top + high * levelsY.names.length + bottom;
    // A share has the whole scale, so that colours of several maps can be compared; of a metric of which more is better values are negative.
    const ends = this.metric.unit !== "share" ? d3.extent(cells, (cell) => cell.value) : this.metric.less === false ? [-1, 0] : [0, 1];
    const shade = d3.scaleSequential([...ends], (part) => d3.interpolateViridis(1 - 0.95 * part));
    this.svg.attr("width", width).attr("height", height).selectAll("*").remove();
    const groups = this.svg.selectAll("g").data(cells).join("g").attr("transform", (cell) => `translate(${left + cell.x * wide},${top + (levelsY.names.length - 1 - cell.y) * high})`).attr("class", "cell")
      .on("pointermove", (event, cell) => showTip(event, `${cell.count.toLocaleString("en-US")} trials, the best is\n${about(cell.row)}`)).on("pointerleave", (event) => showTip(event, ""))
      .on("click", (event, cell) => {
        filter("heat", this.x, levelsX.range(cell.x));
        filter("heat", this.y, levelsY.range(cell.y));
        pin(cell.row);
        select();
      });
    groups.append("rect").attr("width", Math.max(wide - 1.5, 1)).attr("height", high - 1.5).attr("rx", 3).attr("fill", (cell) => shade(cell.value));
    const widest = Math.max(...cells.map((cell) => textWidth(textOf(this.metric, cell.row))));
    if (cells.length && wide > widest + 6) groups.append("text").attr("x", wide / 2).attr("y", high / 2).attr("dy", "0.35em").attr("text-anchor", "middle")
      .attr("fill", (cell) => ink(d3.color(shade(cell.value)).formatHex())).text((cell) => textOf(this.metric, cell.row));
    this.drawNames(levelsX, levelsY, {left, top, wide, high});
    this.element.dataset.marks = cells.length;
  }

  drawNames(levelsX, levelsY, {left, top, wide, high}) {
    const widest = Math.max(...levelsX.names.map((name) => textWidth(shortened(name, 14)))), each = Math.ceil((widest + 10) / wide), bottom = top + high * levelsY.names.length;
    const names = this.svg.append("g").attr("class", "axis");
    names.selectAll("text.x").data(levelsX.names.filter((_, at) => at % each === 0)).join("text").attr("text-anchor", "middle").attr("x", (_, at) => left + (at * each + 0.5) * wide).attr("y", bottom + 15).text((name) => shortened(name, 14));
    names.append("g").selectAll("text").data(levelsY.names).join("text").attr("text-anchor", "end").attr("x", left - 7).attr("y", (_, at) => top + (levelsY.names.length - at - 0.5) * high).attr("dy", "0.35em").text((name) => shortened(name, 14));
    this.caption.textContent = `${this.x.title} →, ${this.y.title} ↑; the best ${this.metric.title} of the selected trials that are done.`;
  }
}
