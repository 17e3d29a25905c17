#include "orrery/serving/request.hpp"

#include "orrery/base/error.hpp"

namespace orrery::serving {

std::optional<std::uint64_t> Requests::key(std::uint32_t id, std::uint32_t index, std::uint32_t block) const {
  const Request& request = list[id];
  if (request.num_ids == 0 || (index + 1) * std::uint64_t{block} > request.prompt) return {};
  if (block >= tokens_per_id) {
    const std::uint64_t position = (index + 1) * std::uint64_t{block} / tokens_per_id - 1;
    ensure(position < request.num_ids, "a request with an id for each block of its prompt");
    return ids[request.first_id + position];
  }
  const std::uint64_t start = index * std::uint64_t{block};
  const std::uint64_t position = start / tokens_per_id, blocks_per_id = tokens_per_id / block;
  ensure(position < request.num_ids, "a request with an id for each block of its prompt");
  return ids[request.first_id + position] * blocks_per_id + start % tokens_per_id / block;
}

}  // namespace orrery::serving
