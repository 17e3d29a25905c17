#include "orrery/fold/folding.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::fold {

using communicator::CollectiveRecord;
using memory::UsageRecord;
using npu::NpuRecord;
using npu::NpuSpec;
using npu::TimelineRecord;

Folding::Folding(const npu::RunContext& setting, Rank here, int num_ranks)
    : all_npus_(setting.npus),
      all_communicators_(setting.communicators),
      replay_only_(setting.options.replay_only),
      streams_(streams_of_programs(setting.npus)),
      likeness_(likeness_of(setting, streams_, characters_)),
      classes_(classes_of(likeness_)) {
  likeness_.places_among = {};
  deal(num_ranks);
  if (replay_only_)  // in which nobody meets
    communicators_.assign(all_communicators_.begin(), all_communicators_.end());
  else
    fold_communicators();
  for (const auto first : classes_.first) {
    if (host_of_npu_[first] != here) continue;
    const npu::NpuSpec& npu = all_npus_[first];
    folded_.push_back(folded(npu));
    npus_.push_back({npu.id, npu.trace, npu.program, npu.groups, &folded_.back()});
    if (replay_only_) continue;
    for (GroupId& group : npus_.back().groups)
      group = GroupId(communicator_of_class_.at(classes_.of_group[group.index()]));
  }
}

void Folding::deal(int num_ranks) {
  const std::uint64_t count = classes_.count();
  host_of_npu_.reserve(all_npus_.size());
  for (const auto its : classes_.of_npu)
    host_of_npu_.emplace_back(static_cast<int>(its * static_cast<std::uint64_t>(num_ranks) / count));
}

/// Those in which somebody meets others who stands for a class; each class of groups has one.
void Folding::fold_communicators() {
  std::vector<std::uint64_t> counts;
  for (const auto first : classes_.first)
    for (const GroupId group : all_npus_[first].groups) {
      const auto its = classes_.of_group[group.index()];
      const auto next = static_cast<std::uint32_t>(communicators_.size());
      if (!communicator_of_class_.try_emplace(its, next).second) continue;
      auto& representatives = representatives_.emplace_back();
      representatives.count = 0;
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> number_of;  // by class and use
      for (const auto& member : likeness_.members_of(group.value())) {
        const auto number = static_cast<std::uint32_t>(representatives.npus.size());
        const auto [found, added] = number_of.try_emplace({classes_.of_npu[member.npu], member.use}, number);
        if (added) representatives.npus.push_back(standing_for(NpuId(member.npu)));
        representatives.of_member.push_back(found->second);
      }
      const auto& spec = all_communicators_[group.index()];
      const NpuId host = representatives.npus[next % representatives.npus.size()];
      communicators_.push_back(
          {GroupId(next), spec.group, spec.dimensions, spec.custom, host_of_npu_[host.index()], &representatives});
    }
  groups_of_.resize(communicators_.size());
  for (const auto& spec : all_communicators_) {
    const auto found = communicator_of_class_.find(classes_.of_group[spec.id.index()]);
    orrery::ensure(found != communicator_of_class_.end(), "a group none of whose members stands for its class");
    groups_of_[found->second].push_back(spec.id);
    ++representatives_[found->second].count;
  }
}

npu::FoldedNpu Folding::folded(const npu::NpuSpec& npu) {
  npu::FoldedNpu result;
  result.count = classes_.sizes[class_of(npu.id)];
  result.streams = &streams_.at(npu.program);
  if (replay_only_) return result;
  for (const auto& stream : likeness_.streams_of(npu.id.value()))
    result.ends.push_back({standing_for(NpuId(stream.peer)), stream.stream});
  for (std::size_t use = 0; use < npu.groups.size(); ++use) {
    // The group that the representatives were taken from may be another one of the class: place by place it is alike.
    const auto communicator = communicator_of_class_.at(classes_.of_group[npu.groups[use].index()]);
    const auto position = likeness_.places_of(npu.id.value())[use].position;
    result.participants.push_back(communicators_[communicator].representatives->of_member[position]);
  }
  return result;
}

std::vector<char> Folding::witnesses() const {
  std::vector<char> result(all_npus_.size());
  for (const auto first : classes_.first) {
    result[first] = 1;
    for (const auto& stream : likeness_.streams_of(first)) result[stream.peer] = 1;
  }
  for (const auto& spec : communicators_) {
    if (spec.group->members.empty()) result.assign(result.size(), 1);
    for (const NpuId member : spec.group->members) result[member.index()] = 1;
  }
  return result;
}

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

/// Of each NPU, in order, the records of who stands for it.
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
  for_each_npu(records, [&](const npu::NpuSpec& npu, std::span<const npu::TimelineRecord> of_class) {
    const auto& stands = *all_npus_[of_class.front().npu.index()].trace;
    for (const auto& record : of_class) {
      const auto node =
          std::ranges::lower_bound(stands.labels->ids, record.node - stands.first_id) - stands.labels->ids.begin();
      auto& own = all.emplace_back(record);
      own.npu = npu.id;
      own.node = npu.trace->id_of(NodeId(static_cast<std::uint32_t>(node)));
      own.name = npu.trace->labels->names[static_cast<std::size_t>(node)];
      if (record.group != npu::TimelineRecord::no_group)
        own.group = npu.groups[npu.program->use_of_node(NodeId(static_cast<std::uint32_t>(node)))].value();
    }
  });
  return all;
}

std::string Folding::description() const {
  const auto num_npus = all_npus_.size();
  std::string text =
      classes_.count() == num_npus
          ? fmt::format("nothing to fold: {} in as many classes", counted(num_npus, "NPU"))
          : fmt::format("folded: {} in {}", counted(num_npus, "NPU"), counted(classes_.count(), "class", "classes"));
  text += fmt::format(": {}", counted(characters_.num_structures, "structure"));
  const auto add = [&](std::uint64_t count, std::string_view why) {
    if (count > 0) text += fmt::format("; {} {}", count, why);
  };
  add(characters_.num_noisy, "NPUs with compute times of their own (noise)");
  add(characters_.num_sharing, "NPUs that share a memory, first come, first served");
  add(characters_.by_speeds, "more by their compute speeds");
  add(characters_.by_routes, "more by the ways of their messages");
  add(classes_.by_members, "more by the members of their groups");
  add(classes_.by_place, "more by their places in groups of unlike members");
  add(classes_.by_messages, "more by whom they exchange messages with");
  return text;
}

}  // namespace orrery::fold
