"use strict";
// Single nodes of the timeline: their details, and the table of operators.

/** Returns what groups of one kind have in common, as the facts name it: "tp_dp*_pp*" of "tp_dp0_pp1". */
function familyOf(name) {
  const at = name.indexOf("@");
  return at < 0 ? name.replace(/\d+/g, "*") : name.slice(0, at).replace(/\d+/g, "*") + name.slice(at);
}

/** A panel with what is known of a node, and ways to its neighbours on the NPU. */
function nodePanel(view, i) {
  const lane = view.lanes.get(numbers(view.nodes.npu)[i])[view.nodes.kind.words[numbers(view.nodes.kind.codes)[i]]], at = lane.indexOf(i);
  const button = (text, title, where) => element("button", {type: "button", title, disabled: where === undefined ? "" : null, click: () => view.goTo(where)}, text);
  return element("div", {class: "details"}, element("div", {class: "bar"}, element("b", {}, "Node"),
    element("span", {class: "controls"}, button("‹", "The node before on this NPU", lane[at - 1]), button("›", "The next node on this NPU", lane[at + 1]),
      element("button", {type: "button", title: "Close", "aria-label": "Close", click: () => view.choose(null)}, "×"))),
  element("dl", {}, view.factsOfNode(i).map(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])));
}

/** The nodes that are shown, as rows of a table. */
function nodeRows(view) {
  const rows = [["npu", "place", "kind", "name", "group", "bytes", "start_ps", "finish_ps"]], nodes = view.nodes;
  const kinds = numbers(nodes.kind.codes), names = numbers(nodes.name.codes), groups = numbers(nodes.group_name.codes), npus = numbers(nodes.npu);
  const shown = new Set(view.shown);
  for (let i = 0; i < nodes.count; ++i) {
    if (!shown.has(npus[i]) || view.finish[i] <= view.begin || view.start[i] >= view.end || view.hidden.has(nodes.kind.words[kinds[i]])) continue;
    rows.push([npus[i], view.placeOf.get(npus[i]), nodes.kind.words[kinds[i]], nodes.name.words[names[i]], groups[i] < 0 ? "" : nodes.group_name.words[groups[i]],
      nodes.bytes ? numbers(nodes.bytes)[i] : "", view.start[i], view.finish[i]]);
  }
  return rows;
}

/** What the operators of a step cost; nothing of a run without a timeline. */
function operatorsSection(run) {
  const found = run.operators;
  if (!found || !found.rows.length) return null;
  const {metrics} = run.facts, compute = metrics.compute_share, told = [];
  told.push(`Nodes of one name, whatever their layer and micro-batch: of one NPU, the mean over ${found.npus.toLocaleString("en-US")}. Exposed is the time in which the NPU computed nothing.`);
  told.push("The efficiency of a collective is the share of the capacity that its bytes reach where the library knows it.");
  if (metrics.hardware_flops_utilisation && compute) told.push(`While they compute, the NPUs reach ${readable(metrics.hardware_flops_utilisation / compute, "share")} of their peak.`);
  const share = (key) => (row) => row[key] === null ? "–" : readable(row[key], "share");
  return element("section", {id: "operators"}, element("h2", {}, "Operators"), element("p", {class: "soft"}, told.join(" ")),
    sortableTable({name: "operators", rows: found.rows, total: found.total, search: "filter operators", order: "time", save: true, columns: [
      {name: "operator", key: "operator", code: true, click: run.view ? (row) => {
        run.view.searchField.value = row.operator.split(".").pop();
        run.view.search(run.view.searchField.value);
        goTo("timeline");
      } : null}, {name: "kind", key: "kind", wide: true},
      {name: "time", key: "time", number: true, text: (row) => readable(row.time, "ps"), unit: "ps"}, {name: "share", key: "share", number: true, text: share("share")},
      {name: "count", key: "count", number: true, text: (row) => digits(row.count), wide: true}, {name: "efficiency", key: "efficiency", number: true, text: share("efficiency"), wide: true},
      {name: "exposed", key: "exposed", number: true, text: (row) => row.exposed === null ? "–" : readable(row.exposed, "ps"), unit: "ps"}]}));
}
