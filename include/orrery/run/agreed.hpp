#pragma once

#include <optional>
#include <utility>

#include "orrery/parallel/communicator.hpp"

namespace orrery::run {

/// Returns what `make` makes on this rank. If it throws on some rank, all ranks throw (Communicator::agree).
/// Collective.
template <class Make>
auto agreed(parallel::Communicator& world, Make make) {
  std::optional<decltype(make())> value;
  world.agree([&] { value.emplace(make()); });
  return std::move(*value);
}

}  // namespace orrery::run
