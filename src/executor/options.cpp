#include "orrery/executor/options.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::executor {

void Options::validate() const {
  if (!replay_only) compute.validate();
  if (compute_streams == 0) throw Error(ErrorCode::bad_input, {.key = "compute-streams"}, "found 0", "1 or more");
  if (iterations == 0) throw Error(ErrorCode::bad_input, {.key = "iterations"}, "found 0", "1 or more");
  if (!(compute_noise >= 0 && compute_noise < 1))
    throw Error(ErrorCode::bad_input, {.key = "noise"}, fmt::format("found {}", compute_noise),
                "0 or more and below 1");
  if (comm_streams == 0) throw Error(ErrorCode::bad_input, {.key = "comm-streams"}, "found 0", "1 or more");
}

}  // namespace orrery::executor
