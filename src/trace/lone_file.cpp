#include "orrery/trace/lone_file.hpp"

namespace orrery::trace {

LoneFile read_lone_file(const std::filesystem::path& path, ReadOptions options) {
  options.streams = Streams::by_name;
  const auto owners = describe_file(path, options, false).owners;
  options.alone = owners.size() < 2;
  if (!options.alone) {
    options.num_npus = owners.back().value() + 1;
    options.groups_unknown = true;
  }
  LoneFile file{path, Store(options, {}), {}, !owners.empty()};
  if (owners.empty()) file.traces.push_back({file.store.read(path, NpuId(0)), NpuId(0)});
  for (const NpuId npu : owners) file.traces.push_back({file.store.read(path, npu), npu});
  return file;
}

}  // namespace orrery::trace
