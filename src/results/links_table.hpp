#pragma once

#include <span>

#include "hdf5_file.hpp"
#include "orrery/executor/record.hpp"

namespace orrery::results {

/// The group /network/links of docs/results.md. `links` ascends in link.
void write_links(File& file, std::span<const executor::LinkRecord> links);

}  // namespace orrery::results
