#include "orrery/memory/local_memory.hpp"

#include <limits>

namespace orrery::memory {

LocalMemory::LocalMemory(NpuId npu, const trace::Tensors& tensors, const Lifetimes& lifetimes, Bytes size)
    : npu_(npu),
      tensors_(tensors),
      lifetimes_(lifetimes),
      size_(size > Bytes(0) ? size : Bytes(std::numeric_limits<std::uint64_t>::max())) {}

void LocalMemory::begin_iteration(Time now, bool is_recorded) {
  advance(now);
  if (is_recorded_ && !is_recorded) keep(now, Bytes(0));
  is_recorded_ = is_recorded;
  users_.restart(lifetimes_.users);
  is_here_ = lifetimes_.is_initial;
  usage_ = lifetimes_.initial;
}

void LocalMemory::end(Time now) {
  advance(now);
  usage_ = Bytes(0);
  if (is_recorded_) keep(now, usage_);
  is_recorded_ = false;
}

void LocalMemory::start(NodeId node, Time now) {
  for (const trace::Listing listing : tensors_.of(node)) {
    if (is_here_[listing.tensor]) continue;
    advance(now);
    is_here_[listing.tensor] = true;
    usage_ += Bytes(tensors_.sizes[listing.tensor]);
  }
}

void LocalMemory::complete(NodeId node, Time now) {
  for (const trace::Listing listing : tensors_.of(node)) {
    if (!users_.count_down(lifetimes_.users, listing.tensor) || lifetimes_.is_result[listing.tensor]) continue;
    advance(now);
    is_here_[listing.tensor] = false;
    usage_ = usage_ - Bytes(tensors_.sizes[listing.tensor]);
  }
}

/// Counts the usage since the last change, which lasts until `now`.
void LocalMemory::close_moment(Time now) {
  if (usage_ > peak_) {
    peak_ = usage_;
    peak_time_ = since_;
    if (usage_ > size_ && !excess_)
      excess_ = std::make_unique<Excess>(Excess{since_, npu_, usage_, residents_of(tensors_, is_here_)});
  }
  if (is_recorded_) keep(since_, usage_);
  since_ = now;
}

void LocalMemory::keep(Time since, Bytes usage) {
  if (timeline_.empty() || timeline_.back().usage != usage) timeline_.push_back({npu_, since, usage});
}

void LocalMemory::serialize(Archive& archive) {
  archive(users_, is_here_, usage_, since_, peak_, peak_time_, excess_, is_recorded_, timeline_);
  if (!archive.reads()) return;
  if (excess_) excess_->npu = npu_;  // the state may be that of another NPU that did the same
  for (UsageRecord& record : timeline_) record.npu = npu_;
}

}  // namespace orrery::memory
