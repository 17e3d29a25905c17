#include "gpu_system.hpp"

#include <algorithm>

namespace orrery::npu {

bool GpuSystem::are_at_a_switch(NpuId a, NpuId b) const {
  const topology::Fabric::Link first = fabric_.find(fabric_.first(a, b));
  const auto next = fabric_.next(first, b);
  return next && fabric_.find(*next).dimension == first.dimension && !fabric_.next(fabric_.find(*next), b) &&
         fabric_.topology().dimension(first.dimension).shape->has_switch_operations;
}

const GpuSystem::Left& GpuSystem::left(std::uint32_t held) {
  const auto [known, is_new] = left_.try_emplace(held);
  Left& left = known->second;
  if (!is_new) return left;
  const gpu::Parameters& gpu = options.parameters;
  left.options = compute_;
  left.options.peak_flops *= static_cast<double>(gpu.sms - held) / gpu.sms;
  const double bandwidth = compute_.local_memory.bytes_per_ns() - held * gpu.sm_rate.bytes_per_ns();
  left.options.local_memory = Bandwidth::from_bytes_per_ns(std::max(bandwidth, 0.0));
  if (bandwidth > 0) left.model = compute::make_model(left.options);
  return left;
}

SharedSms::Stretch GpuSystem::stretch(const trace::Node& node, std::uint32_t held) {
  const std::uint32_t sms = options.parameters.sms;
  if (held == 0) return {};
  if (held >= sms) return {0, 1};
  if (!compute_.model->uses_operations) return {sms, sms - held};
  const compute::ComputeNode work{node.detail, Bytes(node.size), compute::shortest_recorded};
  const auto ticks = [&](const Left& of) { return static_cast<std::uint64_t>(of.model->duration(work).ps()); };
  const std::uint64_t whole = ticks(left(0));
  if (whole == 0) return {sms, sms - held};
  const Left& rest = left(held);
  if (!rest.model) return work.tensor_size > Bytes(0) ? SharedSms::Stretch{0, 1} : SharedSms::Stretch{sms, sms - held};
  return {std::max(ticks(rest), whole), whole};
}

}  // namespace orrery::npu
