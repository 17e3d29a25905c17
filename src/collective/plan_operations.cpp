#include "orrery/collective/plan_operations.hpp"

#include <array>

namespace orrery::collective::mscclpp {
namespace {

constexpr std::uint32_t any = 1U << 16;
constexpr auto local = Access::local, local_packets = Access::local_packets, remote = Access::remote,
               remote_packets = Access::remote_packets, multimem = Access::in_switch,
               multimem_packets = Access::switch_packets;

constexpr OperandRules no_operands{local, local, 0, 0, local, local, local, 0, 0, false};
constexpr OperandRules one_to_one(Access source, Access destination) {
  return {source, source, 1, 1, destination, destination, destination, 1, 1, false};
}
constexpr OperandRules pairs(Access source, Access destination) {
  return {source, source, 1, any, destination, destination, destination, 1, any, true};
}
/// A sum of a local source and others, to a local destination and, from the second on, to others.
constexpr OperandRules sum(Access others, Access second, Access more, std::uint32_t least, std::uint32_t most) {
  return {local, others, 1, any, local, second, more, least, most, false};
}

}  // namespace

std::string_view name(OperationKind kind) {
  static constexpr std::array<std::string_view, num_operation_kinds> names = {
      "nop",     "barrier", "put",  "pws",  "pwsf",  "get",    "copy",      "signal",      "rlxsignal",  "wait",
      "rlxwait", "flush",   "re",   "res",  "rre",   "rres",   "ppkt",      "rppkt",       "repkt",      "respkt",
      "recpkt",  "recspkt", "cpkt", "upkt", "glres", "gstore", "gstorepkt", "sem_acquire", "sem_release"};
  return names[static_cast<std::size_t>(kind)];
}

OperandRules operand_rules(OperationKind kind, Transport transport) {
  switch (kind) {
    case OperationKind::put:
    case OperationKind::pws:
    case OperationKind::pwsf:
      return pairs(local, remote);
    case OperationKind::get:
      return pairs(remote, local);
    case OperationKind::copy:
      return one_to_one(local, local);
    case OperationKind::re:
      return sum(local, local, local, 1, 1);
    case OperationKind::res:
      return sum(local, remote, remote, 1, any);
    case OperationKind::rre:
      return sum(remote, local, local, 1, 1);
    case OperationKind::rres:
      return sum(remote, remote, remote, 1, any);
    case OperationKind::ppkt:  // the proxy copies packets as they are
      return pairs(transport == Transport::port ? local_packets : local, remote_packets);
    case OperationKind::rppkt:
      return {local_packets, local_packets, 1, 1, remote_packets, remote_packets, remote_packets, 1, any, false};
    case OperationKind::repkt:
      return sum(local_packets, local, local, 1, 1);
    case OperationKind::respkt:
      return sum(local_packets, remote_packets, remote_packets, 1, any);
    case OperationKind::recpkt:
      return sum(local_packets, local_packets, local_packets, 2, 2);
    case OperationKind::recspkt:
      return sum(local_packets, local_packets, remote_packets, 2, any);
    case OperationKind::cpkt:
      return one_to_one(local, local_packets);
    case OperationKind::upkt:
      return one_to_one(local_packets, local);
    case OperationKind::glres:
      return one_to_one(multimem, multimem);
    case OperationKind::gstore:
      return one_to_one(local, multimem);
    case OperationKind::gstorepkt:
      return one_to_one(local_packets, multimem_packets);
    case OperationKind::nop:
    case OperationKind::barrier:
    case OperationKind::signal:
    case OperationKind::rlxsignal:
    case OperationKind::wait:
    case OperationKind::rlxwait:
    case OperationKind::flush:
    case OperationKind::sem_acquire:
    case OperationKind::sem_release:
      break;
  }
  return no_operands;
}

bool is_reduction(OperationKind kind) {
  switch (kind) {
    case OperationKind::re:
    case OperationKind::res:
    case OperationKind::rre:
    case OperationKind::rres:
    case OperationKind::repkt:
    case OperationKind::respkt:
    case OperationKind::recpkt:
    case OperationKind::recspkt:
      return true;
    default:
      return false;
  }
}

bool sends_words(OperationKind kind) {
  return kind == OperationKind::signal || kind == OperationKind::rlxsignal || kind == OperationKind::pws ||
         kind == OperationKind::pwsf;
}

bool awaits_words(OperationKind kind) { return kind == OperationKind::wait || kind == OperationKind::rlxwait; }

bool uses_channels(OperationKind kind, Transport transport) {
  const bool puts = kind == OperationKind::put || kind == OperationKind::ppkt || kind == OperationKind::rppkt;
  return sends_words(kind) || awaits_words(kind) || kind == OperationKind::flush ||
         (puts && transport == Transport::port);
}

bool uses_semaphores(OperationKind kind) {
  return kind == OperationKind::sem_acquire || kind == OperationKind::sem_release;
}

}  // namespace orrery::collective::mscclpp
