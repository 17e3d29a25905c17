#include "keys.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

using workload::Dlrm;
using workload::TableSharding;

constinit const ValueKind<std::optional<TableSharding>> sharding_or_none = kind_of<std::optional<TableSharding>>(
    [](const Limits&) { return word<table_shardings>().info(); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      return as_word(value, key, table_shardings());
    },
    [](const Limits&, const std::optional<TableSharding>& sharding) {
      return sharding ? std::optional(std::string(text_of(table_shardings(), *sharding))) : std::nullopt;
    });

/// Reads numbers of rows, and mappings for tables of which more is said.
constexpr Handling<Dlrm> tables() {
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
          [](const Dlrm& model, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const Dlrm::Table& table : model.tables)
              items.push_back(table == Dlrm::Table{.rows = table.rows} ? fmt::to_string(table.rows)
                                                                       : flow_text(table_keys(), table));
            writer.put_list(path, items);
          },
          [](const Dlrm& a, const Dlrm& b) { return a.tables == b.tables; }};
}

constexpr Row<Dlrm> dlrm_rows[] = {
    {"workload.model.dense-features", "dense features of a sample", "26", Default::built_in(), large_count(1),
     [](auto& model) { return &model.dense_features; }},
    {"workload.model.pooling", "rows of a table that a sample looks up", "20", Default::built_in(), large_count(1),
     [](auto& model) { return &model.pooling; }},
    {"workload.model.poolings", "rows of each table that a sample looks up, in place of `pooling`", "[3, 20]",
     Default::none(), large_counts(), [](auto& model) { return &model.poolings; }},
    {"workload.model.cross-layers",
     "cross layers of low rank (DCN V2) between tables and `top`; 0: products of all pairs", "3", Default::built_in(),
     count(0), [](auto& model) { return &model.cross_layers; }},
    {"workload.model.cross-rank", "rank of the cross layers", "256", Default::built_in(), large_count(1),
     [](auto& model) { return &model.cross_rank; }},
    {"workload.model.bottom", "widths of the MLP over dense features; the last is that of the tables",
     "[512, 256, 128]", Default::needed(), large_counts(), [](auto& model) { return &model.bottom; }},
    {"workload.model.tables", "rows of each embedding table, or its keys, which are those of `workload.model.tables`",
     "[1000000, {rows: 40000, pooling: 20, sharding: row}]", Default::needed(),
     ValueInfo("list of tables", "a list of numbers of rows, or of mappings with them", "-", "1 row or more each"),
     tables()},
    {"workload.model.top", "widths of the MLP over the interaction", "[1024, 1024, 1]", Default::needed(),
     large_counts(), [](auto& model) { return &model.top; }},
};

constexpr Row<Dlrm::Table> table_rows[] = {
    {"workload.model.tables.rows", "rows of the table", "40000000", Default::needed(), large_count(1),
     [](auto& table) { return &table.rows; }},
    {"workload.model.tables.width", "values of a row; 0: the last width of `bottom`. Others need `cross-layers`", "64",
     Default::built_in(), large_count(), [](auto& table) { return &table.width; }},
    {"workload.model.tables.pooling",
     "rows of the table that a sample looks up; 0: as `pooling` and `poolings` of the model say", "20",
     Default::built_in(), large_count(), [](auto& table) { return &table.pooling; }},
    {"workload.model.tables.sharding", "how NPUs share the table", "row",
     Default::described("workload.parallel.table-sharding"), Type(sharding_or_none),
     [](auto& table) { return &table.sharding; }, see("workloads.md, *Tables*")},
};

}  // namespace

const Keys<Dlrm>& dlrm_keys() {
  static const Keys<Dlrm> all("workload.model, kind: dlrm", dlrm_rows, "workload.model");
  return all;
}

const Keys<Dlrm::Table>& table_keys() {
  static const Keys<Dlrm::Table> all("workload.model.tables", table_rows, "workload.model.tables");
  return all;
}

}  // namespace orrery::config
