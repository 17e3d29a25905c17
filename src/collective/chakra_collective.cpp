// Reads collectives that Chakra execution traces spell out, one trace for each position.
#include <fmt/format.h>

#include <optional>

#include "custom_collective_builder.hpp"
#include "orrery/trace/member_trace.hpp"

namespace orrery::collective {
namespace {

using OperationKind = CustomCollective::OperationKind;

class ChakraReader {
 public:
  explicit ChakraReader(std::vector<trace::MemberTrace> parts)
      : parts_(std::move(parts)), builder_(static_cast<std::uint32_t>(parts_.size())) {}

  std::shared_ptr<const CustomCollective> read(const std::filesystem::path& prefix) {
    for (std::uint32_t position = 0; position < parts_.size(); ++position) add_position(position);
    builder_.match(fault());
    for (std::uint32_t o = 0; o < builder_.num_operations(); ++o)
      if (builder_[o].kind == OperationKind::send) compare(o, builder_[o].partner);
    (void)builder_.order(false, fault());
    return builder_.finish(prefix, num_chunks_.value_or(1));
  }

 private:
  using Step = trace::MemberTrace::Operation;

  const Step& step_of(std::uint32_t operation) const {
    const auto [position, step] = steps_[operation];
    return parts_[position].operations[step];
  }
  Error error(std::uint32_t operation, std::string_view found, std::string_view expected) const {
    const auto [position, step] = steps_[operation];
    return {ErrorCode::bad_input, parts_[position].place(step), found, expected};
  }
  CustomCollectiveBuilder::Fault fault() const {
    return [this](std::uint32_t operation, std::string_view found, std::string_view expected) {
      return error(operation, found, expected);
    };
  }

  void add_position(std::uint32_t position) {
    const std::uint32_t first = builder_.num_operations();
    const std::vector<Step>& steps = parts_[position].operations;
    for (std::uint32_t s = 0; s < steps.size(); ++s) {
      steps_.emplace_back(position, s);
      const std::uint32_t operation = add_step(position, steps[s], first);
      for (const std::uint32_t before : steps[s].dependencies) builder_.depend(first + before, operation);
    }
  }

  std::uint32_t add_step(std::uint32_t position, const Step& step, std::uint32_t first) {
    CustomCollective::Operation operation{.position = position, .duration = step.duration};
    switch (step.kind) {
      case Step::Kind::nothing:
        return builder_.add(operation);
      case Step::Kind::compute:
        return add_computation(operation, step, first);
      case Step::Kind::send:
        operation.kind = OperationKind::send;
        break;
      case Step::Kind::receive:
        operation.kind = OperationKind::receive;
        break;
    }
    const std::uint32_t number = builder_.num_operations();
    if (step.peer >= parts_.size() || step.peer == position)
      throw error(number, fmt::format("the other end is position {}", step.peer),
                  fmt::format("another position of the {} that have a trace", parts_.size()));
    operation.fixed = step.size;
    if (num_chunks_.value_or(step.chunks.of) != step.chunks.of)
      throw error(number, fmt::format("total_chunk_cnt is {}, elsewhere {} (0: none)", step.chunks.of, *num_chunks_),
                  "the same number for all messages, or comm_size alone for all");
    num_chunks_ = step.chunks.of;
    builder_.add_message(operation, static_cast<std::uint32_t>(step.peer), step.tag);
    move_chunks(number, step);
    return number;
  }

  /// Adds a computation. One without a duration adds up what the receives that it waits for have brought.
  std::uint32_t add_computation(CustomCollective::Operation operation, const Step& step, std::uint32_t first) {
    operation.kind = OperationKind::compute;
    if (step.duration > Time::zero()) return builder_.add(operation);
    operation.kind = OperationKind::reduce;
    std::vector<CustomCollective::Range> ranges;
    for (const std::uint32_t before : step.dependencies) {
      if (builder_[first + before].kind != OperationKind::receive) continue;
      const Step& receive = step_of(first + before);
      operation.fixed += receive.size;
      if (receive.chunks.of > 0) ranges.push_back({receive.chunks.first, receive.chunks.count});
    }
    const std::uint32_t number = builder_.add(operation);
    builder_.move(number, ranges);
    return number;
  }

  void move_chunks(std::uint32_t operation, const Step& step) {
    const CustomCollective::Range range{step.chunks.first, step.chunks.count};
    if (step.chunks.of > 0) builder_.move(operation, std::span(&range, 1));
  }

  void compare(std::uint32_t send, std::uint32_t receive) const {
    const auto size = [&](std::uint32_t operation) {
      const Step& step = step_of(operation);
      return step.chunks.of > 0 ? fmt::format("{} chunks", step.chunks.count)
                                : fmt::format("{} bytes", step.size.count());
    };
    if (size(send) != size(receive))
      throw error(receive,
                  fmt::format("it receives {}, but node {} of position {} sends {}", size(receive), step_of(send).id,
                              builder_[send].position, size(send)),
                  "the same size at both ends");
  }

  std::vector<trace::MemberTrace> parts_;
  CustomCollectiveBuilder builder_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> steps_;  ///< [operations] position and step
  std::optional<std::uint32_t> num_chunks_;                     ///< chunks of the whole; 0: sizes are in bytes
};

}  // namespace

std::shared_ptr<const CustomCollective> read_chakra(const std::filesystem::path& prefix, const Place& named_by) {
  std::vector<trace::MemberTrace> parts;
  for (;;) {
    std::filesystem::path file = prefix;
    file += fmt::format(".{}.et", parts.size());
    if (!std::filesystem::exists(file)) break;
    parts.push_back(trace::read_member_trace(file));
  }
  if (parts.empty())
    throw Error(ErrorCode::bad_input, named_by, fmt::format("there is no {}.0.et", prefix.string()),
                "an MSCCL XML (FILE.xml), or PREFIX of Chakra traces PREFIX.0.et, PREFIX.1.et, ...");
  return ChakraReader(std::move(parts)).read(prefix);
}

}  // namespace orrery::collective
