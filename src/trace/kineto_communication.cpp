#include "kineto_communication.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

/// Adds what the operators around the launch say, the innermost first.
CommunicationRecord KinetoCommunication::record_of(const GpuOperation& operation) const {
  CommunicationRecord record = recording_.records[operation.record];
  if (operation.launch != GpuOperation::none) {
    const HostCall& launch = recording_.calls[operation.launch];
    if (const auto found = operators_of_thread_.find(launch.thread); found != operators_of_thread_.end()) {
      const auto& all = found->second;
      const auto start = [&](std::uint32_t i) { return recording_.operators[i].start; };
      auto at = std::ranges::upper_bound(all, launch.start, {}, start);
      for (std::size_t looked = 0; at != all.begin() && looked < most_nested; ++looked) {
        const CommunicationOperator& op = recording_.operators[*--at];
        if (op.end >= launch.start) record.complete_with(recording_.records[op.record]);
      }
    }
  }
  complete_group(record);
  return record;
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
  const std::uint64_t bytes = std::max(record.in_bytes.value_or(0), record.out_bytes.value_or(0));
  node.set(Attribute::comm_size, whole_number(std::max<std::uint64_t>(bytes, 1)));
  if (bytes == 0) trace_.notices.add("kineto-size", "communication kernels do not tell their bytes: 1 is assumed");
}

void KinetoCommunication::write(const GpuOperation& operation, ParsedNode& node) {
  const CommunicationRecord record = record_of(operation);
  const Action action = action_of(record, operation.name);
  if (action.message != Message::none) return write_message(record, action.message == Message::send, node);
  if (!action.collective) return keep_as_kernel(node);
  const auto bytes = bytes_of(record, *action.collective);
  if (!bytes && *action.collective != CollectiveKind::barrier)
    trace_.notices.add("kineto-size", "communication kernels do not tell their bytes: 1 is assumed");
  node.type = static_cast<std::uint32_t>(NodeType::comm_coll);
  node.set(Attribute::comm_type, whole_number(static_cast<std::uint64_t>(*action.collective)));
  node.set(Attribute::comm_size, whole_number(bytes.value_or(1)));
  set_group(record, operation, node);
}

}  // namespace orrery::trace
