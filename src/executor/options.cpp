#include "orrery/executor/options.hpp"

#include "orrery/base/error.hpp"

namespace orrery::executor {

void Options::validate() const {
  if (!replay_only) compute.validate();
  if (compute_streams == 0) throw Error(ErrorCode::bad_input, {.key = "compute-streams"}, "found 0", "1 or more");
  if (comm_streams == 0) throw Error(ErrorCode::bad_input, {.key = "comm-streams"}, "found 0", "1 or more");
}

}  // namespace orrery::executor
