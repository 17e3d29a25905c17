#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/collective/collective.hpp"

namespace orrery::collective::test {

using Ps = std::int64_t;

/// One chunk in one dimension group: what its messages depend on.
struct GroupCase {
  Algorithm algorithm;
  Kind kind = Kind::all_reduce;  ///< one of the first four; broadcast and reduce by algorithms with steps of their own
  bool reduces = true;           ///< false: only one position has data, and nothing is added up
  std::uint32_t size = 2;        ///< positions
  std::uint64_t piece = 1;       ///< bytes of one block
  std::uint32_t tree = 0;        ///< double binary tree: which of the two
  Ps endpoint_delay = 0;
  std::function<Ps(std::uint32_t from, std::uint32_t to, std::uint64_t bytes)> link;
  std::function<Ps(std::uint64_t bytes)> reduction;
  Ps hop = 0;  ///< latency of one hop, for in-switch
};

/// Which positions contributed to a block: bit i for position i.
using Contributors = std::uint32_t;
/// [positions][blocks]. Blocks: the pieces of the vector that is reduced; the shards that are gathered; of an
/// all-to-all from * positions + to.
using Holdings = std::vector<std::vector<Contributors>>;

/// A collective as the messages of one dimension group, written down from the literature and not from the engine: what
/// each position sends to whom, and what it waits for before that. In-switch has one more node, the switch.
class TextbookProgram {
 public:
  explicit TextbookProgram(const GroupCase& group);

  /// Returns when each position is done.
  std::vector<Ps> finish(const std::vector<Ps>& starts) const;
  /// Returns what each position holds at the end. A contribution that is added twice to one block is counted in
  /// `twice`.
  Holdings carry(const Holdings& initial, int& twice) const;
  /// Returns the bytes that positions send, together and the most of one.
  std::uint64_t bytes() const;
  std::uint64_t most_bytes() const;

 private:
  struct Message {
    std::uint32_t from = 0, to = 0;
    std::vector<std::uint32_t> blocks;
    bool adds = false;  ///< to what the receiver holds
    Ps delay = 0;
  };
  struct Step {
    std::vector<std::size_t> awaits;  ///< messages to this node
    std::vector<std::size_t> holds;   ///< own messages that must be there
    Ps cost = 0;                      ///< after those, before it sends
    std::vector<std::size_t> sends;
  };

  std::size_t send(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t> blocks, bool adds);
  void wait(std::uint32_t node, std::vector<std::size_t> messages, Ps cost);
  /// Calls visit(node, step) for each step, in an order in which every message is sent before it is waited for.
  template <class Visit>
  void walk(Visit visit) const;
  std::uint32_t at(std::uint32_t position, std::uint32_t distance) const { return (position + distance) % group_.size; }

  Ps received(std::size_t blocks, bool adds) const;
  std::vector<std::uint32_t> all_blocks() const;
  void ring();
  void ring_all_to_all();
  void direct();
  void direct_rounds(bool scatters);
  void halving();
  void doubling();
  void double_binary_tree();
  void binomial_tree();
  void in_switch();

  GroupCase group_;
  std::vector<Message> messages_;
  std::vector<std::vector<Step>> steps_;  ///< [nodes]
  bool all_wait_ = false;                 ///< no position is done before all have begun
};

}  // namespace orrery::collective::test
