#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph_maker.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/base/ids.hpp"
#include "read_file.hpp"
#include "registry.hpp"
#include "shared_parts.hpp"

namespace orrery::trace {

/// A file of the store, for messages.
struct KnownFile {
  std::string name;
  std::string_view format;   ///< empty for a trace that was made
  std::uint64_t digest = 0;  ///< digest of its bytes
};

/// A trace that was read. Its graph and labels are kept apart from its contents.
struct LoadedTrace {
  SharedParts::Parts parts;
  TraceContents contents;
  std::uint32_t file = 0;  ///< index into the known files
};

/// Reads files and remembers the last 16, so that a file that several NPUs share is read once.
class FileCache {
 public:
  /// Adds what it reads to `context`, `parts` and `files`.
  FileCache(ReadContext& context, SharedParts& parts, std::vector<KnownFile>& files,
            std::span<const Reader> formats = readers())
      : context_(context), parts_(parts), files_(files), formats_(formats) {}

  /// Returns the trace that the NPU executes: the only one of the file, or that with the NPU's number. Returns null and
  /// adds faults if the file is faulty or holds traces of other NPUs only. Valid until the next call. Cost O(bytes), or
  /// O(log traces) for a file that is remembered.
  const LoadedTrace* load(const std::filesystem::path& path, NpuId npu, Faults& faults);
  /// Forgets a file, so that the next call reads it again.
  void forget(const std::filesystem::path& path);
  /// Forgets all files.
  void clear() { remembered_.clear(); }

 private:
  struct File {
    std::filesystem::path path;
    std::map<std::optional<NpuId>, LoadedTrace> traces;  ///< without an NPU: for whichever NPU asks
    std::set<NpuId> named;                               ///< the NPUs that the file names
    Faults faults;                                       ///< with any, there is nothing else
  };

  const File& find(const std::filesystem::path& path, NpuId npu);

  ReadContext& context_;
  SharedParts& parts_;
  std::vector<KnownFile>& files_;
  std::span<const Reader> formats_;
  std::deque<File> remembered_;  ///< the latest last
};

}  // namespace orrery::trace
