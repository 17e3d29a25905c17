#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "orrery/base/time.hpp"

namespace orrery::serving {

/// What a client asks of a model.
struct Request {
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

  Time arrival;                  ///< at the router; without meaning if `after` names a request
  std::uint32_t prompt = 1;      ///< tokens
  std::uint32_t output = 1;      ///< tokens, of which the prefill makes the first
  std::uint32_t after = nobody;  ///< id of the request whose end comes before this arrival
  Time think = Time::zero();     ///< delay from the moment in which the router learns of that end to this arrival
  std::int64_t session = -1;     ///< number of its session; -1: none
  std::uint64_t first_id = 0;    ///< position in Requests::ids
  std::uint32_t num_ids = 0;     ///< ids of the beginnings of the prompt; 0: it shares no block with others
};

/// The requests of a run. The id of a request is its position.
struct Requests {
  std::vector<Request> list;
  std::vector<std::uint64_t> ids;    ///< chained: an id stands for all tokens up to its end
  std::uint32_t tokens_per_id = 16;  ///< tokens between two ids
  bool is_closed = false;            ///< arrivals follow the ends of others

  const Request& operator[](std::uint32_t id) const { return list[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(list.size()); }

  /// Returns the key of the full block `index` of a prompt, which another request has to have to share the block; none
  /// if the request shares nothing. Keys are below 2^62.
  std::optional<std::uint64_t> key(std::uint32_t id, std::uint32_t index, std::uint32_t block) const;
  /// Returns the number of full blocks of a prompt that others may share.
  std::uint32_t num_keys(std::uint32_t id, std::uint32_t block) const {
    return list[id].num_ids == 0 ? 0 : list[id].prompt / block;
  }
};

}  // namespace orrery::serving
