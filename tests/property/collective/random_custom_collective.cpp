#include "random_custom_collective.hpp"

#include <string_view>
#include <vector>

#include "custom_collective_builder.hpp"
#include "orrery/base/error.hpp"

namespace orrery::collective::test {

std::uint64_t draw(std::mt19937_64& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

// Operations in one order that is possible, with random ones before them at the same position.
std::shared_ptr<const CustomCollective> random_custom_collective(std::mt19937_64& random, std::uint32_t positions) {
  struct Draft {
    CustomCollective::Operation operation;
    std::uint32_t peer = 0;
    std::uint64_t tag = 0;
    std::vector<std::size_t> after;
  };
  std::vector<std::vector<Draft>> drafts(positions);
  const auto put = [&](std::uint32_t at, CustomCollective::Operation operation, std::uint32_t peer, std::uint64_t tag) {
    operation.position = at;
    Draft draft{operation, peer, tag, {}};
    for (std::size_t before = 0; before < drafts[at].size(); ++before)
      if (draw(random, 0, 3) == 0) draft.after.push_back(before);
    drafts[at].push_back(draft);
  };
  for (std::uint64_t k = draw(random, 1, 40); k-- > 0;) {
    const auto at = static_cast<std::uint32_t>(draw(random, 0, positions - 1));
    const Bytes size(draw(random, 0, 500'000));
    if (draw(random, 0, 3) == 0) {
      constexpr CustomCollective::OperationKind works[] = {
          CustomCollective::OperationKind::reduce, CustomCollective::OperationKind::copy,
          CustomCollective::OperationKind::compute, CustomCollective::OperationKind::nothing};
      put(at,
          {.kind = works[draw(random, 0, 3)],
           .fixed = size,
           .duration = Time::from_ps(static_cast<std::int64_t>(size.count()))},
          0, 0);
      continue;
    }
    const auto to = static_cast<std::uint32_t>((at + draw(random, 1, positions - 1)) % positions);
    put(at, {.kind = CustomCollective::OperationKind::send, .fixed = size}, to, k);
    put(to, {.kind = CustomCollective::OperationKind::receive, .fixed = size}, at, k);
  }
  CustomCollectiveBuilder builder(positions);
  for (const auto& of_position : drafts) {
    const std::uint32_t first = builder.num_operations();
    for (const Draft& draft : of_position) {
      const bool is_message = draft.operation.kind == CustomCollective::OperationKind::send ||
                              draft.operation.kind == CustomCollective::OperationKind::receive;
      const std::uint32_t operation =
          is_message ? builder.add_message(draft.operation, draft.peer, draft.tag) : builder.add(draft.operation);
      for (const std::size_t before : draft.after)
        builder.depend(first + static_cast<std::uint32_t>(before), operation);
    }
  }
  const CustomCollectiveBuilder::Fault fault = [](std::uint32_t, std::string_view found, std::string_view) {
    return Error(ErrorCode::internal, found);
  };
  builder.match(fault);
  (void)builder.order(false, fault);
  return builder.finish("random", 0);
}

}  // namespace orrery::collective::test
