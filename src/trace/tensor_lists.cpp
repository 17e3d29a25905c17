#include "tensor_lists.hpp"

#include <limits>

#include "orrery/base/error.hpp"

namespace orrery::trace {

std::optional<Bytes> TensorLists::list(std::uint32_t node, std::uint32_t key, Bytes size, bool makes) {
  auto& [sizes, num_listings, first, listings] = tensors_;
  const bool is_tensor = size > Bytes();
  const auto next_tensor = static_cast<std::uint32_t>(sizes.size());
  const auto [tensor, added] = number_of_key_.of(key, is_tensor ? next_tensor : empty);
  if (added && is_tensor) {
    check(tensor < most_tensors, "more than 2^30 tensors");
    sizes.push_back(size.count());
    num_listings.push_back(0);
    keys_.push_back(key);
    last_listing_.push_back(0);
    size_ += size;
  }
  const Bytes known = tensor == empty ? Bytes() : Bytes(sizes[tensor]);
  if (known != size) return known;
  if (!is_tensor) return {};
  check(listings.size() < std::numeric_limits<std::uint32_t>::max(), "more than 2^32 listings of tensors");
  const auto next = static_cast<std::uint32_t>(listings.size());
  if (first.size() <= node) first.resize(std::size_t{node} + 1, next);
  if (num_listings[tensor] > 0 && last_listing_[tensor] >= first[node]) {
    Listing& own = listings[last_listing_[tensor]];
    (makes ? own.makes : own.needs) = 1;
    return {};
  }
  ++num_listings[tensor];
  last_listing_[tensor] = next;
  listings.push_back({.tensor = tensor & (most_tensors - 1), .needs = makes ? 0U : 1U, .makes = makes ? 1U : 0U});
  return {};
}

Tensors TensorLists::finish(std::uint32_t num_nodes) {
  if (!tensors_.listings.empty())
    tensors_.first.resize(std::size_t{num_nodes} + 1, static_cast<std::uint32_t>(tensors_.listings.size()));
  return std::move(tensors_);
}

}  // namespace orrery::trace
