// Follows the data of an MSCCL algorithm with symbols. A symbol says which chunk of the data it is and whose
// contributions are in it.
#include <fmt/format.h>

#include <algorithm>

#include "msccl.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/data_contract.hpp"

namespace orrery::collective {
namespace {

DataContract contract_of(const Msccl& of) { return {of.kind, of.num_gpus, of.num_chunks, of.root}; }

/// The buffers of all members.
class Memory {
 public:
  Memory(const Msccl& of, const DataContract& contract) : of_(of), values_(of.num_gpus) {
    first_output_ = of.num_input();
    first_scratch_ = first_output_ + of.num_output();
    for (std::uint32_t rank = 0; rank < of.num_gpus; ++rank) {
      values_[rank].resize(std::size_t{first_scratch_} + of.num_scratch[rank]);
      for (std::uint32_t at = 0; at < of.num_input(); ++at)
        values_[rank][index(rank, {Msccl::Buffer::input, at})] = contract.input(rank, at);
    }
  }

  DataMark& at(std::uint32_t rank, const Msccl::Step& step, Msccl::Location place) {
    const std::uint32_t sizes[] = {of_.num_input(), of_.num_output(), of_.num_scratch[rank]};
    const std::uint32_t size = sizes[static_cast<std::size_t>(place.buffer)];
    constexpr char names[] = {'i', 'o', 's'};
    if (place.offset >= size)
      throw of_.error(rank, step,
                      fmt::format("it uses chunk {} of buffer {}, which has {}", place.offset,
                                  names[static_cast<std::size_t>(place.buffer)], counted(size, "chunk")),
                      "offsets and cnt within the buffers");
    return values_[rank][index(rank, place)];
  }
  const DataMark& output(std::uint32_t rank, std::uint32_t at) const {
    return values_[rank][index(rank, {Msccl::Buffer::output, at})];
  }

 private:
  /// Returns where a chunk is. In place, the smaller of input and output is a part of the larger one.
  std::size_t index(std::uint32_t rank, Msccl::Location place) const {
    const std::uint32_t in = of_.num_input(), out = of_.num_output();
    if (place.buffer == Msccl::Buffer::scratch) return std::size_t{first_scratch_} + place.offset;
    const bool is_input = place.buffer == Msccl::Buffer::input;
    if (!of_.in_place) return is_input ? place.offset : std::size_t{first_output_} + place.offset;
    const bool is_part = is_input ? in < out : out < in;
    return (is_part ? std::size_t{rank} * std::min(in, out) : 0) + place.offset;
  }

  const Msccl& of_;
  std::uint32_t first_output_ = 0, first_scratch_ = 0;
  std::vector<std::vector<DataMark>> values_;  ///< [gpus][input, output and scratch]
};

/// Carries out operations one by one.
class Follower {
 public:
  Follower(const Msccl& of, const CustomCollectiveBuilder& builder, CustomCollectiveBuilder* moved)
      : of_(of), builder_(builder), moved_(moved), contract_(contract_of(of)), memory_(of, contract_) {
    sent_.resize(builder.num_operations());
    held_.resize(of.num_gpus);
    for (std::uint32_t rank = 0; rank < of.num_gpus; ++rank) held_[rank].resize(of.steps[rank].size());
  }

  void take(std::uint32_t operation, std::uint32_t rank, std::uint32_t index) {
    const Msccl::Step& step = of_.steps[rank][index];
    std::vector<DataMark>& held = held_[rank][index];
    if (step.operations[Msccl::receives] == operation) {
      held = std::move(sent_[builder_[operation].partner]);
      if (!step.operations[Msccl::calculates]) write(rank, step, held);
    } else if (step.operations[Msccl::calculates] == operation) {
      calculate(rank, step, held);
    } else if (step.operations[Msccl::sends] == operation) {
      if (!step.operations[Msccl::receives]) held = read(rank, step, step.from);
      sent_[operation] = held;
    } else {
      return;
    }
    if (moved_ != nullptr)
      note(operation, step.operations[Msccl::sends] == operation ? sent_[operation] : held, step.copies);
    if (step.last() == operation) held = {};
  }

  void check_results() const {
    for (std::uint32_t rank = 0; rank < of_.num_gpus; ++rank)
      for (std::uint32_t at = 0; at < of_.num_output(); ++at) {
        const DataMark wanted = contract_.output(rank, at), found = memory_.output(rank, at);
        if (wanted.count == 0 || wanted == found) continue;
        throw Error(ErrorCode::bad_input, {.file = of_.file},
                    fmt::format("rank {} does not get its result of the {}: chunk {} of its output {}", rank,
                                name(of_.kind), at, describe(found, wanted)),
                    fmt::format("chunk {} with {} in it", wanted.chunk, counted(wanted.count, "contribution")));
      }
  }

 private:
  static std::string describe(const DataMark& found, const DataMark& wanted) {
    if (found.count == 0) return "is never written";
    if (found.chunk != wanted.chunk)
      return fmt::format("is chunk {} with {} in it", found.chunk, counted(found.count, "contribution"));
    if (found.count != wanted.count) return fmt::format("has {} in it", counted(found.count, "contribution"));
    return "has contributions of other ranks in it";
  }

  std::vector<DataMark> read(std::uint32_t rank, const Msccl::Step& step, Msccl::Location place) {
    std::vector<DataMark> values;
    for (std::uint32_t k = 0; k < step.count; ++k, ++place.offset) {
      values.push_back(memory_.at(rank, step, place));
      if (values.back().count == 0)
        throw of_.error(rank, step, "it uses data that nobody has put there yet",
                        "data of the input, or of a step that is over before (depid, deps)");
    }
    return values;
  }
  void write(std::uint32_t rank, const Msccl::Step& step, const std::vector<DataMark>& values) {
    Msccl::Location place = step.to;
    for (const DataMark& value : values) {
      memory_.at(rank, step, place) = value;
      ++place.offset;
    }
  }
  void calculate(std::uint32_t rank, const Msccl::Step& step, std::vector<DataMark>& held) {
    const std::vector<DataMark> own = read(rank, step, step.from);
    if (step.type == "cpy") {
      held = own;
    } else {
      if (step.type == "re") held = read(rank, step, step.to);
      for (std::size_t k = 0; k < held.size(); ++k) {
        if (held[k].chunk != own[k].chunk)
          throw of_.error(rank, step, fmt::format("it adds up chunks {} and {}", held[k].chunk, own[k].chunk),
                          "contributions to one chunk");
        held[k].count += own[k].count;
        held[k].ranks += own[k].ranks;
      }
    }
    if (step.keeps) write(rank, step, held);
  }

  void note(std::uint32_t operation, const std::vector<DataMark>& values, std::uint32_t copies) {
    std::vector<CustomCollective::Range> ranges;
    for (const DataMark& value : values) {
      if (!ranges.empty() && ranges.back().first + ranges.back().count == value.chunk)
        ++ranges.back().count;
      else
        ranges.push_back({static_cast<std::uint32_t>(value.chunk), 1});
    }
    if (copies == 2) ranges.insert(ranges.end(), ranges.begin(), ranges.end());
    moved_->move(operation, ranges);
  }

  const Msccl& of_;
  const CustomCollectiveBuilder& builder_;
  CustomCollectiveBuilder* moved_;
  DataContract contract_;
  Memory memory_;
  std::vector<std::vector<DataMark>> sent_;               ///< [operations] of sends, until received
  std::vector<std::vector<std::vector<DataMark>>> held_;  ///< [gpus][steps] between two actions of a step
};

}  // namespace

std::uint32_t Msccl::num_input() const {
  return kind == Kind::all_gather || kind == Kind::gather ? num_chunks / num_gpus : num_chunks;
}

std::uint32_t Msccl::num_output() const {
  return kind == Kind::reduce_scatter || kind == Kind::scatter ? num_chunks / num_gpus : num_chunks;
}

void follow_data(const Msccl& algorithm, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& of_operation,
                 const std::vector<std::uint32_t>& order, CustomCollectiveBuilder* moved,
                 const CustomCollectiveBuilder& builder) {
  Follower follower(algorithm, builder, moved);
  for (const std::uint32_t operation : order)
    follower.take(operation, of_operation[operation].first, of_operation[operation].second);
  follower.check_results();
}

}  // namespace orrery::collective
