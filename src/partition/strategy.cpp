#include "orrery/partition/strategy.hpp"

#include <fmt/format.h>

namespace orrery::partition {
namespace {

/// Whether the text is this strategy with a parameter after a colon, or its plain name if it takes none.
bool names(const Strategy& strategy, std::string_view text) {
  if (strategy.parameter.empty()) return text == strategy.name;
  return text.starts_with(strategy.name) && text.substr(strategy.name.size()).starts_with(':');
}

}  // namespace

std::span<const Strategy> named_strategies() { return strategies().first(strategies().size() - 1); }

std::string usage(const Strategy& strategy) {
  return strategy.parameter.empty() ? std::string(strategy.name)
                                    : fmt::format("{}:{}", strategy.name, strategy.parameter);
}

PartitionOptions::PartitionOptions(std::string_view text, const Place& place) {
  for (const Strategy& strategy : named_strategies()) {
    if (!names(strategy, text)) continue;
    strategy_ = &strategy;
    if (strategy.parameter.empty()) return;
    parameter_ = text.substr(strategy.name.size() + 1);
    strategy.check_syntax(parameter_, place);
    return;
  }
  *this = rank_map(std::string(text));
}

PartitionOptions PartitionOptions::rank_map(std::string file) {
  PartitionOptions options;
  options.strategy_ = &strategies().back();
  options.parameter_ = std::move(file);
  return options;
}

bool PartitionOptions::is_default() const { return strategy_ == &strategies().front(); }

bool PartitionOptions::is_rank_map() const { return strategy_ == &strategies().back(); }

std::string PartitionOptions::text() const {
  if (is_rank_map()) return parameter_;
  return strategy_->parameter.empty() ? std::string(strategy_->name)
                                      : fmt::format("{}:{}", strategy_->name, parameter_);
}

void PartitionOptions::validate(const topology::Topology& topology, const Place& named_by) const {
  if (strategy_->check_range != nullptr) strategy_->check_range(parameter_, topology, named_by);
}

}  // namespace orrery::partition
