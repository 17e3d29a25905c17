#include "orrery/collective/data_contract.hpp"

#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"

namespace orrery::collective {
namespace {

std::uint64_t hash_of(std::uint64_t rank) { return mix(0, rank); }

}  // namespace

DataContract::DataContract(Kind kind, std::uint32_t size, std::uint64_t num_chunks, std::uint32_t root)
    : kind_(kind), size_(size), root_(root), num_chunks_(num_chunks), share_(num_chunks / size) {
  for (std::uint32_t rank = 0; rank < size; ++rank) all_ranks_ += hash_of(rank);
}

std::uint64_t DataContract::num_input() const {
  return kind_ == Kind::all_gather || kind_ == Kind::gather ? share_ : num_chunks_;
}

std::uint64_t DataContract::num_output() const {
  return kind_ == Kind::reduce_scatter || kind_ == Kind::scatter ? share_ : num_chunks_;
}

std::uint64_t DataContract::output_run() const {
  const bool gathers = kind_ == Kind::all_gather || kind_ == Kind::gather || kind_ == Kind::all_to_all;
  return gathers ? share_ : num_output();
}

DataMark DataContract::input(std::uint32_t rank, std::uint64_t at) const {
  const bool is_shard = kind_ == Kind::all_gather || kind_ == Kind::gather;
  const bool is_of_root = kind_ == Kind::broadcast || kind_ == Kind::scatter;
  if (is_of_root && rank != root_) return {};
  return {is_shard ? rank * share_ + at : at, 1, hash_of(rank)};
}

DataMark DataContract::output(std::uint32_t rank, std::uint64_t at) const {
  const bool is_for_root = kind_ == Kind::reduce || kind_ == Kind::gather;
  if (is_for_root && rank != root_) return {};
  switch (kind_) {
    case Kind::all_reduce:
    case Kind::reduce:
      return {at, size_, all_ranks_};
    case Kind::reduce_scatter:
      return {rank * share_ + at, size_, all_ranks_};
    case Kind::all_gather:
    case Kind::gather:
      return {at, 1, hash_of(at / share_)};
    case Kind::all_to_all:
      return {rank * share_ + at % share_, 1, hash_of(at / share_)};
    case Kind::broadcast:
      return {at, 1, hash_of(root_)};
    case Kind::scatter:
      return {rank * share_ + at, 1, hash_of(root_)};
    case Kind::barrier:
    case Kind::expert_dispatch:
    case Kind::expert_combine:
      break;
  }
  ensure_failed("data of a kind that has none", std::source_location::current());
}

}  // namespace orrery::collective
