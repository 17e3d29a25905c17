#pragma once

#include <span>

#include "orrery/base/text_output.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/results/read.hpp"

namespace orrery::show {

/// Writes the timeline of these NPUs in Chrome's Trace Event Format, for Perfetto and about:tracing: for each NPU what
/// its nodes did and where its time went, arrows from sends to receives and through the members of collectives, and for
/// all NPUs together how many were in each state. Throws Error (output). Cost O(rows of these NPUs), which are read
/// twice.
void write_chrome_trace(const results::Timeline& timeline, std::span<const config::NpuRange> npus, TextOutput& output);

}  // namespace orrery::show
