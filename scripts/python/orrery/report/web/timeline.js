"use strict";
// The timeline: bands of all NPUs as shares of time, and lanes of some NPUs node by node. Both have one axis, which can be zoomed.

const LANES = ["compute", "cpu", "host", "collective", "send", "receive", "mem-load", "mem-store"];
const BAND = 22, LANE = 15, GAP = 8, AXIS = 24, LEFT = 176, NARROW = 112;
/** Returns the end of a text that fits, behind an ellipsis: names differ at their ends. */
function fromTheEnd(context, text, wide) {
  if (context.measureText(text).width <= wide) return text;
  let low = 0, high = text.length; // letters of the end
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(`…${text.slice(-middle)}`).width <= wide) low = middle;
    else high = middle - 1;
  }
  return low ? `…${text.slice(-low)}` : "";
}

const SHORT = {"compute": "comp", "collective": "coll", "receive": "recv", "mem-load": "load", "mem-store": "store", "critical path": "critical"};

/** Returns the NPUs of a text such as "0,4-7" that are known. */
function chosenNpus(text, known) {
  const wanted = new Set();
  for (const piece of text.split(",")) {
    const [first, last] = piece.split("-").map((part) => parseInt(part, 10));
    for (const npu of known) if (npu >= first && npu <= (Number.isNaN(last) || last === undefined ? first : last)) wanted.add(npu);
  }
  return [...wanted];
}

/** The nodes of a run by NPU and kind: {npu: {kind: indices, by start}}. */
function lanesOf(nodes) {
  const lanes = new Map(nodes.npus.map((npu) => [npu, {}]));
  const npu = numbers(nodes.npu), kind = numbers(nodes.kind.codes);
  for (let i = 0; i < nodes.count; ++i) {
    const lane = lanes.get(npu[i]), name = nodes.kind.words[kind[i]];
    (lane[name] = lane[name] || []).push(i);
  }
  return lanes;
}

class TimelineView {
  /** collectives: rows of the facts, which know the algorithm and the bandwidth of kinds of collectives. */
  constructor(series, collectives = [], numNpus = 0) {
    this.series = series;
    this.isWhole = series.nodes.npus.length === numNpus;
    this.known = new Map(collectives.map((row) => [`${row.family} ${row.kind} ${row.bytes}`, row]));
    this.nodes = series.nodes;
    this.lanes = lanesOf(this.nodes);
    this.start = numbers(this.nodes.start);
    this.finish = numbers(this.nodes.finish);
    this.kinds = LANES.filter((kind) => this.nodes.kind.words.includes(kind));
    this.hidden = new Set();
    const known = this.nodes.npus;
    this.shown = [...new Set([0, 1, 2, 3].map((i) => known[Math.round(i * (known.length - 1) / 3)]))];
    this.matches = null; // of the search: for each name whether it matches
    this.found = []; // indices of all nodes of the page that match, by start
    this.at = -1; // which of them was gone to
    this.chosen = null; // the node whose details are shown
    this.placeOf = new Map(known.map((npu, at) => [npu, this.nodes.places ? this.nodes.places[at] : ""]));
    this.passes = this.nodes.name.words.map((name) => /^(forward|backward)(\.|$)/.exec(name)?.[1] || "compute");
    if (this.passes.some((pass) => pass !== "compute")) this.passes = this.passes.map((pass) => pass === "compute" ? "other compute" : pass);
    this.begin = 0;
    this.end = series.end;
    this.canvas = drawing(() => this.height(), (context, width) => this.draw(context, width), "What the NPUs did when");
    this.listen();
  }

  // ---- what is where ----

  visibleKinds() { return this.kinds.filter((kind) => !this.hidden.has(kind)); }
  pathHeight() { return this.series.path ? LANE + GAP : 0; }
  bandsHeight() { return this.series.bands.length * BAND + GAP; }
  npuHeight() { return Math.max(this.visibleKinds().length, 1) * LANE + GAP; }
  height() { return AXIS + this.pathHeight() + this.bandsHeight() + this.shown.length * this.npuHeight(); }
  left(width) { return width < 600 ? NARROW : LEFT; }
  xOf(time) { return this.plotLeft + (time - this.begin) / (this.end - this.begin) * this.plotWidth; }
  timeOf(x) { return this.begin + (x - this.plotLeft) / this.plotWidth * (this.end - this.begin); }

  /** Shows the time from begin to end. */
  zoom(begin, end) {
    const least = 10, whole = this.series.end;
    let span = Math.min(Math.max(end - begin, least), whole);
    this.begin = Math.min(Math.max(begin, 0), whole - span);
    this.end = this.begin + span;
    this.changed();
  }

  zoomBy(factor, around = (this.begin + this.end) / 2) {
    this.zoom(around - (around - this.begin) * factor, around + (this.end - around) * factor);
  }

  changed() {
    this.canvas.redraw();
    this.told();
    const whole = this.begin === 0 && this.end === this.series.end;
    setState({from: whole ? null : Math.round(this.begin), to: whole ? null : Math.round(this.end), npus: this.shown.join(",")});
  }

  /** Shows what the address says: span of time, NPUs, search, chosen node. */
  restore() {
    const npus = state.get("npus") && chosenNpus(state.get("npus"), this.nodes.npus).slice(0, 64);
    if (npus && npus.length) {
      this.shown = npus;
      this.npusField.value = npus.join(",");
    }
    if (state.has("from")) this.zoom(Number(state.get("from")) || 0, Number(state.get("to")) || this.series.end);
    if (state.get("find")) {
      this.searchField.value = state.get("find");
      this.search(state.get("find"));
    }
    if (state.has("node")) this.choose(Number(state.get("node")));
  }

  colourOfNode(i) {
    const kind = this.nodes.kind.words[numbers(this.nodes.kind.codes)[i]];
    return colour(kind === "compute" ? this.passes[numbers(this.nodes.name.codes)[i]] : kind);
  }

  /** Finds all nodes of the page whose name holds a text, in the order of time. */
  search(text) {
    const wanted = text.trim().toLowerCase(), names = numbers(this.nodes.name.codes);
    this.matches = wanted ? this.nodes.name.words.map((name) => name.toLowerCase().includes(wanted)) : null;
    this.found = [];
    if (this.matches) for (let i = 0; i < this.nodes.count; ++i) if (this.matches[names[i]]) this.found.push(i);
    this.found.sort((a, b) => this.start[a] - this.start[b] || a - b);
    this.at = -1;
    setState({find: text.trim() || null});
    this.changed();
  }

  /** Goes to the next node that was found, or to the one before: step is 1 or -1. */
  step(step) {
    if (!this.found.length) return;
    this.at = this.at < 0 ? (step > 0 ? 0 : this.found.length - 1) : (this.at + step + this.found.length) % this.found.length;
    this.goTo(this.found[this.at]);
  }

  /** Shows a node in the middle of the timeline, with its details. */
  goTo(i) {
    this.showNpu(numbers(this.nodes.npu)[i]);
    const wide = Math.max((this.finish[i] - this.start[i]) * 12, this.series.end / 2000), middle = (this.start[i] + this.finish[i]) / 2;
    this.zoom(middle - wide / 2, middle + wide / 2);
    this.choose(i);
  }

  showNpu(npu) {
    if (this.shown.includes(npu)) return;
    this.shown = [...this.shown, npu].slice(-64);
    this.npusField.value = this.shown.join(",");
  }

  /** Shows the node of a name on an NPU at a time, as the critical path names it. Returns whether the page has it. */
  goToNode(npu, name, start, finish) {
    const names = numbers(this.nodes.name.codes);
    const at = Object.values(this.lanes.get(npu) || {}).flat().find((i) => this.nodes.name.words[names[i]] === name && this.start[i] < finish && this.finish[i] > start);
    if (at !== undefined) this.goTo(at);
    else {
      const wide = Math.max((finish - start) * 6, this.series.end / 2000);
      this.zoom((start + finish - wide) / 2, (start + finish + wide) / 2);
    }
    return at !== undefined;
  }

  choose(i) {
    this.chosen = Number.isInteger(i) && i >= 0 && i < this.nodes.count ? i : null;
    setState({node: this.chosen});
    this.details.replaceChildren(...(this.chosen === null ? [] : [nodePanel(this, this.chosen)]));
    this.canvas.redraw();
  }

  /** Says which part of the time is shown, and what the search found in it. */
  told() {
    let text = `${readable(this.begin, "ps")} to ${readable(this.end, "ps")}`;
    if (this.matches) {
      let count = 0, time = 0;
      const names = numbers(this.nodes.name.codes);
      for (const npu of this.shown) for (const kind of this.visibleKinds()) for (const i of this.lanes.get(npu)[kind] || []) {
        if (!this.matches[names[i]] || this.finish[i] <= this.begin || this.start[i] >= this.end) continue;
        ++count;
        time += this.finish[i] - this.start[i];
      }
      text += ` · ${count.toLocaleString("en-US")} nodes match here, ${readable(time, "ps")} in all`;
      this.place.textContent = this.found.length ? `${this.at < 0 ? "" : `${(this.at + 1).toLocaleString("en-US")} of `}${this.found.length.toLocaleString("en-US")} in ${this.isWhole ? "the whole run" : `the ${this.nodes.npus.length} NPUs of the page`}` : "nothing matches";
    }
    if (!this.matches && this.place) this.place.textContent = "";
    for (const button of this.steps || []) button.disabled = !this.found.length;
    if (this.status) this.status.textContent = text;
  }

  // ---- drawing ----

  draw(context, width) {
    this.plotLeft = this.left(width);
    this.plotWidth = width - this.plotLeft - 8;
    context.textBaseline = "middle";
    this.drawAxis(context);
    let top = AXIS;
    if (this.series.path) {
      this.label(context, "critical path", top + LANE / 2, true);
      const path = this.series.path, causes = numbers(path.cause.codes), all = numbers(path.start).keys();
      this.drawSlices(context, [...all], numbers(path.start), numbers(path.finish), top, (i) => colour(path.cause.words[causes[i]]), () => true, null);
      top += this.pathHeight();
    }
    this.series.bands.forEach((band, row) => this.drawBand(context, band, top + row * BAND));
    top += this.bandsHeight();
    const names = numbers(this.nodes.name.codes);
    for (const npu of this.shown) {
      context.fillStyle = theme("line");
      context.fillRect(0, top - GAP / 2, this.plotLeft + this.plotWidth, 1);
      this.visibleKinds().forEach((kind, row) => {
        const wide = this.plotLeft - 6 - 70;
        if (row === 0) this.label(context, `NPU ${npu}`, top + LANE / 2, true, 0);
        if (row > 0) this.label(context, this.placeLine(context, npu, row - 1, wide), top + row * LANE + LANE / 2, false, 0);
        this.label(context, kind, top + row * LANE + LANE / 2, false);
        this.drawSlices(context, this.lanes.get(npu)[kind] || [], this.start, this.finish, top + row * LANE, (i) => this.colourOfNode(i),
          (i) => !this.matches || this.matches[names[i]], (i) => this.nodes.name.words[names[i]]);
      });
      top += this.npuHeight();
    }
    this.drawChosen(context);
    if (this.drag) {
      context.fillStyle = theme("accent") + "33";
      context.fillRect(Math.min(this.drag.from, this.drag.to), AXIS, Math.abs(this.drag.to - this.drag.from), top);
    }
  }

  /** Returns a line of the place of an NPU ("stage 1 · dp 2"): as many parts as fit, one line after the other. */
  placeLine(context, npu, which, wide) {
    const parts = (this.placeOf.get(npu) || "").split(" · ").filter(Boolean), lines = [];
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    for (const part of parts) {
      const longer = lines.length ? `${lines[lines.length - 1]} · ${part}` : part;
      if (lines.length && context.measureText(longer).width > wide) lines.push(part);
      else lines[Math.max(lines.length - 1, 0)] = longer;
    }
    return lines[which] || "";
  }

  /** Draws a frame around the node whose details are shown. */
  drawChosen(context) {
    const i = this.chosen;
    if (i === null) return;
    const place = this.shown.indexOf(numbers(this.nodes.npu)[i]), row = this.visibleKinds().indexOf(this.nodes.kind.words[numbers(this.nodes.kind.codes)[i]]);
    if (place < 0 || row < 0 || this.finish[i] <= this.begin || this.start[i] >= this.end) return;
    const top = AXIS + this.pathHeight() + this.bandsHeight() + place * this.npuHeight() + row * LANE;
    const from = Math.max(this.xOf(this.start[i]), this.plotLeft), to = Math.min(this.xOf(this.finish[i]), this.plotLeft + this.plotWidth);
    context.strokeStyle = theme("text");
    context.lineWidth = 2;
    context.strokeRect(from - 1, top - 1.5, Math.max(to - from, 2) + 2, LANE);
    context.lineWidth = 1;
  }

  label(context, text, y, bold, left) {
    context.fillStyle = bold ? theme("text") : theme("soft");
    context.font = `${bold ? "600 12px" : "11px"} system-ui, 'DejaVu Sans', sans-serif`;
    context.textAlign = left === 0 ? "left" : "right";
    context.fillText(this.plotLeft < LEFT ? SHORT[text] || text : text, left === 0 ? 0 : this.plotLeft - 6, y);
  }

  drawAxis(context) {
    const [unit, size] = unitOf(this.end, "ps");
    context.textAlign = "center";
    const ticks = ticksOf(this.begin / size, this.end / size, this.plotWidth / 90);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1, places = Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 9);
    for (const tick of ticks) {
      const x = this.xOf(tick * size);
      context.fillStyle = theme("line");
      context.fillRect(x, AXIS - 5, 1, 5000);
      context.fillStyle = theme("soft");
      const text = `${tick.toFixed(places)} ${unit}`, half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(x, this.plotLeft + half - 20), this.plotLeft + this.plotWidth + 6 - half), AXIS / 2 - 2);
    }
  }

  /** Draws stacked shares: the height of a colour is the share of the time, the mean over the bins of a pixel. */
  drawBand(context, band, top) {
    this.drawShares(context, band, top, BAND - 3);
    const name = band.npus.includes(": ") ? band.npus.replace(": ", this.plotLeft < LEFT ? " · " : " · NPUs ") : `NPU${band.npus.includes("–") ? "s" : ""} ${band.npus}`;
    this.label(context, name, top + BAND / 2, false);
  }

  drawShares(context, band, top, high) {
    const bins = this.series.bins, whole = this.series.end;
    context.fillStyle = theme("idle");
    context.globalAlpha = 0.45;
    context.fillRect(this.plotLeft, top, this.plotWidth, high);
    context.globalAlpha = 1;
    const pixels = Math.floor(this.plotWidth), bottom = new Float32Array(pixels).fill(top + high);
    for (const [state, encoded] of Object.entries(band.states)) {
      const values = numbers(encoded);
      context.fillStyle = colour(state);
      for (let pixel = 0; pixel < pixels; ++pixel) {
        const from = this.timeOf(this.plotLeft + pixel) / whole * bins, to = this.timeOf(this.plotLeft + pixel + 1) / whole * bins;
        let sum = 0;
        for (let bin = Math.floor(from); bin < to && bin < bins; ++bin) sum += values[bin] * (Math.min(to, bin + 1) - Math.max(from, bin));
        const part = sum / 255 / (to - from) * high;
        if (part <= 0) continue;
        context.fillRect(this.plotLeft + pixel, bottom[pixel] - part, 1, part);
        bottom[pixel] -= part;
      }
    }
  }

  /**
   * Draws nodes as boxes. Where several share a pixel, the height says for which part of it at least one of them ran.
   * matches: which of them the search found; the others are pale.
   */
  drawSlices(context, indices, start, finish, top, colourOf, matches, nameOf) {
    const high = LANE - 3, pixels = Math.ceil(this.plotWidth), scale = this.plotWidth / (this.end - this.begin);
    const shares = [new Float32Array(pixels + 1), new Float32Array(pixels + 1)], colours = new Array(pixels + 1);
    const until = [-Infinity, -Infinity];
    for (const i of indices) {
      if (finish[i] <= this.begin || start[i] >= this.end) continue;
      const found = matches(i) ? 1 : 0;
      const from = Math.max(start[i], this.begin), to = Math.min(finish[i], this.end);
      const x = (from - this.begin) * scale, wide = (to - from) * scale;
      if (wide >= 2) {
        context.globalAlpha = found ? 1 : 0.15;
        context.fillStyle = colourOf(i);
        context.fillRect(this.plotLeft + x, top, Math.max(wide - 0.5, 1.5), high);
        if (wide > 30 && nameOf && found) this.drawName(context, nameOf(i), x, wide, top + high / 2, ink(colourOf(i)));
        context.globalAlpha = 1;
      } else {
        const since = Math.max(from, until[found]);
        if (since < to) this.share(shares[found], colours, (since - this.begin) * scale, (to - this.begin) * scale, colourOf(i));
      }
      until[found] = Math.max(until[found], finish[i]);
    }
    shares.forEach((share, found) => {
      context.globalAlpha = found ? 1 : 0.15;
      for (let pixel = 0; pixel <= pixels; ++pixel) {
        if (share[pixel] <= 0) continue;
        const part = Math.min(share[pixel], 1) * high;
        context.fillStyle = colours[pixel];
        context.fillRect(this.plotLeft + pixel, top + high - part, 1, part);
      }
    });
    context.globalAlpha = 1;
  }

  share(share, colours, from, to, fill) {
    for (let pixel = Math.floor(from); pixel < to && pixel < share.length; ++pixel) {
      share[pixel] += Math.min(to, pixel + 1) - Math.max(from, pixel);
      colours[pixel] = fill;
    }
  }

  drawName(context, name, x, wide, y, fill) {
    context.fillStyle = fill;
    context.font = "10px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "left";
    context.fillText(fromTheEnd(context, name, wide - 8), this.plotLeft + x + 4, y);
  }

  // ---- what the pointer is at ----

  /** Returns what is at a place of the canvas, as a text. */
  textAt(x, y) {
    if (x < this.plotLeft) return "";
    const time = this.timeOf(x);
    let top = AXIS;
    if (this.series.path && y >= top && y < top + LANE) return this.textOfPath(time);
    top += this.pathHeight();
    const row = Math.floor((y - top) / BAND);
    if (row >= 0 && row < this.series.bands.length) return this.textOfBand(this.series.bands[row], time);
    top += this.bandsHeight();
    const near = this.nodesAt(x, y);
    return near.length > 3 ? `${near.length} nodes here; zoom in to tell them apart` : near.map((i) => this.textOfNode(i)).join("\n\n");
  }

  textOfPath(time) {
    const path = this.series.path, start = numbers(path.start), finish = numbers(path.finish);
    const i = finish.findIndex((end, at) => start[at] <= time && end >= time);
    if (i < 0) return "";
    return `critical path: ${path.cause.words[numbers(path.cause.codes)[i]]}\n${path.name.words[numbers(path.name.codes)[i]] || ""} on NPU ${numbers(path.npu)[i]}\n`
      + `${readable(start[i], "ps")}, for ${readable(finish[i] - start[i], "ps")}`;
  }

  textOfBand(band, time) {
    const bin = Math.min(Math.floor(time / this.series.end * this.series.bins), this.series.bins - 1);
    const lines = Object.entries(band.states).map(([state, encoded]) => `${state} ${readable(numbers(encoded)[bin] / 255, "share")}`);
    return [`${band.npus.includes(": ") ? band.npus.replace(": ", ", NPUs ") : `NPU ${band.npus}`} at ${readable(time, "ps")}`, ...lines].join("\n");
  }

  /** Returns [[name, text]] of what is known of a node. */
  factsOfNode(i) {
    const nodes = this.nodes, group = numbers(nodes.group_name.codes)[i], npu = numbers(nodes.npu)[i], time = this.finish[i] - this.start[i];
    const found = [["name", nodes.name.words[numbers(nodes.name.codes)[i]]], ["kind", nodes.kind.words[numbers(nodes.kind.codes)[i]]],
      ["NPU", `${npu}${this.placeOf.get(npu) ? ` (${this.placeOf.get(npu)})` : ""}`],
      ["time", `${readable(this.start[i], "ps")} to ${readable(this.finish[i], "ps")}`], ["duration", readable(time, "ps")]];
    const operation = nodes.operation ? numbers(nodes.operation.codes)[i] : -1, name = group >= 0 ? nodes.group_name.words[group] : "";
    const bytes = nodes.bytes ? numbers(nodes.bytes)[i] : 0, peer = nodes.peer ? numbers(nodes.peer)[i] : -1;
    if (operation >= 0) found.push(["operation", nodes.operation.words[operation]]);
    if (name) found.push(["group", name]);
    if (peer >= 0) found.push(["peer", `NPU ${peer}${this.placeOf.get(peer) ? ` (${this.placeOf.get(peer)})` : ""}`]);
    if (bytes > 0) found.push(["bytes", readable(bytes, "byte")]);
    const row = name && operation >= 0 ? this.known.get(`${familyOf(name)} ${nodes.operation.words[operation]} ${bytes}`) : null;
    if (row && row.members) found.push(["members", row.members.toLocaleString("en-US")]);
    if (row && row.algorithm) found.push(["algorithm", row.algorithm]);
    if (row && row.bus_bandwidth) found.push(["bus bandwidth", `${readable(row.bus_bandwidth, "byte/s")}, the mean of its kind`]);
    else if (bytes > 0 && time > 0) found.push(["bandwidth", readable(bytes / time * 1e12, "byte/s")]);
    return found;
  }

  textOfNode(i) { return this.factsOfNode(i).map(([name, text]) => name === "name" ? text : `${name}: ${text}`).join("\n"); }

  /** Returns the indices of the nodes at a place of the canvas. */
  nodesAt(x, y) {
    const which = Math.floor((y - AXIS - this.pathHeight() - this.bandsHeight()) / this.npuHeight());
    const kind = this.visibleKinds()[Math.floor((y - AXIS - this.pathHeight() - this.bandsHeight() - which * this.npuHeight()) / LANE)];
    if (x < this.plotLeft || which < 0 || which >= this.shown.length || !kind) return [];
    const time = this.timeOf(x), slack = (this.end - this.begin) / this.plotWidth;
    return (this.lanes.get(this.shown[which])[kind] || []).filter((i) => this.start[i] <= time + slack && this.finish[i] >= time - slack);
  }

  /** Shows the details of what was clicked: of a node, or of the node that a segment of the critical path names. */
  click(x, y) {
    if (this.series.path && x >= this.plotLeft && y >= AXIS && y < AXIS + LANE) {
      const path = this.series.path, time = this.timeOf(x), start = numbers(path.start), finish = numbers(path.finish);
      const i = finish.findIndex((end, at) => start[at] <= time && end >= time);
      if (i >= 0) this.goToNode(numbers(path.npu)[i], path.name.words[numbers(path.name.codes)[i]], start[i], finish[i]);
      return;
    }
    const near = this.nodesAt(x, y), time = this.timeOf(x);
    this.choose(near.length ? near.reduce((best, i) => Math.abs((this.start[i] + this.finish[i]) / 2 - time) < Math.abs((this.start[best] + this.finish[best]) / 2 - time) ? i : best) : null);
  }

  listen() {
    const at = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
    this.canvas.style.cursor = "crosshair";
    this.canvas.addEventListener("pointerdown", (event) => {
      this.pressed = event.clientY - this.canvas.getBoundingClientRect().top;
      if (event.pointerType === "mouse" && event.button === 0) this.drag = {from: at(event), to: at(event)};
      else if (event.pointerType !== "mouse") this.click(at(event), this.pressed);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.drag) {
        this.drag.to = at(event);
        this.canvas.redraw();
      }
      showTip(event, this.drag ? "" : this.textAt(at(event), event.clientY - this.canvas.getBoundingClientRect().top));
    });
    window.addEventListener("pointerup", () => {
      if (!this.drag) return;
      const {from, to} = this.drag;
      this.drag = null;
      if (Math.abs(to - from) <= 4) this.click(from, this.pressed);
      if (Math.abs(to - from) > 4) this.zoom(this.timeOf(Math.min(from, to)), this.timeOf(Math.max(from, to)));
      else this.canvas.redraw();
    });
    this.canvas.addEventListener("dblclick", () => this.zoom(0, this.series.end));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const span = this.end - this.begin, delta = event.deltaY || event.deltaX;
      if (event.ctrlKey) this.zoomBy(delta > 0 ? 1.25 : 0.8, this.timeOf(at(event)));
      else this.zoom(this.begin + Math.sign(delta) * span * 0.15, this.end + Math.sign(delta) * span * 0.15);
    }, {passive: false});
  }

  // ---- what stands around it ----

  controls() {
    const chips = this.kinds.map((kind) => element("label", {class: "chip"}, element("input", {type: "checkbox", checked: "", "data-kind": kind, change: (event) => {
      if (event.target.checked) this.hidden.delete(kind);
      else this.hidden.add(kind);
      this.changed();
    }}), swatch(kind), kind));
    const npus = this.npusField = element("input", {type: "text", value: this.shown.join(","), size: 14, "aria-label": "NPUs that are drawn node by node", change: (event) => {
      const found = chosenNpus(event.target.value, this.nodes.npus).slice(0, 64);
      if (found.length) this.shown = found;
      event.target.value = this.shown.join(",");
      this.changed();
    }});
    const search = this.searchField = element("input", {type: "search", placeholder: "find nodes by name", "aria-label": "find nodes by name", id: "find-nodes",
      input: (event) => this.search(event.target.value), keydown: (event) => { if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1); }});
    const button = (text, title, click) => element("button", {type: "button", title, click, "aria-label": title}, text);
    this.steps = [button("‹", "Previous match", () => this.step(-1)), button("›", "Next match", () => this.step(1))];
    this.place = element("span", {class: "soft", id: "found-nodes"});
    this.details = element("div", {id: "node-details"});
    this.status = element("span", {class: "soft", id: "timeline-status"});
    return [element("div", {class: "controls"}, chips, element("label", {}, "NPUs", npus), search, this.steps, this.place),
      element("div", {class: "controls"}, button("+", "Zoom in", () => this.zoomBy(0.5)), button("−", "Zoom out", () => this.zoomBy(2)),
        button("←", "Earlier", () => this.zoom(this.begin - (this.end - this.begin) / 2, this.end - (this.end - this.begin) / 2)),
        button("→", "Later", () => this.zoom(this.begin + (this.end - this.begin) / 2, this.end + (this.end - this.begin) / 2)),
        button("All", "Show the whole time", () => this.zoom(0, this.series.end)), this.status)];
  }
}

function timelineSection(run) {
  const series = run.series.timeline;
  if (!series) return null;
  const view = run.view = new TimelineView(series, run.facts.collectives.rows, run.facts.num_npus), {recorded, total} = series.attributes;
  const told = ["Above, all NPUs: the height of a colour is the share of the time. Below, some NPUs node by node."];
  if (series.read < run.facts.num_npus) told.push(`The bands are made of ${series.read.toLocaleString("en-US")} NPUs.`);
  if (series.nodes.npus.length < run.facts.num_npus) told.push(`The page has the nodes of ${series.nodes.npus.length} NPUs, evenly spread from 0 to ${series.nodes.npus[series.nodes.npus.length - 1]}.`);
  if (recorded < total) told.push("Only the first iterations were recorded.");
  told.push("Drag to zoom, double-click for all; Ctrl and wheel zoom, Shift and wheel move. Click a node for its details.");
  const used = new Set(series.bands.flatMap((band) => Object.keys(band.states))), states = [...used];
  const made = element("section", {id: "timeline"}, element("h2", {}, "Timeline"), element("p", {class: "soft"}, told.join(" ")), view.controls(), view.canvas, view.details,
    element("div", {class: "legend"}, states.map((state) => element("span", {}, swatch(state), state)), element("span", {}, swatch("idle"), "idle")), savers("timeline", view.canvas, () => nodeRows(view)));
  view.told();
  view.restore();
  return made;
}
