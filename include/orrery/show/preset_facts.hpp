#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"

namespace orrery::show {

/// A preset system with its keys resolved.
struct SystemFacts {
  std::string name;
  config::Configuration configuration;

  /// Returns "8 x 32 x 4".
  std::string sizes() const;
  /// Returns the processor of its NPUs; empty if the system does not say.
  std::string processor() const;
};

/// A stack with what it is fitted to.
struct StackFacts {
  std::string name;
  std::string processor;
  std::string library;  ///< library of collectives; empty: none
  std::string summary;  ///< first sentence of its comment
};

/// Prices with where they are from.
struct PriceFacts {
  std::string name;
  std::string date, source;
  std::string summary;  ///< first sentence of its comment
};

/// Return the presets by name. Throw Error (bad_input) for a preset that cannot be read. O(presets).
std::vector<SystemFacts> preset_systems();
std::vector<StackFacts> preset_stacks();
std::vector<PriceFacts> preset_prices();

/// Returns the stack that predicts a system best: of those fitted to its processor, one of a training framework for
/// large models. `system`: name of the system. None if there is no such stack of the processor.
std::optional<std::string> usual_stack(const std::string& processor, const std::string& system);

}  // namespace orrery::show
