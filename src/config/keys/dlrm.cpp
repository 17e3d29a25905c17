#include "keys.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

using workload::Dlrm;
using workload::TableSharding;

Type<std::optional<TableSharding>> sharding_or_none() {
  const Type<TableSharding> plain = word(table_shardings());
  return {plain.info,
          [plain](const Value& value, const std::string& key, const Reading& reading) {
            return std::optional(plain.read(value, key, reading));
          },
          [plain](const std::optional<TableSharding>& sharding) {
            return sharding ? plain.text(*sharding) : std::nullopt;
          }};
}

/// Reads numbers of rows, and mappings for tables of which more is said.
Handling<Dlrm> tables() {
  return {[](const Value& value, const std::string& path, Dlrm& model, Reading& reading) {
            const auto& items = as_list(value, path, dlrm_keys().find("workload.model.tables")->info().expected({}));
            model.tables.clear();
            for (std::size_t i = 0; i < items.size(); ++i) {
              const std::string at = fmt::format("{}.{}", path, i);
              if (items[i].kind == Value::Kind::scalar) {
                reading.faults.attempt(
                    [&] { model.tables.push_back({.rows = large_count(1).read(items[i], at, reading)}); });
                continue;
              }
              Sections sections(Section(&items[i], at, items[i], reading.faults));
              read_keys(table_keys(), sections, model.tables.emplace_back(), reading);
              sections.refuse_unknown();
            }
          },
          [](const Dlrm& model, Writer& writer) {
            std::vector<std::string> items;
            for (const Dlrm::Table& table : model.tables)
              items.push_back(table == Dlrm::Table{.rows = table.rows} ? fmt::to_string(table.rows)
                                                                       : flow_text(table_keys(), table));
            writer.put_list("workload.model.tables", items);
          },
          [](const Dlrm& a, const Dlrm& b) { return a.tables == b.tables; }};
}

}  // namespace

const Keys<Dlrm>& dlrm_keys() {
  static const Keys<Dlrm> all = [] {
    Keys<Dlrm> keys("workload.model, kind: dlrm", "workload.model");
    keys.add(
        {.path = "workload.model.dense-features",
         .help = "dense features of a sample",
         .example = "26",
         .otherwise = Default::built_in()},
        large_count(1), [](auto& model) -> auto& { return model.dense_features; });
    keys.add(
        {.path = "workload.model.pooling",
         .help = "rows of a table that a sample looks up",
         .example = "20",
         .otherwise = Default::built_in()},
        large_count(1), [](auto& model) -> auto& { return model.pooling; });
    keys.add(
        {.path = "workload.model.poolings",
         .help = "rows of each table that a sample looks up, in place of `pooling`",
         .example = "[3, 20]",
         .otherwise = Default::none()},
        large_counts(), [](auto& model) -> auto& { return model.poolings; });
    keys.add(
        {.path = "workload.model.cross-layers",
         .help = "cross layers of low rank (DCN V2) between tables and `top`; 0: products of all pairs",
         .example = "3",
         .otherwise = Default::built_in()},
        count(0), [](auto& model) -> auto& { return model.cross_layers; });
    keys.add(
        {.path = "workload.model.cross-rank",
         .help = "rank of the cross layers",
         .example = "256",
         .otherwise = Default::built_in()},
        large_count(1), [](auto& model) -> auto& { return model.cross_rank; });
    keys.add(
        {.path = "workload.model.bottom",
         .help = "widths of the MLP over dense features; the last is that of the tables",
         .example = "[512, 256, 128]",
         .otherwise = Default::needed()},
        large_counts(), [](auto& model) -> auto& { return model.bottom; });
    keys.add({.path = "workload.model.tables",
              .help = "rows of each embedding table, or its keys, which are those of `workload.model.tables`",
              .example = "[1000000, {rows: 40000, pooling: 20, sharding: row}]",
              .otherwise = Default::needed()},
             {"list of tables", "a list of numbers of rows, or of mappings with them", "-", "1 row or more each"},
             tables());
    keys.add(
        {.path = "workload.model.top",
         .help = "widths of the MLP over the interaction",
         .example = "[1024, 1024, 1]",
         .otherwise = Default::needed()},
        large_counts(), [](auto& model) -> auto& { return model.top; });
    return keys;
  }();
  return all;
}

const Keys<Dlrm::Table>& table_keys() {
  static const Keys<Dlrm::Table> all = [] {
    Keys<Dlrm::Table> keys("workload.model.tables", "workload.model.tables");
    keys.add(
        {.path = "workload.model.tables.rows",
         .help = "rows of the table",
         .example = "40000000",
         .otherwise = Default::needed()},
        large_count(1), [](auto& table) -> auto& { return table.rows; });
    keys.add(
        {.path = "workload.model.tables.width",
         .help = "values of a row; 0: the last width of `bottom`. Others need `cross-layers`",
         .example = "64",
         .otherwise = Default::built_in()},
        large_count(), [](auto& table) -> auto& { return table.width; });
    keys.add(
        {.path = "workload.model.tables.pooling",
         .help = "rows of the table that a sample looks up; 0: as `pooling` and `poolings` of the model say",
         .example = "20",
         .otherwise = Default::built_in()},
        large_count(), [](auto& table) -> auto& { return table.pooling; });
    keys.add(
        {.path = "workload.model.tables.sharding",
         .help = "how NPUs share the table",
         .example = "row",
         .otherwise = Default::described("workload.parallel.table-sharding"),
         .see = "workloads.md, *Tables*"},
        sharding_or_none(), [](auto& table) -> auto& { return table.sharding; });
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
