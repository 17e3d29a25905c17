#include "kineto_communication.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kineto_libraries.hpp"
#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t most_nested = 64;  // operators that begin before a launch and are looked at

/// Returns the name in lower case, without what PyTorch puts around that of a collective.
std::string plain_name(std::string_view name) {
  std::string plain;
  if (name.starts_with("nccl:")) name.remove_prefix(5);
  for (const char c : name)
    if (c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return plain;
}

/// Returns the part of a kernel's name that tells what it does: "AllReduce" of ncclDevKernel_AllReduce_Sum_f16_RING_LL.
std::string_view kernel_part(std::string_view kernel) {
  const auto at = kernel.find("Kernel_");
  if (at == std::string_view::npos) return {};
  kernel.remove_prefix(at + 7);
  return kernel.substr(0, kernel.find_first_of("_("));
}

}  // namespace

std::optional<CollectiveKind> collective_named(std::string_view name) {
  constexpr std::pair<std::string_view, CollectiveKind> kinds[] = {{"alltoall", CollectiveKind::all_to_all},
                                                                   {"allreduce", CollectiveKind::all_reduce},
                                                                   {"reducescatter", CollectiveKind::reduce_scatter},
                                                                   {"allgather", CollectiveKind::all_gather},
                                                                   {"broadcast", CollectiveKind::broadcast},
                                                                   {"barrier", CollectiveKind::barrier},
                                                                   {"reduce", CollectiveKind::reduce},
                                                                   {"scatter", CollectiveKind::scatter},
                                                                   {"gather", CollectiveKind::gather}};
  const std::string plain = plain_name(name);
  for (const auto& [part, kind] : kinds)
    if (plain.find(part) != std::string::npos) return kind;
  return std::nullopt;
}

KinetoCommunication::KinetoCommunication(const Recording& recording, const ReadOptions& options, std::uint64_t npu,
                                         ParsedTrace& trace)
    : recording_(recording), options_(options), npu_(npu), trace_(trace) {
  for (std::uint32_t i = 0; i < recording.operators.size(); ++i)
    operators_of_thread_[recording.operators[i].thread].push_back(i);
  for (std::uint32_t i = 0; i < recording.library_operators.size(); ++i)
    library_operators_of_thread_[recording.library_operators[i].thread].push_back(i);
  for (const GpuOperation& operation : recording.operations)
    if (operation.communicates && operation.launch != GpuOperation::none) {
      const HostCall& launch = recording.calls[operation.launch];
      launches_of_thread_[launch.thread].push_back(launch.start);
    }
  for (auto& [thread, launches] : launches_of_thread_) std::ranges::sort(launches);
}

void KinetoCommunication::fail(const GpuOperation& operation, std::string_view found, std::string_view expected) const {
  Place place = trace_.source.place();
  place.byte_offset = operation.position;
  throw Error(ErrorCode::bad_input, place, fmt::format("the kernel '{}' {}", shown(operation.name), found), expected,
              "A newer PyTorch lists the members of process groups in what it records.");
}

std::uint64_t KinetoCommunication::world_size() const {
  return recording_.world_size.value_or(options_.alone ? 1 : options_.num_npus);
}

KinetoCommunication::Action KinetoCommunication::action_of(const CommunicationRecord& record, std::string_view kernel) {
  for (const std::string_view full : {std::string_view(record.name), kernel_part(kernel)}) {
    if (const auto kind = collective_named(full)) return {kind, Message::none};
    const std::string name = plain_name(full);
    if (name.starts_with("send") && name != "sendrecv") return {std::nullopt, Message::send};
    if (name.starts_with("recv")) return {std::nullopt, Message::receive};
  }
  return {};
}

/// Adds what the operators around a launch say, the innermost first.
void KinetoCommunication::complete_around(const HostCall& launch, const std::vector<CommunicationOperator>& operators,
                                          const Operators& of_thread, const Recording& recording,
                                          CommunicationRecord& record) {
  const auto found = of_thread.find(launch.thread);
  if (found == of_thread.end()) return;
  const auto& all = found->second;
  const auto start = [&](std::uint32_t i) { return operators[i].start; };
  auto at = std::ranges::upper_bound(all, launch.start, {}, start);
  for (std::size_t looked = 0; at != all.begin() && looked < most_nested; ++looked) {
    const CommunicationOperator& op = operators[*--at];
    if (op.end >= launch.start) record.complete_with(recording.records[op.record]);
  }
}

CommunicationRecord KinetoCommunication::record_of(const GpuOperation& operation) const {
  CommunicationRecord record = recording_.records[operation.record];
  if (operation.launch != GpuOperation::none)
    complete_around(recording_.calls[operation.launch], recording_.operators, operators_of_thread_, recording_, record);
  complete_group(record);
  return record;
}

/// Returns what the operators say that the launching thread called, and left, after it had launched another kernel of
/// communication. Operators within another one complete it.
std::vector<CommunicationRecord> KinetoCommunication::called_before(const GpuOperation& operation) const {
  std::vector<CommunicationRecord> called;
  if (operation.launch == GpuOperation::none) return called;
  const HostCall& launch = recording_.calls[operation.launch];
  const auto found = operators_of_thread_.find(launch.thread);
  const auto launches = launches_of_thread_.find(launch.thread);
  if (found == operators_of_thread_.end() || launches == launches_of_thread_.end()) return called;
  const auto own = std::ranges::equal_range(launches->second, launch.start);
  if (own.size() != 1) return called;  // a CUDA graph
  const auto start = [&](std::uint32_t i) { return recording_.operators[i].start; };
  auto at = found->second.begin();
  if (own.begin() != launches->second.begin())
    at = std::ranges::upper_bound(found->second, *(own.begin() - 1), {}, start);
  std::int64_t end = 0;
  for (; at != found->second.end() && start(*at) < launch.start; ++at) {
    const CommunicationOperator& op = recording_.operators[*at];
    if (op.end > launch.start) continue;
    const CommunicationRecord& record = recording_.records[op.record];
    if (!called.empty() && op.end <= end) {
      called.back().complete_with(record);
      continue;
    }
    end = op.end;
    called.push_back(record);
  }
  for (CommunicationRecord& record : called) complete_group(record);
  return called;
}

std::vector<CommunicationRecord> KinetoCommunication::messages_of(const GpuOperation& operation) const {
  const Action own = action_of(record_of(operation), operation.name);
  if (own.collective || own.message != Message::none) return {};
  std::vector<CommunicationRecord> messages;
  for (CommunicationRecord& record : called_before(operation)) {
    if (action_of(record, {}).message == Message::none) continue;
    const auto peer = peer_of(record);
    if (!peer) return {};
    if (*peer != recording_.rank.value_or(npu_)) messages.push_back(std::move(record));
  }
  return messages;
}

/// Adds the bytes of collectives that were called before the one launch that carries them out.
void KinetoCommunication::add_calls_before(const GpuOperation& operation, CommunicationRecord& record) const {
  const auto kind = action_of(record, operation.name).collective;
  for (const CommunicationRecord& called : called_before(operation)) {
    if (action_of(called, {}).collective != kind || (!called.in_bytes && !called.out_bytes)) continue;
    const bool is_first = !record.in_bytes && !record.out_bytes;
    if (!is_first && called.group != record.group) continue;
    record.in_bytes = record.in_bytes.value_or(0) + called.in_bytes.value_or(0);
    record.out_bytes = record.out_bytes.value_or(0) + called.out_bytes.value_or(0);
    if (is_first) record.complete_with(called);
  }
}

/// Takes the members of a group from the list of groups if the kernel does not name them all.
void KinetoCommunication::complete_group(CommunicationRecord& record) const {
  if (record.members && !record.is_cut) return;
  if (!record.group) return;
  const auto known = recording_.groups.find(*record.group);
  if (known == recording_.groups.end()) return;
  record.members = known->second;
  record.is_cut = false;
}

/// Returns the members of the NPU's own group where a copy of the recorded rank is in another one.
std::vector<std::uint64_t> KinetoCommunication::own_members(std::vector<std::uint64_t> members) const {
  const std::uint64_t rank = recording_.rank.value_or(npu_);
  if (rank == npu_ || std::ranges::find(members, npu_) != members.end()) return members;
  for (std::uint64_t& member : members) member += npu_ - rank;
  return members;
}

void KinetoCommunication::set_group(const CommunicationRecord& record, const GpuOperation& operation,
                                    ParsedNode& node) {
  const std::uint64_t size = record.group_size.value_or(record.members ? record.members->size() : 0);
  if (!record.members || record.is_cut) {
    if (size == world_size() || options_.alone) return;
    if (record.is_cut) fail(operation, "lists only some of the members of its process group", "all of them");
    if (size != 0)
      fail(operation, fmt::format("is of a process group of {} without saying of which", counted(size, "rank")),
           fmt::format("the members, or a group of all {}", counted(world_size(), "rank")));
    trace_.notices.add("kineto-group", "collectives name no process group: they are taken for those of all NPUs");
    return;
  }
  auto members = own_members(*record.members);
  if (members.empty() && size != 0 && size != world_size() && !options_.alone)
    fail(operation, fmt::format("is of a process group of {} without saying of which", counted(size, "rank")),
         fmt::format("the members, or a group of all {}", counted(world_size(), "rank")));
  const std::string name =
      record.group && !record.group->empty() ? *record.group : fmt::format("ranks {}", fmt::join(members, ","));
  const auto [known, added] = trace_.definitions.try_emplace(name, GroupDefinition{members, false});
  if (!added && known->second.members != members) known->second.conflicting = true;
  node.group = trace_.names.intern(name);
}

/// Returns the bytes of a collective as a trace gives them: the shard of a member of a gather, all bytes of a member of
/// another.
std::optional<std::uint64_t> KinetoCommunication::bytes_of(const CommunicationRecord& record,
                                                           CollectiveKind kind) const {
  const std::uint64_t in = record.in_bytes.value_or(0), out = record.out_bytes.value_or(0);
  if (!record.in_bytes && !record.out_bytes) return std::nullopt;
  std::uint64_t size = record.group_size.value_or(0);
  if (size == 0) size = record.members && !record.members->empty() ? record.members->size() : world_size();
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return in > 0 ? in : out / size;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return in > 0 && (kind != CollectiveKind::scatter || in > out) ? in : out * size;
    default:
      return std::max(in, out);
  }
}

/// Leaves the node a kernel.
void KinetoCommunication::keep_as_kernel(ParsedNode& node) {
  node.type = static_cast<std::uint32_t>(NodeType::comp);
  trace_.notices.add("kineto-kernel",
                     "communication kernels do not tell what they do: they take their recorded durations, as if they "
                     "computed");
}

/// Returns the rank in the world that a message goes to or comes from. A recording tells its position in the group, so
/// the members must be known, or be all ranks.
std::optional<std::uint64_t> KinetoCommunication::peer_of(const CommunicationRecord& record) const {
  const std::uint64_t size = record.group_size.value_or(world_size());
  const bool are_listed = record.members && !record.members->empty();
  if (!are_listed) return size == world_size() || options_.alone ? record.peer : std::nullopt;
  if (!record.peer || record.is_cut || *record.peer >= record.members->size()) return std::nullopt;
  return (*record.members)[*record.peer];
}

void KinetoCommunication::write_message(const CommunicationRecord& record, bool sends, ParsedNode& node) {
  const auto peer = peer_of(record);
  if (!peer) return keep_as_kernel(node);
  const std::uint64_t shift = npu_ - recording_.rank.value_or(npu_);
  node.type = static_cast<std::uint32_t>(sends ? NodeType::comm_send : NodeType::comm_recv);
  node.set(sends ? Attribute::comm_dst : Attribute::comm_src, whole_number(*peer + shift));
  const std::uint64_t bytes = message_bytes(record);
  node.set(Attribute::comm_size, whole_number(std::max<std::uint64_t>(bytes, 1)));
  if (bytes == 0) trace_.notices.add("kineto-size", "communication kernels do not tell their bytes: 1 is assumed");
}

/// Returns the members of the only listed group of this size that has the rank as a member.
std::optional<std::vector<std::uint64_t>> KinetoCommunication::only_group_of(std::uint64_t size) const {
  std::optional<std::vector<std::uint64_t>> only;
  for (const auto& [name, members] : recording_.groups) {
    if (members.size() != size || std::ranges::find(members, recording_.rank.value_or(npu_)) == members.end()) continue;
    if (only && *only != members) return std::nullopt;
    only = members;
  }
  return only;
}

bool KinetoCommunication::write_of_library(const GpuOperation& operation, ParsedNode& node) {
  CommunicationRecord record;
  if (operation.launch != GpuOperation::none)
    complete_around(recording_.calls[operation.launch], recording_.library_operators, library_operators_of_thread_,
                    recording_, record);
  if (record.group && !recording_.groups.contains(*record.group)) record.group.reset();
  record.group_size = members_of_kernel(operation.name);
  complete_group(record);
  if (!record.members && record.group_size && *record.group_size != world_size())
    record.members = only_group_of(*record.group_size);
  auto kind = library_collective(operation.name);
  if (!kind) kind = library_collective(record.name);
  const bool is_group_known =
      record.members || !record.group_size || *record.group_size == world_size() || options_.alone;
  const auto bytes = kind ? bytes_of(record, *kind) : std::nullopt;
  if (!bytes || !is_group_known) {
    trace_.notices.add(
        "kineto-library",
        fmt::format("kernels such as '{}' communicate, but neither they nor operators around their launches tell what "
                    "and among whom: they take their recorded durations, as if they computed",
                    shown(operation.name)));
    return false;
  }
  write_collective(*kind, *bytes, node);
  set_group(record, operation, node);
  return true;
}

void KinetoCommunication::write_collective(CollectiveKind kind, std::uint64_t bytes, ParsedNode& node) {
  node.type = static_cast<std::uint32_t>(NodeType::comm_coll);
  node.set(Attribute::comm_type, whole_number(static_cast<std::uint64_t>(kind)));
  node.set(Attribute::comm_size, whole_number(bytes));
}

void KinetoCommunication::write(const GpuOperation& operation, ParsedNode& node) {
  CommunicationRecord record = record_of(operation);
  const Action action = action_of(record, operation.name);
  if (action.message != Message::none) return write_message(record, action.message == Message::send, node);
  if (!action.collective) return keep_as_kernel(node);
  if (!record.in_bytes && !record.out_bytes) add_calls_before(operation, record);
  const auto bytes = bytes_of(record, *action.collective);
  if (!bytes && *action.collective != CollectiveKind::barrier)
    trace_.notices.add("kineto-size", "communication kernels do not tell their bytes: 1 is assumed");
  write_collective(*action.collective, bytes.value_or(1), node);
  set_group(record, operation, node);
}

}  // namespace orrery::trace
