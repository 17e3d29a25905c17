#include "tensor_lists.hpp"

#include <limits>

#include "orrery/base/error.hpp"

namespace orrery::trace {

void TensorLists::start(std::size_t most_listings) {
  tensors_ = {};
  tensors_.sizes.reserve(most_listings);
  tensors_.num_listings.reserve(most_listings);
  tensors_.listings.reserve(most_listings);
  keys_.clear();
  keys_.reserve(most_listings);
  last_listing_.clear();
  last_listing_.reserve(most_listings);
  empty_.clear();
  size_ = {};
}

/// Returns the number of a tensor. Entries that earlier graphs left in the table are beyond `keys_`, or belong to
/// another key there.
std::optional<std::uint32_t> TensorLists::find(std::uint32_t key) const {
  if (key >= number_of_key_.size()) return {};
  const std::uint32_t number = number_of_key_[key];
  if (number >= keys_.size() || keys_[number] != key) return {};
  return number;
}

std::optional<Bytes> TensorLists::list(std::uint32_t node, std::uint32_t key, Bytes size, bool makes) {
  auto& [sizes, num_listings, first, listings] = tensors_;
  const auto known = find(key);
  if (known && Bytes(sizes[*known]) != size) return Bytes(sizes[*known]);
  if (size == Bytes()) {
    empty_.insert(key);
    return {};
  }
  if (!empty_.empty() && empty_.contains(key)) return Bytes();

  const std::uint32_t tensor = known.value_or(static_cast<std::uint32_t>(keys_.size()));
  const auto next = static_cast<std::uint32_t>(listings.size());
  ensure(tensor < most_tensors && next < std::numeric_limits<std::uint32_t>::max(),
         "more tensors than can be numbered");
  if (first.size() <= node) first.resize(std::size_t{node} + 1, next);
  if (!known) {
    if (number_of_key_.size() <= key) number_of_key_.resize(std::size_t{key} + 1);
    number_of_key_[key] = tensor;
    keys_.push_back(key);
    last_listing_.push_back(next);
    sizes.push_back(size.count());
    num_listings.push_back(0);
    size_ += size;
  } else if (last_listing_[tensor] >= first[node]) {
    Listing& own = listings[last_listing_[tensor]];
    if (makes)
      own.makes = 1;
    else
      own.needs = 1;
    return {};
  }
  last_listing_[tensor] = next;
  ++num_listings[tensor];
  listings.push_back({.tensor = tensor & (most_tensors - 1), .needs = makes ? 0U : 1U, .makes = makes ? 1U : 0U});
  return {};
}

Tensors TensorLists::finish(std::uint32_t num_nodes) {
  auto& [sizes, num_listings, first, listings] = tensors_;
  if (!listings.empty()) first.resize(std::size_t{num_nodes} + 1, static_cast<std::uint32_t>(listings.size()));
  sizes.shrink_to_fit();
  num_listings.shrink_to_fit();
  first.shrink_to_fit();
  listings.shrink_to_fit();
  return std::move(tensors_);
}

}  // namespace orrery::trace
