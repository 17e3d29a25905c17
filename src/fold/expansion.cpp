// How the records of representatives become those of all NPUs of their classes.
#include <algorithm>
#include <map>
#include <utility>

#include "orrery/fold/folding.hpp"

namespace orrery::fold {

std::vector<npu::NpuRecord> Folding::expand(std::span<const npu::NpuRecord> records) const {
  std::vector<const npu::NpuRecord*> of_class(classes_.count());
  std::uint64_t count = 0;
  for (const auto& record : records) {
    of_class[class_of(record.npu)] = &record;
    count += classes_.sizes[class_of(record.npu)];
  }
  std::vector<npu::NpuRecord> all;
  all.reserve(count);
  for (const npu::NpuSpec& npu : all_npus_) {
    const npu::NpuRecord* const record = of_class[class_of(npu.id)];
    if (record == nullptr) continue;
    all.push_back(*record);
    all.back().npu = npu.id;
  }
  return all;
}

std::vector<communicator::CollectiveRecord> Folding::expand(
    std::span<const communicator::CollectiveRecord> records) const {
  std::uint64_t count = 0;
  for (const auto& record : records) count += groups_of_[record.group.index()].size();
  std::vector<communicator::CollectiveRecord> all;
  all.reserve(count);
  for (const auto& record : records)
    for (const GroupId group : groups_of_[record.group.index()]) {
      all.push_back(record);
      all.back().group = group;
    }
  return all;
}

/// Calls visit(npu, records of its representative) for each NPU in order that has any.
template <class Record, class Visit>
void Folding::for_each_npu(std::span<const Record> records, Visit visit) const {
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> rows;  // of each class
  for (std::size_t i = 0; i < records.size(); ++i)
    rows.try_emplace(class_of(records[i].npu), i, i).first->second.second = i + 1;
  for (const npu::NpuSpec& npu : all_npus_)
    if (const auto found = rows.find(class_of(npu.id)); found != rows.end())
      visit(npu, records.subspan(found->second.first, found->second.second - found->second.first));
}

std::vector<memory::UsageRecord> Folding::expand(std::span<const memory::UsageRecord> records) const {
  std::vector<memory::UsageRecord> all;
  for_each_npu(records, [&](const npu::NpuSpec& npu, std::span<const memory::UsageRecord> of_class) {
    for (const auto& record : of_class) all.emplace_back(record).npu = npu.id;
  });
  return all;
}

std::vector<npu::TimelineRecord> Folding::expand(std::span<const npu::TimelineRecord> records) const {
  std::vector<npu::TimelineRecord> all;
  AwaitedNpus awaited(classes_.of_npu, all_communicators_);
  for_each_npu(records, [&](const npu::NpuSpec& npu, std::span<const npu::TimelineRecord> of_class) {
    const auto& representative = *all_npus_[of_class.front().npu.index()].trace;
    const auto& ids = representative.labels->ids;
    for (const auto& record : of_class) {
      const auto node = std::ranges::lower_bound(ids, record.node - representative.first_id) - ids.begin();
      const NodeId at(static_cast<std::uint32_t>(node));
      auto& own = all.emplace_back(record);
      own.npu = npu.id;
      own.node = npu.trace->id_of(at);
      own.name = npu.trace->labels->names[at.index()];
      if (record.peer != npu::TimelineRecord::no_peer) {
        const trace::Node& message = npu.trace->graph->nodes[at.index()];
        own.peer = npu.trace->peers[message.slot].value();
        own.tag = npu.trace->tags[message.detail];
      }
      if (record.group != npu::TimelineRecord::no_group) own.group = npu.groups[npu.program->use_of_node(at)].value();
      own.last.npu = awaited.of(npu, at, record.last.npu);
    }
  });
  return all;
}

}  // namespace orrery::fold
