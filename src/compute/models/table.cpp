#include <span>
#include <string>
#include <vector>

#include "kernel_table.hpp"
#include "orrery/base/error.hpp"
#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

/// Operations take what kernels of a table took. Nodes of generated workloads carry their estimates; other nodes keep
/// their recorded durations, and those without, such as the optimizer's, are kernels of the operator "elementwise".
class Measured final : public ComputeModel {
 public:
  explicit Measured(const Options& options)
      : table_(KernelTable::parse(options.table.kernels, options.table.file.string(), options.table.precision)),
        rounding_(options.rounding) {}

  Time duration(const ComputeNode& node) const override {
    if (node.recorded > shortest_recorded) return node.recorded;
    return estimate({.name = "elementwise", .flops = node.num_ops, .bytes = node.tensor_size.count()});
  }
  Time estimate(const Operation& operation) const override {
    if (operation.kind == Operation::Kind::elementwise && operation.bytes == 0) return Time::zero();
    return duration_from_ns(table_.seconds(operation) * 1e9, rounding_);
  }
  std::optional<std::string> doubt(const Operation& operation) const override { return table_.doubt(operation); }
  std::vector<std::string> unused(std::span<const Operation> operations) const override {
    return table_.unused(operations);
  }

 private:
  KernelTable table_;
  Rounding rounding_;
};

void require_table(const Options& options) {
  if (options.table.file.empty())
    throw Error(ErrorCode::bad_input, {.key = "system.compute.table"}, "the compute model table needs measured kernels",
                "the name of a CSV or HDF5 file");
}

}  // namespace

extern const ModelType table_model;
constinit const ModelType table_model{
    .name = "table",
    .help = "operations take what measured kernels of a table took",
    .estimates_operations = true,
    .validate = require_table,
    .make = [](const Options& options) -> std::unique_ptr<const ComputeModel> {
      return std::make_unique<Measured>(options);
    },
};

}  // namespace orrery::compute
