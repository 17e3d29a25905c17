#include "allocation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/mix.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

constexpr std::uint32_t no_job = ~0U;

/// Who has which NPU.
class FreeNpus {
 public:
  explicit FreeNpus(std::uint32_t num_npus) : owner_(num_npus, no_job) {}

  /// Takes the NPUs of a list. Throws Error (bad_input) if somebody has one of them.
  void take_listed(const AllocationRequest& request, std::uint32_t number, std::span<const AllocationRequest> jobs) {
    for (const NpuRange& range : request.how.listed)
      for (std::uint32_t npu = range.first; npu <= range.last; ++npu) {
        if (owner_[npu] == number)
          throw Error(ErrorCode::bad_input, request.place, fmt::format("NPU {} is listed twice", npu),
                      "each NPU of a job once");
        if (owner_[npu] != no_job)
          throw Error(ErrorCode::bad_input, request.place,
                      fmt::format("NPU {} is that of job '{}' already", npu, cited(jobs[owner_[npu]].job)),
                      "jobs that have no NPU in common");
        owner_[npu] = number;
      }
  }

  /// Takes free NPUs. Throws Error (bad_input) if there are not enough.
  std::vector<NpuRange> take_free(const AllocationRequest& request, std::uint32_t number) {
    std::vector<std::uint32_t> free;
    for (std::uint32_t npu = 0; npu < owner_.size(); ++npu)
      if (owner_[npu] == no_job) free.push_back(npu);
    if (free.size() < request.count)
      throw Error(ErrorCode::bad_input, request.place,
                  fmt::format("the job needs {}, but only {} free", counted(request.count, "NPU"),
                              free.size() == 1 ? "1 is" : fmt::format("{} are", free.size())),
                  "jobs that fit into the system together");
    std::vector<std::uint32_t> taken;
    if (request.how.kind == Allocation::Kind::contiguous)
      taken = first_run(free, request);
    else if (request.how.kind == Allocation::Kind::scattered)
      for (std::uint64_t i = 0; i < request.count; ++i) taken.push_back(free[i * free.size() / request.count]);
    else
      taken = draw(free, request);
    for (const std::uint32_t npu : taken) owner_[npu] = number;
    return ranges_of(taken);
  }

 private:
  /// Returns the first free NPUs that follow one another.
  static std::vector<std::uint32_t> first_run(const std::vector<std::uint32_t>& free,
                                              const AllocationRequest& request) {
    std::size_t first = 0, longest = 0;
    for (std::size_t i = 0; i < free.size(); ++i) {
      if (i > 0 && free[i] != free[i - 1] + 1) first = i;
      longest = std::max(longest, i - first + 1);
      if (i - first + 1 == request.count)
        return {free.begin() + static_cast<std::ptrdiff_t>(first), free.begin() + static_cast<std::ptrdiff_t>(i + 1)};
    }
    throw Error(ErrorCode::bad_input, request.place,
                fmt::format("the job needs {} that follow one another, but of the {} that are free at most {} do",
                            counted(request.count, "NPU"), free.size(), longest),
                "room for the job in one piece", "allocation: scattered takes free NPUs wherever they are.");
  }

  /// Draws without repetition, and returns what was drawn in ascending order.
  static std::vector<std::uint32_t> draw(std::vector<std::uint32_t> free, const AllocationRequest& request) {
    for (std::uint32_t i = 0; i < request.count; ++i)
      std::swap(free[i], free[i + mix(request.how.seed, i) % (free.size() - i)]);
    free.resize(request.count);
    std::ranges::sort(free);
    return free;
  }

  static std::vector<NpuRange> ranges_of(const std::vector<std::uint32_t>& npus) {
    std::vector<NpuRange> ranges;
    for (const std::uint32_t npu : npus)
      if (!ranges.empty() && ranges.back().last + 1 == npu)
        ranges.back().last = npu;
      else
        ranges.push_back({npu, npu});
    return ranges;
  }

  std::vector<std::uint32_t> owner_;  // [num_npus] number of the job, or no_job
};

}  // namespace

std::uint64_t Allocation::num_listed() const {
  std::uint64_t count = 0;
  for (const NpuRange& range : listed) count += range.last - range.first + 1;
  return count;
}

std::vector<std::vector<NpuRange>> allocate(std::span<const AllocationRequest> jobs, std::uint32_t num_npus,
                                            Faults& faults) {
  FreeNpus free(num_npus);
  std::vector<std::vector<NpuRange>> result(jobs.size());
  const auto for_each = [&](bool are_listed, auto take) {
    bool is_good = true;
    for (std::uint32_t i = 0; i < jobs.size(); ++i)
      if ((jobs[i].how.kind == Allocation::Kind::listed) == are_listed) is_good &= faults.attempt([&] { take(i); });
    return is_good;
  };
  const bool has_lists = for_each(true, [&](std::uint32_t i) {
    free.take_listed(jobs[i], i, jobs);
    result[i] = jobs[i].how.listed;
  });
  if (has_lists && for_each(false, [&](std::uint32_t i) { result[i] = free.take_free(jobs[i], i); })) return result;
  return {};
}

std::vector<NpuRange> parse_allocation(const std::string& text, const std::string& file, std::uint32_t num_npus) {
  std::vector<NpuRange> ranges;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at), " \t\r");
    at = end + 1;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    ranges.push_back(parse_npu_range(line, num_npus, {.file = file, .line = number}));
  }
  if (ranges.empty()) throw Error(ErrorCode::bad_input, {.file = file}, "the file names no NPU", "an NPU in each line");
  return ranges;
}

}  // namespace orrery::config
