#pragma once

#include <span>

#include "hdf5_file.hpp"
#include "orrery/executor/record.hpp"
#include "orrery/network/fabric.hpp"

namespace orrery::results {

/// The groups /network/links and /network/switches of docs/results.md. `links` ascends in link.
void write_links(File& file, std::span<const executor::LinkRecord> links,
                 std::span<const network::Fabric::Switch> switches);

}  // namespace orrery::results
