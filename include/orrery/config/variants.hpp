#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"

namespace orrery::config {

/// Reads configurations that have a file in common and differ by settings. What they have in common is read once.
class Variants {
 public:
  /// `common`: a file, with the settings of all. Reads nothing yet.
  explicit Variants(Inputs common);
  ~Variants();

  /// Returns the configuration with these settings ("key.path=value") after those of all: the same as `read`, which it
  /// throws as. Files that change between two calls are not read again. Cost O(size of the files) where settings differ
  /// outside workload.parallel from those of the last call, else O(keys of workload.parallel).
  Configuration read(const std::vector<std::string>& settings);

 private:
  struct Known;

  Configuration read_anew(const std::vector<std::string>& settings) const;
  /// Says whether the keys of other mappings than workload.parallel are known with these settings of them; reads them
  /// if need be.
  bool knows(std::vector<std::string> others, Faults& faults);

  Inputs common_;
  std::unique_ptr<Known> known_;  ///< result of the last reading
};

}  // namespace orrery::config
