#include "same_inputs.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/version.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::run {
namespace {

constexpr std::string_view what_to_do =
    "Do not change files while ranks start, give all machines the same files and the same program, and run again.";

/// Returns a text without the names of the current folder, which may be another on each machine.
std::string without_current_folder(std::string text) {
  std::error_code failure;
  const std::string folder = std::filesystem::current_path(failure).string() + "/";
  for (auto at = text.find(folder); !failure && at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

/// The name of an input and the digest of what it holds.
using NamedDigest = std::pair<std::string, std::uint64_t>;

/// Returns what all ranks must have in common, the files before what follows from them.
std::vector<NamedDigest> inputs_to_compare(const config::Configuration& configuration) {
  std::vector<NamedDigest> inputs = {{"the program", digest_of(program())}};
  const auto add = [&](const config::InputText& input) { inputs.emplace_back(input.first, digest_of(input.second)); };
  for (const auto& input : configuration.inputs) add(input);
  if (configuration.workload.groups_text) add(*configuration.workload.groups_text);
  if (configuration.partition_text) add(*configuration.partition_text);
  inputs.emplace_back("the resolved configuration", digest_of(without_current_folder(configuration.to_yaml(false))));
  inputs.emplace_back("the set of options below `run`", digest_of(without_current_folder(configuration.to_yaml())));
  return inputs;
}

}  // namespace

void require_same_configuration(const config::Configuration& configuration, parallel::Communicator& world) {
  if (world.size() == 1) return;
  const std::vector<NamedDigest> mine = inputs_to_compare(configuration);
  parallel::Packer packer;
  packer.put_text(host_name());
  for (const auto& [name, value] : mine) {
    packer.put_text(name);
    packer.put(value);
  }
  auto of_root = packer.take();
  world.broadcast_bytes(of_root, Rank(0));
  world.agree([&] {
    parallel::Unpacker unpacker(of_root);
    const std::string host = unpacker.get_text();
    for (const auto& [name, value] : mine) {
      const std::string other = unpacker.empty() ? "nothing" : unpacker.get_text();
      if (other == name && unpacker.get<std::uint64_t>() == value) continue;
      throw Error(ErrorCode::bad_input, {},
                  fmt::format("rank {} on {} has read another configuration than rank 0 on {}: {} is not the same",
                              world.rank().value(), host_name(), host,
                              other == name ? name : fmt::format("{} or {}", name, other)),
                  "the same inputs on all ranks", what_to_do);
    }
  });
}

void require_same_traces(const trace::Store& store, parallel::Communicator& world) {
  // Each name has a rank that compares what all others have read under it.
  std::vector<parallel::Packer> packers(static_cast<std::size_t>(world.size()));
  for (const auto& [file, value] : store.files_read()) {
    const std::string name = without_current_folder(file);
    auto& packer = packers[digest_of(name) % packers.size()];
    packer.put_text(name);
    packer.put(value);
  }
  std::vector<std::vector<std::byte>> outgoing;
  for (auto& packer : packers) outgoing.push_back(packer.take());
  const auto incoming = world.exchange_bytes(outgoing);
  world.agree([&] {
    std::map<std::string, std::pair<std::uint64_t, std::size_t>, std::less<>> known;  // digest and rank
    for (std::size_t rank = 0; rank < incoming.size(); ++rank)
      for (parallel::Unpacker unpacker(incoming[rank]); !unpacker.empty();) {
        std::string name = unpacker.get_text();
        const auto value = unpacker.get<std::uint64_t>();
        const auto [entry, is_new] = known.try_emplace(std::move(name), value, rank);
        if (is_new || entry->second.first == value) continue;
        throw Error(ErrorCode::bad_input, {.file = entry->first},
                    fmt::format("rank {} has read it with other contents than rank {}", rank, entry->second.second),
                    "one state of the file", what_to_do);
      }
  });
}

}  // namespace orrery::run
