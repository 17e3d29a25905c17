#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "orrery/collective/script.hpp"
#include "plan.hpp"
#include "steps.hpp"

namespace orrery::collective {

/// One of the two trees of a double binary tree, by place.
struct Tree {
  std::vector<std::uint32_t> parent;    ///< [places] the root's own for the root
  std::vector<std::uint32_t> children;  ///< of all places
  std::vector<std::uint32_t> first;     ///< [places + 1] into children

  Tree(std::uint32_t tree, std::uint32_t size);
  bool is_root(std::uint32_t place) const { return parent[place] == place; }
  std::uint32_t num_children(std::uint32_t place) const { return first[place + 1] - first[place]; }
};

/// A phase as its members see it.
struct ScriptPhase {
  const Axis* axis = nullptr;
  PhaseShape shape;
  const std::uint32_t* stands = nullptr;      ///< [members] line * places + place; none: the members' own numbers
  std::vector<Tree> trees;                    ///< two, of a double binary tree
  std::vector<std::pair<Bytes, Time>> costs;  ///< of reductions, by what is reduced

  std::uint32_t stand(std::uint32_t member) const { return stands == nullptr ? member : stands[member]; }
};

struct Script::Parts {
  Parts(const topology::Topology& topology, const Options& options, std::shared_ptr<const Layout> layout, Kind kind,
        Bytes size, const Schedule& schedule);

  void add_phase(const Phase& phase, const LineContext& context);
  Time reduction(const ScriptPhase& phase, Bytes reduced) const;

  std::shared_ptr<const Layout> layout;  ///< which phases point into
  Rules rules;
  Time endpoint_delay;
  std::uint64_t num_chunks = 0, places = 1;
  std::vector<Service> services;
  std::vector<std::uint32_t> queue_of;                       ///< [services]
  std::map<const Axis*, std::vector<std::uint32_t>> stands;  ///< what phases point into
  std::vector<ScriptPhase> phases;                           ///< of all routes
};

}  // namespace orrery::collective
