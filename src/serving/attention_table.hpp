#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "interpolation.hpp"
#include "orrery/serving/step_model.hpp"
#include "orrery/serving/step_shape.hpp"

namespace orrery::serving {

/// Measured attention of one layer in us, by the tokens of a chunk, the context of the chunk, the number of requests
/// that generate, and their context.
class AttentionTable {
 public:
  explicit AttentionTable(const std::filesystem::path& folder);

  /// Returns the time of the attention of a step. `skew`: see StepOptions.
  double duration(const StepShape& shape, double skew) const;
  /// Adds what is to be said of sizes beyond the table.
  void add_beyond(std::vector<BeyondTable>& found) const;

 private:
  /// For one size of chunk and one number of requests: a line over the context of the requests, by context of the
  /// chunk.
  struct Plane {
    std::vector<double> contexts;
    std::vector<MeasuredLine> lines;

    double at(double chunk_context, double context) const;
  };
  /// For one size of chunk: planes by the number of requests that generate.
  struct Chunk {
    std::vector<double> decodes;
    std::vector<Plane> planes;
    mutable double most_decodes = 0;  ///< requests beyond the last plane

    double at(double chunk_context, double decodes_now, double context) const;
  };

  double at(double chunk, double chunk_context, double decodes, double context) const;

  std::vector<double> sizes_;           // of chunks; 0 may be the first
  std::vector<double> positive_sizes_;  // without 0
  std::vector<Chunk> chunks_;           // [sizes_]
  double least_ = 0;
  mutable double most_tokens_ = 0;  // of chunks beyond the last size
};

}  // namespace orrery::serving
