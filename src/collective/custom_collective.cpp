#include "orrery/collective/custom_collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <tuple>

#include "custom_collective_builder.hpp"

namespace orrery::collective {
namespace {

using OperationKind = CustomCollective::OperationKind;
using Dependency = std::pair<std::uint32_t, std::uint32_t>;

/// The successors of operation o are successors[first[o]] .. successors[first[o + 1] - 1].
void list_successors(std::vector<Dependency> edges, std::size_t num_operations, std::vector<std::uint32_t>& first,
                     std::vector<std::uint32_t>& successors) {
  std::ranges::sort(edges);
  first.assign(num_operations + 1, 0);
  successors.clear();
  for (const auto& [before, after] : edges) {
    ++first[before + 1];
    successors.push_back(after);
  }
  for (std::size_t o = 0; o < num_operations; ++o) first[o + 1] += first[o];
}

/// Returns an operation of a circle. Every operation that is missing something waits for another such operation.
std::uint32_t one_of_circle(const std::vector<Dependency>& edges, const std::vector<std::uint32_t>& missing) {
  std::vector<std::uint32_t> waits_for(missing.size());
  for (const auto& [before, after] : edges)
    if (missing[before] > 0) waits_for[after] = before;
  auto at =
      static_cast<std::uint32_t>(std::ranges::find_if(missing, [](auto count) { return count > 0; }) - missing.begin());
  for (std::size_t k = 0; k < missing.size(); ++k) at = waits_for[at];
  return at;
}

/// Returns floor(whole * chunk / num_chunks).
std::uint64_t start_of(std::uint64_t chunk, Bytes whole, std::uint32_t num_chunks) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole.count()) * chunk / num_chunks);
}

}  // namespace

Bytes CustomCollective::bytes(std::uint32_t operation, Bytes whole) const {
  const Operation& of = operations_[operation];
  Bytes sum = of.fixed;
  for (const Range& range : std::span(ranges_).subspan(of.first_range, of.num_ranges))
    sum += Bytes(start_of(std::uint64_t{range.first} + range.count, whole, num_chunks_) -
                 start_of(range.first, whole, num_chunks_));
  return sum;
}

std::size_t CustomCollective::memory() const {
  return sizeof(*this) + operations_.size() * sizeof(Operation) + ranges_.size() * sizeof(Range) +
         (first_.size() + first_successor_.size() + successors_.size()) * sizeof(std::uint32_t);
}

bool is_execution_plan(const std::filesystem::path& file) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) return false;
  std::ifstream stream(file);
  char first = ' ';
  return stream >> first && first == '{';
}

std::shared_ptr<const CustomCollective> read_custom_collective(const std::filesystem::path& file, Kind kind,
                                                               const Place& named_by) {
  if (file.extension() == ".xml") return read_msccl(file, kind, named_by);
  return is_execution_plan(file) ? read_mscclpp(file, kind, named_by) : read_chakra(file, named_by);
}

std::uint32_t CustomCollectiveBuilder::add(Operation operation) {
  const std::uint32_t number = num_operations();
  ensure(operations_.empty() || operations_.back().position <= operation.position,
         "operations of a custom collective are added position by position");
  operations_.push_back(operation);
  return number;
}

std::uint32_t CustomCollectiveBuilder::add_message(Operation operation, std::uint32_t position, std::uint64_t tag) {
  const std::uint32_t number = add(operation);
  if (operation.kind == OperationKind::send)
    sends_.push_back({operation.position, position, tag, number});
  else
    receives_.push_back({position, operation.position, tag, number});
  return number;
}

void CustomCollectiveBuilder::depend(std::uint32_t before, std::uint32_t after) { edges_.emplace_back(before, after); }

void CustomCollectiveBuilder::move(std::uint32_t operation, std::span<const Range> ranges) {
  operations_[operation].first_range = static_cast<std::uint32_t>(ranges_.size());
  operations_[operation].num_ranges = static_cast<std::uint32_t>(ranges.size());
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
}

void CustomCollectiveBuilder::match(const Fault& fault) {
  const auto connection = [](const End& end) { return std::tie(end.from, end.to, end.tag); };
  for (std::vector<End>* const ends : {&sends_, &receives_})
    std::ranges::stable_sort(*ends, [&](const End& a, const End& b) { return connection(a) < connection(b); });
  const std::size_t both = std::min(sends_.size(), receives_.size());
  for (std::size_t k = 0; k < std::max(sends_.size(), receives_.size()); ++k) {
    if (k < both && connection(sends_[k]) == connection(receives_[k])) {
      const auto [send, receive] = std::pair(sends_[k].operation, receives_[k].operation);
      operations_[send].partner = receive;
      operations_[receive].partner = send;
      continue;
    }
    const bool lacks_receive = k >= receives_.size() || (k < both && connection(sends_[k]) < connection(receives_[k]));
    if (lacks_receive)
      throw fault(sends_[k].operation, fmt::format("position {} has no receive for this send", sends_[k].to),
                  "as many receives as sends between two positions, with the same channel or tag");
    throw fault(receives_[k].operation, fmt::format("position {} has no send for this receive", receives_[k].from),
                "as many sends as receives between two positions, with the same channel or tag");
  }
}

std::vector<std::uint32_t> CustomCollectiveBuilder::order(bool last_first, const Fault& fault) const {
  std::vector<Dependency> edges = edges_;
  for (const End& end : sends_) edges.emplace_back(end.operation, operations_[end.operation].partner);
  std::vector<std::uint32_t> missing(operations_.size(), 0), first, successors, ready, order;
  for (const auto& [before, after] : edges) ++missing[after];
  list_successors(edges, operations_.size(), first, successors);
  const auto take = [&](std::uint32_t operation) {
    order.push_back(operation);
    for (std::uint32_t k = first[operation]; k < first[operation + 1]; ++k)
      if (--missing[successors[k]] == 0) ready.push_back(successors[k]);
  };
  for (std::uint32_t o = 0; o < operations_.size(); ++o)
    if (missing[o] == 0) ready.push_back(o);
  for (std::size_t next = 0; last_first ? !ready.empty() : next < ready.size();) {
    const std::uint32_t operation = last_first ? ready.back() : ready[next++];
    if (last_first) ready.pop_back();
    take(operation);
  }
  if (order.size() < operations_.size())
    throw fault(one_of_circle(edges, missing), "it waits for itself, over other operations and messages",
                "dependencies and an order of messages that lead to an end");
  return order;
}

std::shared_ptr<CustomCollective> CustomCollectiveBuilder::finish(std::filesystem::path file, std::uint32_t num_chunks,
                                                                  std::pair<Bytes, Bytes> sizes) {
  auto made = std::make_shared<CustomCollective>();
  made->file_ = std::move(file);
  made->num_chunks_ = num_chunks;
  made->least_ = sizes.first;
  made->most_ = sizes.second;
  for (const Operation& operation : operations_) ++first_[operation.position + 1];
  for (std::size_t position = 1; position < first_.size(); ++position) first_[position] += first_[position - 1];
  std::ranges::sort(edges_);
  edges_.erase(std::ranges::unique(edges_).begin(), edges_.end());
  for (const auto& [before, after] : edges_) ++operations_[after].dependencies;
  list_successors(edges_, operations_.size(), made->first_successor_, made->successors_);
  made->first_ = std::move(first_);
  made->operations_ = std::move(operations_);
  made->ranges_ = std::move(ranges_);
  return made;
}

}  // namespace orrery::collective
