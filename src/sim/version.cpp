#include <fmt/format.h>

#include "orrery/base/version.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/results/results.hpp"
#include "orrery/sim/commands.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::sim {

std::string version_text() {
  return fmt::format("orrery {} (revision {})\nMPI: {}\nHDF5: {}\nprotobuf: {}", version(), revision(),
                     parallel::library_version(), results::hdf5_version(), trace::protobuf_version());
}

}  // namespace orrery::sim
