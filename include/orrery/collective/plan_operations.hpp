#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orrery::collective::mscclpp {

/// The buffers of a GPU. If a program works in place, input and output overlap: the smaller one of GPU r is the r-th
/// part of the larger one.
enum class Buffer : std::uint8_t { input, output, scratch };

/// How an operation reaches bytes.
enum class Access : std::uint8_t {
  local,           ///< memory of the block's own GPU
  local_packets,   ///< packets in the scratch of the block's own GPU: a read waits for their flags
  remote,          ///< memory of another GPU: a load if it is a source, a store if it is a destination
  remote_packets,  ///< packets in the scratch of another GPU. Only destinations
  in_switch,       ///< the same place in all GPUs of a group: a source is added up, a destination is multiplied
  switch_packets,  ///< packets in the scratch of all GPUs of a group, at the same place. Only destinations
};
/// Says whether an operand is at all GPUs of a group, reached by the switch.
constexpr bool is_of_group(Access access) { return access == Access::in_switch || access == Access::switch_packets; }
/// Says whether an operand consists of packets.
constexpr bool is_packets(Access access) {
  return access == Access::local_packets || access == Access::remote_packets || access == Access::switch_packets;
}

/// The operations of a thread block, by the names that plans of MSCCL++ give them (gpu.md, MSCCL++ plans). S: sources,
/// D: destinations, in the order in which they stand in an Operation; C: ids of channels; Q: ids of semaphores.
enum class OperationKind : std::uint8_t {
  nop,          ///< the threads of the block wait for each other
  barrier,      ///< all blocks that name the barrier wait for each other
  put,          ///< S[i] local -> D[i] remote. On a port channel the proxy of C[i] carries out the i-th
  pws,          ///< on port channels: put, then signal on the same channels
  pwsf,         ///< pws, then flush
  get,          ///< S[i] remote -> D[i] local
  copy,         ///< S[0] local -> D[0] local
  signal,       ///< a word on each of C, after all earlier writes of the block can be seen
  rlxsignal,    ///< a word on each of C, at once
  wait,         ///< waits for the next word of each of C
  rlxwait,      ///< likewise
  flush,        ///< waits until the proxy has carried out all earlier requests on C
  re,           ///< D[0] = S[0] + S[1..], all local
  res,          ///< re, and the sum to D[1..] remote
  rre,          ///< D[0] = S[0] local + S[1..] remote
  rres,         ///< rre, and the sum to D[1..] remote
  ppkt,         ///< S[i] local -> D[i] remote packets
  rppkt,        ///< S[0] local packets -> D[0..] remote packets
  repkt,        ///< D[0] = S[0] local + S[1..] local packets
  respkt,       ///< repkt, and the sum to D[1..] remote packets
  recpkt,       ///< repkt, and the sum to D[1] local packets
  recspkt,      ///< repkt, and the sum to D[1] local packets and D[2..] remote packets
  cpkt,         ///< S[0] local -> D[0] local packets
  upkt,         ///< S[0] local packets -> D[0] local
  glres,        ///< S[0] in_switch -> D[0] in_switch
  gstore,       ///< S[0] local -> D[0] in_switch
  gstorepkt,    ///< S[0] local packets -> D[0] switch packets
  sem_acquire,  ///< waits until each of Q is above 0, and takes one
  sem_release,  ///< adds one to each of Q
};
inline constexpr std::size_t num_operation_kinds = static_cast<std::size_t>(OperationKind::sem_release) + 1;

/// Returns the name of an operation in plans.
std::string_view name(OperationKind kind);

/// How words and data of a channel travel.
enum class Transport : std::uint8_t {
  memory,  ///< loads and stores of the block's threads
  port,    ///< requests to the proxy on the host, which starts copy engines or sends messages
};

/// One end of a connection between two GPUs. Words that are sent on it come to `paired` of `peer`, and words that are
/// awaited on it are those that `paired` of `peer` sent, the k-th one for the k-th wait.
struct Channel {
  Transport transport = Transport::memory;
  std::uint32_t peer = 0;    ///< the GPU
  std::uint32_t paired = 0;  ///< index in Gpu::channels of the peer
};

/// The operands of an operation. Those from the last named one on are alike.
struct OperandRules {
  Access first_source, more_sources;
  std::uint32_t least_sources, most_sources;
  Access first_destination, second_destination, more_destinations;
  std::uint32_t least_destinations, most_destinations;
  bool is_paired;  ///< source i goes to destination i; a lone source goes to all

  Access source(std::uint32_t i) const { return i == 0 ? first_source : more_sources; }
  Access destination(std::uint32_t i) const {
    return i == 0 ? first_destination : i == 1 ? second_destination : more_destinations;
  }
};

/// Returns the rules of operations of a kind.
OperandRules operand_rules(OperationKind kind, Transport transport);

/// Says whether operations of a kind add up their sources.
bool is_reduction(OperationKind kind);
/// Says whether operations of a kind send words, or wait for them.
bool sends_words(OperationKind kind);
bool awaits_words(OperationKind kind);
/// Says whether operations of a kind name channels in their ids, and whether they name semaphores.
bool uses_channels(OperationKind kind, Transport transport);
bool uses_semaphores(OperationKind kind);

}  // namespace orrery::collective::mscclpp
