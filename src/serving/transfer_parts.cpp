#include "transfer_parts.hpp"

#include <algorithm>

namespace orrery::serving {

/// Returns the bytes of the parts from `first` up to `end` of `count` equal ones.
Bytes range_of(Bytes all, std::size_t first, std::size_t end, std::size_t count) {
  const auto until = [&](std::size_t k) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(all.count()) * k / count);
  };
  return Bytes(until(end) - until(first));
}

TransferParts::TransferParts(const Scenario& scenario) : scenario_(scenario) {
  for (std::uint32_t i = 0; i < scenario.instances.size(); ++i) {
    first_.push_back(static_cast<std::uint32_t>(instance_of_.size()));
    instance_of_.insert(instance_of_.end(), scenario.instances[i].members, i);
  }
}

std::span<const NpuId> TransferParts::npus_of(std::uint32_t number) const {
  const std::uint32_t instance = instance_of_[number];
  return scenario_.instances[instance].npus_of(number - first_[instance]);
}

/// Returns the messages of a transfer, or of one layer of it: each NPU of the home sends to each NPU of the other side
/// what both of them hold.
std::vector<TransferPart> TransferParts::of(std::uint32_t home, std::uint32_t to, Bytes all,
                                            std::optional<std::uint32_t> layer) const {
  const auto from_npus = npus_of(home), to_npus = npus_of(to);
  const Pipeline &of_home = scenario_.instances[instance_of_[home]].pipeline,
                 &of_other = scenario_.instances[instance_of_[to]].pipeline;
  const std::uint32_t layers = scenario_.layers > 0 ? scenario_.layers : of_home.stages * of_other.stages;
  const std::size_t senders = from_npus.size() / of_home.stages, receivers = to_npus.size() / of_other.stages;
  const std::size_t count = senders * receivers;
  std::vector<TransferPart> parts;
  for (std::uint32_t s = 0; s < of_home.stages; ++s)
    for (std::uint32_t r = 0; r < of_other.stages; ++r) {
      const std::uint32_t first = std::max(
          {first_layer_of(layers, of_home.stages, s), first_layer_of(layers, of_other.stages, r), layer.value_or(0)});
      const std::uint32_t end = std::min({first_layer_of(layers, of_home.stages, s + 1),
                                          first_layer_of(layers, of_other.stages, r + 1), layer ? *layer + 1 : layers});
      if (first >= end) continue;
      const Bytes shared = layer ? all : range_of(all, first, end, layers);
      for (std::size_t i = 0; i < count; ++i) {
        // Each sender begins with another receiver, so that their first messages do not meet.
        const std::size_t sender = i / receivers, receiver = (i + sender) % receivers;
        parts.push_back(
            {from_npus[s * senders + sender], to_npus[r * receivers + receiver], range_of(shared, i, i + 1, count)});
      }
    }
  return parts;
}

std::uint32_t TransferParts::count(std::uint32_t home, std::uint32_t to) const {
  std::size_t count = 0;
  if (!scenario_.options.transfer.by_layer) return static_cast<std::uint32_t>(of(home, to, {}, {}).size());
  for (std::uint32_t l = 0; l < scenario_.layers; ++l) count += of(home, to, {}, l).size();
  return static_cast<std::uint32_t>(count);
}

/// Returns how long the longest message of a transfer takes.
Time longest_delay(const network::DelayModel& delays, const std::vector<TransferPart>& parts) {
  Time longest;
  for (const TransferPart& part : parts) longest = std::max(longest, delays.delay(part.from, part.to, part.size));
  return longest;
}

}  // namespace orrery::serving
