"use strict";
// The table of trials: the best ones, the front or all, of those that are selected; with the command that runs each again.

const STEP_ROWS = 25; // that the table shows at first, and more with each click

class TrialTable {
  constructor() {
    this.columns = COLUMNS.filter((column) => column.name !== "error" && (!column.isWord || column.words.length > 1 || (column.role === "caveat" && column.words[0] !== "–")));
    Object.assign(this, {by: OBJECTIVE ?? this.columns[0], isFalling: OBJECTIVE?.less === false, list: "top", wanted: "", shown: STEP_ROWS});
    this.body = element("tbody");
    this.count = element("span", {class: "soft"});
    this.chips = element("div", {class: "controls chips"});
    this.more = element("button", {type: "button", click: () => { this.shown += 8 * STEP_ROWS; this.fill(); }}, "Show more");
    this.heads = new Map(this.columns.map((column) => [column, element("th", {class: column.isWord && column.role !== "parameter" && column.role !== "derived" ? null : "number", title: column.description || null},
      element("button", {type: "button", click: () => this.sort(column)}, column.title))]));
    const field = element("input", {type: "search", placeholder: "find text, such as a status", "aria-label": "find text", input: () => {
      this.wanted = field.value.trim().toLowerCase();
      this.fill();
    }});
    // Of several objectives the best trials are the front.
    const lists = [["top", "Best"], ["front", "Pareto front"], ["all", "All"]].filter(([name]) => name === "all" || STUDIES.some((study) => (study.objectives.length > 1) === (name === "front")));
    this.lists = lists.map(([name, text]) => element("button", {type: "button", "data-list": name, click: () => this.choose(name)}, text));
    this.element = element("div", {"data-table": "trials"}, this.chips, element("div", {class: "controls"}, this.lists, field,
      copyButton("copy table", () => this.asText(), "Copies the rows of the table, with tabs between columns"), this.count),
    element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, [...this.heads.values()], element("th", {}, "run it again"))), this.body)), this.more);
    changed.push(() => this.fill());
    this.choose(lists[0][0]);
  }

  choose(list) {
    Object.assign(this, {list, shown: STEP_ROWS});
    for (const button of this.lists) button.setAttribute("aria-pressed", String(button.dataset.list === list));
    this.fill();
  }

  sort(column) {
    this.isFalling = this.by === column ? !this.isFalling : column.less === false;
    this.by = column;
    this.fill();
  }

  /** Returns all rows in the order of the column by which the table is sorted; not known ones last. Kept until another column is chosen. */
  order() {
    if (this.sortedBy !== `${this.by.name} ${this.isFalling}`) {
      const {at} = this.by, sign = this.isFalling ? -1 : 1, known = [], others = [];
      for (let row = 0; row < COUNT; ++row) (at[row] === at[row] ? known : others).push(row);
      this.sorted = known.sort((a, b) => sign * (at[a] - at[b]) || a - b).concat(others);
      this.sortedBy = `${this.by.name} ${this.isFalling}`;
    }
    return this.sorted;
  }

  /** Returns a test of whether a row has the text that is searched for. */
  finder() {
    const {wanted} = this;
    if (!wanted) return () => true;
    const hits = COLUMNS.filter((column) => column.isWord).map((column) => [column.at, Uint8Array.from(column.words, (word) => word.toLowerCase().includes(wanted) ? 1 : 0)]);
    const number = BY_NAME.get("number").at;
    return (row) => hits.some(([at, is]) => is[at[row]]) || String(number[row]) === wanted;
  }

  /** Returns the rows of the table, all of them. */
  rows() {
    const found = this.finder(), {list} = this;
    return this.order().filter((row) => selected[row] && (list === "all" || (list === "top" ? isTop[row] : isFront[row])) && found(row));
  }

  fill() {
    const rows = this.rows();
    for (const [column, head] of this.heads) {
      if (column === this.by) head.setAttribute("aria-sort", this.isFalling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.body.replaceChildren(...rows.slice(0, this.shown).map((row) => this.line(row)));
    this.more.hidden = rows.length <= this.shown;
    this.count.textContent = `${rows.length.toLocaleString("en-US")} rows; ${numSelected.toLocaleString("en-US")} of ${COUNT.toLocaleString("en-US")} trials are selected`;
    this.chips.replaceChildren(...[...filters.values()].map((one) => element("span", {class: "chip"}, filterText(one), element("button", {type: "button", class: "close", title: "Take this filter away", click: () => {
      filter(one.owner, one.column);
      if (![...filters.values()].some((other) => other.owner === one.owner)) clearBrushes();
      select();
    }}, "×"))), ...(filters.size > 1 ? [element("button", {type: "button", click: clearAll}, "Select all trials")] : []));
  }

  line(row) {
    return element("tr", {class: "choose", "data-row": row, click: () => pin(row)}, this.columns.map((column) => {
      const head = this.heads.get(column);
      return element("td", {class: head.className || null}, textOf(column, row));
    }), element("td", {}, copyButton("copy command", () => commandOf(row), commandOf(row))));
  }

  asText() {
    const cell = (column, row) => column.isWord ? column.words[column.at[row]] : column.at[row] === column.at[row] ? String(column.at[row]) : "";
    const heads = this.columns.map((column) => column.unit && !["1", "share"].includes(column.unit) ? `${column.name} [${column.unit}]` : column.name);
    return [[...heads, "command"], ...this.rows().map((row) => [...this.columns.map((column) => cell(column, row)), commandOf(row)])].map((cells) => cells.join("\t")).join("\n");
  }
}
