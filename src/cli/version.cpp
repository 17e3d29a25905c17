#include <fmt/format.h>

#include "command.hpp"
#include "orrery/base/version.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/results/results.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::cli {

void print_version(const VersionCommand&) {
  fmt::print("orrery {}\nMPI: {}\nHDF5: {}\nprotobuf: {}\n", program(), parallel::library_version(),
             results::hdf5_version(), trace::protobuf_version());
}

}  // namespace orrery::cli
