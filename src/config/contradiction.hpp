#pragma once

#include <string>

namespace orrery::config {

/// A setting that another one excludes, or leaves without effect.
struct Contradiction {
  std::string key;  ///< to which the fault belongs
  std::string found, expected;
};

}  // namespace orrery::config
