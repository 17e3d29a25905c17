#include "locations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace orrery::synthesis {
namespace {

/// The two ends of a dependency: tokens and offsets of the node and of its source.
using Ends = std::array<std::uint32_t, 4>;

Ends ends_of(const Location& node, const Location& source) {
  return {node.token, node.offset, source.token, source.offset};
}

/// Returns a whole number as one relative to the start of `count` iterations, or to their end if that is nearer.
Edge::Over nearer(std::uint32_t iteration, std::uint32_t count, std::int32_t& value) {
  const bool is_first_half = 2 * iteration < count;
  value = static_cast<std::int32_t>(is_first_half ? iteration : count - 1 - iteration);
  return is_first_half ? Edge::Over::from_start : Edge::Over::from_end;
}

/// Writes dependencies relative to loops.
class Relations {
 public:
  Relations(const Program& program, const Words& words, const std::vector<Location>& locations) : words_(words) {
    std::map<Ends, std::set<std::int32_t>> differences, sums;
    const auto note = [&](const Location& to, const Location& from) {
      if (!both_in_layers(to, from)) return;
      const Ends ends = ends_of(to, from);
      differences[ends].insert(static_cast<std::int32_t>(from.iteration) - static_cast<std::int32_t>(to.iteration));
      sums[ends].insert(static_cast<std::int32_t>(from.iteration + to.iteration));
    };
    for (std::uint32_t k = 0; k < locations.size(); ++k) {
      for (const auto source : program.dependencies[k]) note(locations[k], locations[source]);
      for (const ProgramTensor& tensor : program.held[k]) note(locations[k], locations[tensor.maker]);
    }
    for (const auto& [ends, found] : differences)
      if (ends[0] != ends[2] && sums.at(ends).size() < found.size()) mirrored_.insert(ends);
  }

  Edge edge(const Location& to, const Location& from) const {
    Edge edge{.token = from.token, .offset = from.offset};
    over_micro_batches(to, from, edge);
    over_layers(to, from, edge);
    return edge;
  }

 private:
  bool both_in_layers(const Location& to, const Location& from) const {
    return words_.tokens[to.token].is_layers && words_.tokens[from.token].is_layers;
  }

  void over_micro_batches(const Location& to, const Location& from, Edge& edge) const {
    const Words::Token& source = words_.tokens[from.token];
    const std::uint32_t times = source.per_micro_batch, own = words_.tokens[to.token].per_micro_batch;
    if (times == 0) {
      edge.micro_batches = Edge::Over::from_start;  // the number of its occurrences stays
      edge.micro_batch = static_cast<std::int32_t>(from.occurrence);
    } else if (own > 0) {
      edge.micro_batches = Edge::Over::relative;
      edge.micro_batch =
          static_cast<std::int32_t>(from.occurrence / times) - static_cast<std::int32_t>(to.occurrence / own);
      edge.part = from.occurrence % times;
    } else {
      edge.micro_batches = nearer(from.occurrence, static_cast<std::uint32_t>(source.first.size()), edge.micro_batch);
    }
  }

  void over_layers(const Location& to, const Location& from, Edge& edge) const {
    const Words::Token& source = words_.tokens[from.token];
    if (!source.is_layers) return;
    if (!words_.tokens[to.token].is_layers) {
      edge.layers = nearer(from.iteration, source.count, edge.layer);
    } else if (mirrored_.contains(ends_of(to, from))) {
      edge.layers = Edge::Over::mirrored;
      edge.layer =
          static_cast<std::int32_t>(from.iteration + to.iteration) - static_cast<std::int32_t>(source.count - 1);
    } else {
      edge.layers = Edge::Over::relative;
      edge.layer = static_cast<std::int32_t>(from.iteration) - static_cast<std::int32_t>(to.iteration);
    }
  }

  const Words& words_;
  std::set<Ends> mirrored_;
};

}  // namespace

std::vector<Location> locate(const Words& words) {
  std::vector<Location> locations;
  std::vector<std::uint32_t> seen(words.tokens.size());
  for (const auto number : words.sequence) {
    const Words::Token& token = words.tokens[number];
    const std::uint32_t occurrence = seen[number]++;
    for (std::uint32_t i = 0; i < token.count; ++i)
      for (std::uint32_t b = 0; b < token.symbols.size(); ++b) locations.push_back({number, occurrence, i, b});
  }
  return locations;
}

namespace {

/// Numbers the distinct lists of a role, and says for each occurrence of a position which one it has.
template <class List>
class Lists {
 public:
  explicit Lists(std::vector<List>& lists) : lists_(lists) {}

  void set(List list, const Token& token, const Location& at, std::vector<std::uint32_t>& table) {
    std::ranges::sort(list);
    const auto [found, added] = numbers_.try_emplace(list, static_cast<std::uint32_t>(lists_.size()));
    if (added) lists_.push_back(std::move(list));
    table.resize(std::size_t{token.occurrences} * token.count);
    table[std::size_t{at.occurrence} * token.count + at.iteration] = found->second;
  }

 private:
  std::vector<List>& lists_;
  std::map<List, std::uint32_t> numbers_;
};

}  // namespace

void learn_edges(const Program& program, const Words& words, const std::vector<Location>& locations, Role& role) {
  const Relations relations(program, words, locations);
  Lists<Edges> of_edges(role.edges);
  Lists<HeldTensors> of_held(role.held);
  const bool has_tensors = std::ranges::any_of(program.held, [](const auto& list) { return !list.empty(); });
  for (Token& token : role.tokens)
    if (has_tensors) token.held.resize(token.body.size());
  for (std::uint32_t k = 0; k < locations.size(); ++k) {
    const Location& at = locations[k];
    Edges edges;
    for (const auto source : program.dependencies[k]) edges.push_back(relations.edge(at, locations[source]));
    Token& token = role.tokens[at.token];
    of_edges.set(std::move(edges), token, at, token.edges[at.offset]);
    if (!has_tensors) continue;
    HeldTensors held;
    for (const ProgramTensor& tensor : program.held[k])
      held.push_back({relations.edge(at, locations[tensor.maker]), tensor.use, tensor.bytes});
    of_held.set(std::move(held), token, at, token.held[at.offset]);
  }
}

}  // namespace orrery::synthesis
