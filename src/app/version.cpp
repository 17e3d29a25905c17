#include <fmt/format.h>

#include "orrery/app/commands.hpp"
#include "orrery/base/version.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/results/results.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::app {

std::string version_text() {
  return fmt::format("orrery {} (revision {})\nMPI: {}\nHDF5: {}\nprotobuf: {}", version(), revision(),
                     parallel::library_version(), results::hdf5_version(), trace::protobuf_version());
}

}  // namespace orrery::app
