#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph_maker.hpp"
#include "groups.hpp"
#include "name_pool.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/trace/store.hpp"
#include "registry.hpp"
#include "shared_parts.hpp"
#include "tensor_lists.hpp"

namespace orrery::trace {

/// What all files that are read have in common.
struct ReadContext {
  explicit ReadContext(ReadOptions read_options, NamedGroups named)
      : options(std::move(read_options)), groups(std::move(named), options) {}

  ReadOptions options;
  Groups groups;
  NamePool names;
  TensorLists tensors;
  std::set<std::string> precisions;  ///< precisions that traces name, other than ReadOptions::precision
  WhileReading while_reading;        ///< guard of the file that is being read
};

/// What a file holds.
struct FileContents {
  struct Trace {
    std::optional<NpuId> npu;  ///< nothing: the trace is that of whichever NPU the file is read for
    SharedParts::Parts parts;
    TraceContents contents;  ///< contents without graph and labels, which are among the parts
  };

  std::string_view format;   ///< name of the reader that recognised the file
  std::uint64_t digest = 0;  ///< digest of its bytes
  std::vector<Trace> traces;
  std::set<NpuId> named;  ///< the NPUs that the file names, with those whose traces were skipped
};

/// Reads a file for an NPU. Of a file that names NPUs, reads the traces of this NPU and of those that
/// `ReadOptions::hosts` names; of a trace that is looked at without its system, the first one. What is wrong with the
/// file are faults; with any, what is returned has no use. Graphs and labels are kept in `parts` as soon as each trace
/// is complete, so that equal ones are in memory once. Cost O(bytes of the file).
FileContents read_file(const std::filesystem::path& path, NpuId npu, ReadContext& context, SharedParts& parts,
                       Faults& faults, std::span<const Reader> formats = readers());

}  // namespace orrery::trace
