#include "file_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t most_files_remembered = 16;

}  // namespace

const FileCache::File& FileCache::find(const std::filesystem::path& path, NpuId npu) {
  const auto known = std::ranges::find(remembered_, path, &File::path);
  if (known != remembered_.end()) return *known;
  if (remembered_.size() == most_files_remembered) remembered_.pop_front();
  File& file = remembered_.emplace_back();
  file.path = path;
  FileContents contents = read_file(path, npu, context_, parts_, file.faults, formats_);
  if (!file.faults.empty()) {
    contents = {};
    parts_.free_unused();
    return file;
  }
  file.named = std::move(contents.named);
  const auto number = static_cast<std::uint32_t>(files_.size());
  for (auto& [owner, parts, trace] : contents.traces)
    file.traces.try_emplace(owner, std::move(parts), std::move(trace), number);
  files_.push_back({path.string(), contents.format, contents.digest});
  return file;
}

const LoadedTrace* FileCache::load(const std::filesystem::path& path, NpuId npu, Faults& faults) {
  const File& file = find(path, npu);
  file.faults.for_each([&](const Error& fault) { faults.add(fault); });
  if (!file.faults.empty()) return nullptr;
  const auto of_any = context_.options.alone ? file.traces.begin() : file.traces.find(std::nullopt);
  if (of_any != file.traces.end()) return &of_any->second;
  const auto own = file.traces.find(npu);
  if (own != file.traces.end()) return &own->second;
  ensure(!file.named.contains(npu), "a trace is read for an NPU that ReadOptions::hosts leaves out");
  const std::vector<NpuId> named(file.named.begin(), file.named.end());
  const std::string others =
      named.empty() ? "" : fmt::format(", but of NPU{} {}", named.size() > 1 ? "s" : "", list(named));
  faults.add(Error(ErrorCode::bad_input, {.file = path.string(), .npu = npu.value()},
                   fmt::format("the file holds no trace of this NPU{}", others), "the trace of this NPU"));
  return nullptr;
}

void FileCache::forget(const std::filesystem::path& path) {
  std::erase_if(remembered_, [&](const File& file) { return file.path == path; });
}

}  // namespace orrery::trace
