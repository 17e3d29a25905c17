#include "trace_reader.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"

namespace orrery::run {
namespace {

constexpr std::size_t most_unreadable = 1000;
constexpr std::uint64_t least_size_for_share = std::uint64_t{1} << 24;  // of a file: smaller ones take no time

}  // namespace

std::optional<trace::NpuTrace> TraceReader::read(const std::filesystem::path& file, NpuId npu, trace::Store& store,
                                                 Faults& faults) {
  if (num_unreadable_ == most_unreadable) return {};
  end_if_stopped();
  beat();
  progress_.update(num_read_);
  auto trace = store.read(file, npu, faults, [&](std::uint64_t bytes, std::uint64_t size) {
    end_if_stopped();
    beat();
    if (size >= least_size_for_share)
      progress_.update(num_read_, static_cast<double>(bytes) / static_cast<double>(size));
  });
  if (trace)
    ++num_read_;
  else if (++num_unreadable_ == most_unreadable)
    faults.add(
        Error(ErrorCode::bad_input, {}, fmt::format("{} traces cannot be read; no others are tried", most_unreadable)));
  return trace;
}

}  // namespace orrery::run
