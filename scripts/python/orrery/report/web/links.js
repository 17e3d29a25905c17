"use strict";
// What the links of the congestion-aware network did: for each dimension how many have which value, and where they are.

const PALETTE = [[252, 233, 181], [246, 178, 107], [213, 94, 0], [140, 29, 64], [45, 10, 46]];

/** Returns the colour of a place on a scale from 0 to 1. High values stand out from the page, light or dark. */
function paletteAt(part) {
  if (document.documentElement.classList.contains("dark")) part = 0.92 - 0.92 * part;
  const place = Math.min(Math.max(part, 0), 1) * (PALETTE.length - 1), low = Math.min(Math.floor(place), PALETTE.length - 2);
  return `rgb(${PALETTE[low].map((from, i) => Math.round(from + (PALETTE[low + 1][i] - from) * (place - low))).join(",")})`;
}

/** Returns the place of a value on the scale of its dimension, from 0 to 1. The scale begins at 0 unless it is logarithmic. */
function placeOf(value, spread) {
  if (spread.isShare) return value / 100; // the whole scale is 0 to 100 %
  const low = spread.edges[0], high = spread.edges[spread.edges.length - 1];
  if (spread.uniform) return 0.5;
  return spread.log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : value / high;
}

function histogram(spread, unit) {
  const most = Math.max(...spread.counts), single = spread.counts.length === 1;
  return drawing(150, (context, width, height) => {
    const left = 44, bottom = height - 32, wide = width - left - 10;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of ticksOf(0, most, 4).filter(Number.isInteger)) {
      const y = bottom - tick / most * (bottom - 10);
      context.fillStyle = theme("line");
      context.fillRect(left, y, wide, 1);
      context.fillStyle = theme("soft");
      context.fillText(digits(tick), left - 6, y);
    }
    spread.counts.forEach((count, i) => {
      const each = single ? wide / 5 : wide / spread.counts.length, x = single ? left + 2 * each : left + i * each;
      context.fillStyle = paletteAt(placeOf(spread.log ? Math.sqrt(spread.edges[i] * spread.edges[i + 1]) : (spread.edges[i] + spread.edges[i + 1]) / 2, spread));
      context.fillRect(x + 0.5, bottom - count / most * (bottom - 10), each - 1, count / most * (bottom - 10));
    });
    context.fillStyle = theme("soft");
    const ends = single ? [spread.median] : [spread.edges[0], spread.edges[spread.edges.length - 1]];
    context.textAlign = single ? "center" : "left";
    context.fillText(readable(ends[0], unit), single ? left + wide / 2 : left, bottom + 10);
    context.textAlign = "right";
    if (!single) context.fillText(readable(ends[1], unit), left + wide, bottom + 10);
    context.textAlign = "center";
    context.fillText(spread.log ? "logarithmic scale" : "", left + wide / 2, bottom + 24);
  }, "How many links have which value");
}

function withSavers(name, canvas, rows) { return element("div", {}, canvas, savers(name, canvas, rows)); }

/** Returns a pattern for what is no link. */
function hatching(context) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inner = tile.getContext("2d");
  inner.strokeStyle = theme("hatch");
  inner.beginPath();
  inner.moveTo(-1, 7); inner.lineTo(7, -1);
  inner.stroke();
  return context.createPattern(tile, "repeat");
}

function linkMap(map, spread, unit) {
  const cells = numbers(map.cells), left = 46, foot = 34;
  const size = (width) => {
    const wide = Math.min((width - left - 4) / map.columns, 34);
    return [wide, Math.min(Math.max(Math.min(wide, 24), 130 / map.rows, 2), 24, Math.max(300 / map.rows, 2))];
  };
  const canvas = drawing((width) => size(width)[1] * map.rows + foot, (context, width, height) => {
    const [wide, high] = size(width);
    context.fillStyle = hatching(context);
    context.fillRect(left, 0, wide * map.columns, high * map.rows);
    const gap = wide > 4 && high > 4 ? 1 : 0;
    for (let row = 0; row < map.rows; ++row) for (let column = 0; column < map.columns; ++column) {
      const value = cells[row * map.columns + column];
      if (Number.isNaN(value)) continue;
      context.fillStyle = theme("card");
      context.fillRect(left + column * wide, row * high, wide, high);
      if (value >= 0) context.fillStyle = paletteAt(placeOf(value, spread));
      context.fillRect(left + column * wide, row * high, wide - gap + (gap ? 0 : 0.5), high - gap + (gap ? 0 : 0.5));
    }
    context.strokeStyle = theme("line");
    context.strokeRect(left + 0.5, 0.5, wide * map.columns - 1, high * map.rows - 1);
    context.fillStyle = theme("soft");
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of ticksOf(0, map.rows - 1, Math.max(map.rows * high / 40, 1)).filter(Number.isInteger)) context.fillText(tick * map.joins[0], left - 5, (tick + 0.5) * high);
    context.textAlign = "center";
    if (map.ticks && wide >= 24) map.ticks.forEach((tick, column) => context.fillText(tick, left + (column + 0.5) * wide, map.rows * high + 10));
    else for (const tick of ticksOf(0, map.columns - 1, Math.max(map.columns * wide / 60, 1)).filter(Number.isInteger))
      context.fillText(tick * map.joins[1], left + (tick + 0.5) * wide, map.rows * high + 10);
    context.textAlign = "left";
    context.fillText(map.column, left, height - 8);
  }, map.title);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), [wide, high] = size(box.width);
    const column = Math.floor((event.clientX - box.left - left) / wide), row = Math.floor((event.clientY - box.top) / high);
    if (row < 0 || row >= map.rows || column < 0 || column >= map.columns) return showTip(event, "");
    const value = cells[row * map.columns + column];
    const told = Number.isNaN(value) ? map.absent : value < 0 ? "carried nothing" : readable(value, unit);
    showTip(event, `${told}\n${map.row} ${row * map.joins[0]}\n${map.column}: ${map.ticks ? map.ticks[column] : column * map.joins[1]}`);
  });
  const joined = map.joins.some((join) => join > 1) ? ` (a cell is the largest of ${map.joins[0]} × ${map.joins[1]})` : "";
  return element("figure", {}, element("figcaption", {}, `${map.title}${joined}; rows: ${map.row}`), canvas,
    savers("links-map", canvas, () => Array.from({length: map.rows}, (_, row) => Array.from({length: map.columns}, (_, column) => {
      const value = cells[row * map.columns + column];
      return Number.isNaN(value) ? "" : Math.max(value, 0);
    }))));
}

function colourScale() {
  const scale = element("span", {class: "scale"});
  const paint = () => { scale.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(paletteAt).join(", ")})`; };
  paint();
  redraws.add(paint);
  return scale;
}

function linksOf(series) {
  const place = element("div", {id: "links"});
  const show = (name) => {
    const quantity = series.quantities.find((one) => one.name === name), unit = quantity.unit === "messages" ? "1" : quantity.unit;
    place.replaceChildren(...series.dimensions.map((one) => {
      const {maps} = one.quantities[name], spread = {...one.quantities[name].spread, isShare: quantity.unit === "%"};
      return element("div", {}, element("h3", {}, `Dimension ${one.dimension}, ${one.shape} of ${one.size}: ${one.links.toLocaleString("en-US")} links carried data`),
        element("p", {class: "soft"}, `${quantity.title}: least ${readable(spread.least, unit)}, median ${readable(spread.median, unit)}, most ${readable(spread.most, unit)}`,
          spread.uniform && !spread.isShare ? null : colourScale(), spread.isShare ? "0 to 100 %" : spread.uniform ? "" : `${spread.log ? readable(spread.edges[0], unit) : "0"} to ${readable(spread.most, unit)}${spread.log ? ", logarithmic" : ""}`),
        element("div", {class: "split"}, withSavers(`links-${one.dimension}`, histogram(spread, unit), () => [["from", "to", "links"], ...spread.counts.map((count, i) => [spread.edges[i], spread.edges[i + 1] ?? spread.edges[i], count])]), element("div", {class: "maps"}, maps.map((map) => linkMap(map, spread, unit)))));
    }));
  };
  const choice = element("select", {id: "quantity", change: (event) => show(event.target.value)},
    series.quantities.map((one) => element("option", {value: one.name}, one.title)));
  show(series.quantities[0].name);
  return [element("h3", {}, "Links"), element("div", {class: "controls"}, element("label", {}, "Show the", choice)), place,
    element("p", {class: "soft"}, "Hatched: there is no link, or none that carried data. White or empty: a link that carried nothing.")];
}
