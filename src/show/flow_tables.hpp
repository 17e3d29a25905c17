#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orrery/network/flow_records.hpp"

namespace orrery::show {

/// What tables of the messages of a packet network say of labels.
struct FlowLabels {
  std::vector<std::string> names;         ///< index = FlowRecord::label
  std::string without = "without label";  ///< name of messages without a label

  std::string of(std::int32_t label) const;
};

/// Prints for each class how long its messages took, and how many times as long as in an empty network.
void print_flow_classes(std::span<const network::FlowClass> classes, const FlowLabels& labels);
/// Prints the same as CSV: a line for each class.
void print_flow_classes_as_csv(std::span<const network::FlowClass> classes, const FlowLabels& labels);
/// Returns the same for programs: a list of classes.
nlohmann::ordered_json flow_classes_json(std::span<const network::FlowClass> classes, const FlowLabels& labels);

}  // namespace orrery::show
