#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace orrery::config {

/// `orrery show models`, `systems`, `stacks` and `prices`: which presets there are.
struct ShowPresetsCommand {
  enum class Kind : std::uint8_t { models, systems, stacks, prices };

  Kind kind = Kind::models;
  bool json = false;
};

/// `orrery init --model MODEL --system SYSTEM --npus N`: write a CONFIG.yaml to start from.
struct InitCommand {
  std::string model;                   ///< a preset or a file
  std::string system;                  ///< a preset or a file
  std::string stack;                   ///< a preset; empty: the usual one of the system's processor
  std::uint32_t npus = 1;              ///< number of NPUs
  std::optional<std::uint32_t> batch;  ///< sequences of a step; none: as many as there are NPUs
  std::filesystem::path output;        ///< CONFIG.yaml
  bool force = false;                  ///< replace an existing file
};

}  // namespace orrery::config
