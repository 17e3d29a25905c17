#pragma once

#include <span>

#include "hdf5_file.hpp"
#include "orrery/network/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::results {

/// The groups /network/links and /network/switches of docs/results.md. `links` ascends in link.
void write_links(File& file, std::span<const network::LinkRecord> links,
                 std::span<const topology::Fabric::Switch> switches);

}  // namespace orrery::results
