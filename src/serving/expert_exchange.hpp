#pragma once

#include <algorithm>
#include <cstdint>

#include "orrery/serving/step_options.hpp"
#include "orrery/workload/transformer.hpp"
#include "ring.hpp"

namespace orrery::serving {

/// Returns to how many other data-parallel ranks a row goes, on the mean; with each_expert to how many experts.
inline double copies_of_rows(const workload::Transformer& model, const ExpertOptions& options, double ranks) {
  if (options.exchange == Exchange::each_expert) return model.mlp.top_k;
  // A rank has none of the experts of a token if all lie among those of the others.
  const double experts = model.mlp.experts, own = experts / ranks;
  double none = 1;
  for (std::uint32_t i = 0; i < model.mlp.top_k; ++i) none *= std::max(0.0, (experts - own - i) / (experts - i));
  return (ranks - 1) * (1 - none);
}

/// Returns the time, in us, in which data-parallel ranks exchange the rows of a layer for its experts. `rows`: of each
/// rank. `width`: bytes of an activation.
inline double exchange_of_experts(const workload::Transformer& model, const ExpertOptions& options, const Ring& ring,
                                  double rows, double ranks, double width) {
  const auto hidden = static_cast<double>(model.hidden);
  if (options.exchange == Exchange::gather) return 2 * ring.all_gather(rows * hidden * width);
  const double copies = rows * copies_of_rows(model, options, ranks);
  return ring.send(copies * hidden * options.dispatch_bytes) + ring.send(copies * hidden * options.combine_bytes);
}

}  // namespace orrery::serving
