#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "msccl.hpp"
#include "orrery/base/text.hpp"

namespace orrery::collective {

/// A step, by its GPU and its index there.
struct StepOf {
  std::uint32_t rank = 0, index = 0;
  friend auto operator<=>(const StepOf&, const StepOf&) = default;
};
/// A buffer of a GPU.
struct PlanBuffer {
  std::uint32_t rank = 0;
  Msccl::Location at;
  std::uint32_t count = 0;
};
/// A channel in one direction: from a GPU to another one, and its number at the first one.
using PlanChannel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

/// The steps of a plan, and what they wait for.
class PlanSteps {
 protected:
  using Step = Msccl::Step;
  /// The semaphores of a GPU, by number.
  struct Semaphores {
    using OfBlock = std::pair<std::int64_t, std::vector<StepOf>>;  ///< thread block, and its steps
    std::map<std::uint32_t, OfBlock> acquired, released;
    std::vector<std::uint32_t> initial;  ///< values; empty: 0

    std::uint32_t initial_of(std::uint32_t id) const { return initial.empty() ? 0 : initial.at(id); }
  };
  /// Where reading is.
  struct Cursor {
    std::uint32_t gpu = ~std::uint32_t{0}, number = 0;
    std::int64_t block = -1;
    std::string operation;
    std::optional<StepOf> before;                 ///< the step before in this thread block
    std::vector<StepOf> unsignalled;              ///< puts of this thread block that no signal has carried
    Semaphores semaphores;                        ///< semaphores of the GPU
    std::uint32_t iteration = 0, iterations = 1;  ///< iteration of a pipeline, and their number
  };

  explicit PlanSteps(const std::filesystem::path& file) : file_(file) { algorithm_.file = file.string(); }

  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    std::string where;
    if (at_.gpu < algorithm_.steps.size()) where = fmt::format("GPU {}, ", at_.gpu);
    if (at_.block >= 0) where += fmt::format("thread block {}, ", at_.block);
    if (!at_.operation.empty()) where += fmt::format("operation {} ({}), ", at_.number, cited(at_.operation));
    if (!where.empty()) where.replace(where.size() - 2, 1, ":");
    throw Error(ErrorCode::bad_input, {.file = algorithm_.file}, where + std::string(found), expected);
  }
  struct Extra {
    std::optional<PlanChannel> message;  ///< the signal that it sends or waits for
    std::optional<std::uint64_t> tag;    ///< tag of a message with data, or of one that asks for data
    std::uint32_t peer = 0;
  };
  Extra& extra(StepOf step) { return extras_[step]; }
  Step& made(StepOf step) { return algorithm_.steps[step.rank][step.index]; }

  /// Adds a step to a GPU. Steps of this thread block follow each other.
  StepOf add(std::string type, std::optional<std::uint32_t> of_other = {}) {
    const std::uint32_t rank = of_other.value_or(at_.gpu);
    const StepOf step{rank, static_cast<std::uint32_t>(algorithm_.steps[rank].size())};
    Step& added = algorithm_.steps[rank].emplace_back();
    added.block = static_cast<std::uint32_t>(at_.block);
    added.number = at_.number;
    added.type = std::move(type);
    if (of_other) {
      added.of_gpu = at_.gpu;
      return step;
    }
    if (at_.before) waits_.emplace_back(*at_.before, step);
    at_.before = step;
    return step;
  }
  void message(StepOf from, StepOf to) {
    for (const auto& [step, peer] : {std::pair(from, to.rank), std::pair(to, from.rank)}) {
      extra(step).tag = next_tag_;
      extra(step).peer = peer;
    }
    ++next_tag_;
  }
  void same_size(const PlanBuffer& from, const PlanBuffer& to) const {
    if (from.count != to.count)
      fail(fmt::format("it moves {} to {}", counted(from.count, "chunk"), to.count), "equal sizes");
  }
  /// Notes that packets arrive at a place with this step; one that reads them waits for them.
  void arrive(StepOf step, const PlanBuffer& to) {
    for (std::uint32_t c = 0; c < to.count; ++c)
      if (!packets_.emplace(std::tuple(to.rank, to.at.buffer, to.at.offset + c), step).second)
        fail(fmt::format("packets come to chunk {} of a buffer of GPU {} twice", (to.at.offset + c) / parts_, to.rank),
             "a place of its own for each");
  }
  void await(StepOf step, const PlanBuffer& from) { readers_.emplace_back(step, from); }

  void write(const PlanBuffer& from, const PlanBuffer& to, bool packets, bool awaits = false) {
    same_size(from, to);
    const StepOf sends = add("s"), receives = add("r", to.rank);
    made(sends).from = from.at;
    made(receives).to = to.at;
    for (const StepOf step : {sends, receives}) {
      made(step).count = from.count;
      made(step).copies = packets ? 2 : 1;
    }
    message(sends, receives);
    if (awaits) await(sends, from);
    if (packets)
      arrive(receives, to);
    else
      at_.unsignalled.push_back(receives);
  }
  void fetch(const PlanBuffer& from, const PlanBuffer& to, bool adds) {
    same_size(from, to);
    const StepOf asks = add("s"), asked = add("r", from.rank), sends = add("s", from.rank),
                 receives = add(adds ? "rrc" : "r");
    message(asks, asked);
    message(sends, receives);
    waits_.emplace_back(asked, sends);
    made(sends).from = from.at;
    made(receives).from = made(receives).to = to.at;
    made(sends).count = made(receives).count = from.count;
  }
  /// Adds up what stands in the same place of several GPUs, in the switch: all of them send at once, and the sum comes
  /// by one link, in the time of one message.
  void reduce_in_switch(const std::vector<PlanBuffer>& others, const PlanBuffer& sum) {
    const std::optional<StepOf> before = at_.before;
    std::vector<StepOf> ends;
    for (const PlanBuffer& other : others) {
      at_.before = before;
      fetch(other, sum, true);
      made(*at_.before).adds_in_switch = true;
      made(*at_.before).in_switch = !ends.empty();
      ends.push_back(*at_.before);
    }
    const StepOf together = add("nop");
    for (const StepOf end : ends)
      if (end != ends.back()) waits_.emplace_back(end, together);
  }
  /// Writes to several GPUs through the switch, which multiplies one message.
  void multicast(const PlanBuffer& from, const std::vector<PlanBuffer>& to, bool packets, bool awaits = false) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      write(from, to[k], packets, awaits && k == 0);
      // Of those that leave at one time the first number goes first, and the last one holds the link.
      made(*at_.before).in_switch = k + 1 < to.size();
    }
  }
  void calculate(std::string type, const PlanBuffer& from, const PlanBuffer& to, bool awaits, bool arrives) {
    same_size(from, to);
    const StepOf step = add(std::move(type));
    made(step).from = from.at;
    made(step).to = to.at;
    made(step).count = from.count;
    if (awaits) await(step, from);
    if (arrives) arrive(step, to);
  }
  void claim(std::map<PlanChannel, std::int64_t>& blocks, const PlanChannel& channel) const {
    const auto [found, is_new] = blocks.emplace(channel, at_.block);
    if (!is_new && found->second != at_.block)
      fail(fmt::format("thread block {} uses the same channel", found->second), "one thread block for each connection");
  }

  /// Lets acquisitions of semaphores of a GPU wait for the releases that give them their unit.
  void match_semaphores();
  std::shared_ptr<CustomCollective> build();

  std::filesystem::path file_;
  Msccl algorithm_;
  std::uint32_t parts_ = 1;                                            ///< parts per chunk of the file
  std::pair<Bytes, Bytes> sizes_{Bytes(0), Bytes(~std::uint64_t{0})};  ///< bounds of the size of the whole
  Cursor at_;
  std::map<StepOf, Extra> extras_;
  std::vector<std::pair<StepOf, StepOf>> waits_;                     ///< before, after
  std::map<PlanChannel, std::vector<std::vector<StepOf>>> carried_;  ///< the puts that each signal carries
  std::map<PlanChannel, std::vector<StepOf>> waits_of_;
  std::map<PlanChannel, std::int64_t> signallers_, waiters_;  ///< the thread block

 private:
  void add_operations(CustomCollectiveBuilder& builder);
  void find_waits();

  std::uint64_t next_tag_ = 0;
  std::map<std::tuple<std::uint32_t, Msccl::Buffer, std::uint32_t>, StepOf> packets_;
  std::vector<std::pair<StepOf, PlanBuffer>> readers_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_operation_;  ///< rank and index of the step
};

}  // namespace orrery::collective
