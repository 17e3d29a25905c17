// How the records of representatives become those of all NPUs of their classes.
#include <algorithm>
#include <map>
#include <utility>

#include "orrery/fold/folding.hpp"

namespace orrery::fold {

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

/// Sends the records of each representative to the ranks that have NPUs of its class. Returns those that this rank
/// needs, by representative and otherwise in order. Collective.
template <class Record>
std::vector<Record> Folding::exchanged(std::span<const Record> records, parallel::Communicator& world) const {
  if (world.size() == 1) return {records.begin(), records.end()};
  std::vector<std::vector<Record>> outgoing(static_cast<std::size_t>(world.size()));
  std::vector<std::vector<char>> needs(outgoing.size(), std::vector<char>(classes_.count()));  // classes of each rank
  for (std::uint32_t npu = 0; npu < num_npus(); ++npu)
    needs[own_npus_.owners.of_npu[npu].index()][classes_.of_npu[npu]] = 1;
  for (const Record& record : records)
    for (std::size_t rank = 0; rank < outgoing.size(); ++rank)
      if (needs[rank][class_of(record.npu)] != 0) outgoing[rank].push_back(record);
  std::vector<Record> all;
  for (const auto& of_rank : world.exchange(outgoing)) all.insert(all.end(), of_rank.begin(), of_rank.end());
  std::ranges::stable_sort(all, {}, &Record::npu);
  return all;
}

/// Calls visit(npu, records of its representative) for each NPU of this rank in order that has any.
template <class Record, class Visit>
void Folding::for_each_npu(std::span<const Record> records, Visit visit) const {
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> rows;  // of each class
  for (std::size_t i = 0; i < records.size(); ++i)
    rows.try_emplace(class_of(records[i].npu), i, i).first->second.second = i + 1;
  for (const npu::NpuSpec& npu : own_npus_.all)
    if (const auto found = rows.find(class_of(npu.id)); found != rows.end())
      visit(npu, records.subspan(found->second.first, found->second.second - found->second.first));
}

std::vector<memory::UsageRecord> Folding::expand(std::span<const memory::UsageRecord> records,
                                                 parallel::Communicator& world) const {
  const auto needed = exchanged(records, world);
  std::vector<memory::UsageRecord> all;
  for_each_npu(std::span<const memory::UsageRecord>(needed),
               [&](const npu::NpuSpec& npu, std::span<const memory::UsageRecord> of_class) {
                 for (const auto& record : of_class) all.emplace_back(record).npu = npu.id;
               });
  return all;
}

std::vector<npu::TimelineRecord> Folding::expand(std::span<const npu::TimelineRecord> records,
                                                 parallel::Communicator& world) const {
  std::vector<npu::TimelineRecord> of_classes(records.begin(), records.end());
  auto representative = npus_.begin();
  for (auto& record : of_classes) {  // from now on `node` is the node's number, which is that of all NPUs of the class
    while (representative->id != record.npu) ++representative;
    const auto& ids = representative->trace->labels->ids;
    const auto at = std::ranges::lower_bound(ids, record.node - representative->trace->first_id);
    record.node = static_cast<std::uint64_t>(at - ids.begin());
  }
  of_classes = exchanged(std::span<const npu::TimelineRecord>(of_classes), world);
  std::vector<npu::TimelineRecord> all;
  AwaitedNpus awaited(classes_.of_npu, all_communicators_);
  for_each_npu(std::span<const npu::TimelineRecord>(of_classes),
               [&](const npu::NpuSpec& npu, std::span<const npu::TimelineRecord> of_class) {
                 for (const auto& record : of_class) {
                   const NodeId at(static_cast<std::uint32_t>(record.node));
                   auto& own = all.emplace_back(record);
                   own.npu = npu.id;
                   own.node = npu.trace->id_of(at);
                   own.name = npu.trace->labels->names[at.index()];
                   if (record.peer != npu::TimelineRecord::no_peer) {
                     const trace::Node& message = npu.trace->graph->nodes[at.index()];
                     own.peer = npu.trace->peers[message.slot].value();
                     own.tag = npu.trace->tags[message.detail];
                   }
                   if (record.group != npu::TimelineRecord::no_group)
                     own.group = npu.groups[npu.program->use_of_node(at)].value();
                   own.last.npu = awaited.of(npu, at, record.last.npu);
                 }
               });
  return all;
}

}  // namespace orrery::fold
