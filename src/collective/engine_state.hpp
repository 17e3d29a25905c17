#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "expert_layout.hpp"
#include "group_layout.hpp"
#include "library_collectives.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/collective/message_program.hpp"
#include "plan.hpp"

namespace orrery::collective {

/// One collective. Layouts are shared, so their address names a class of communicators that behave alike.
struct CollectiveKey {
  const GroupLayout* layout = nullptr;
  Kind kind = Kind::all_reduce;
  Bytes size;
  Turn turn = {};

  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;

  struct Hash {
    std::size_t operator()(const CollectiveKey& key) const noexcept {
      std::size_t seed = std::hash<const void*>{}(key.layout) +
                         static_cast<std::size_t>(key.kind) * 0x9E3779B97F4A7C15U + key.turn.digits;
      return (seed ^ (seed >> 32)) * 0xBF58476D1CE4E5B9U + std::hash<std::uint64_t>{}(key.size.count());
    }
  };
};

template <class Value>
using OfCollectives = std::unordered_map<CollectiveKey, Value, CollectiveKey::Hash>;

/// Values of collectives, which forgets all of them when they take too much memory: a workload in which no two
/// collectives are alike must not fill it. Results do not depend on what is kept.
template <class Value>
class BoundedMemo {
 public:
  bool empty() const { return values_.empty(); }
  /// Returns the value of a collective; null if it is not known.
  Value* find(const CollectiveKey& key) {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  /// Keeps a value that takes about so many bytes.
  Value& add(const CollectiveKey& key, Value value, std::size_t bytes) {
    if (bytes_ + bytes > most_bytes) {
      values_.clear();
      bytes_ = 0;
    }
    bytes_ += bytes;
    return values_.emplace(key, std::move(value)).first->second;
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{128} << 20U;

  OfCollectives<Value> values_;
  std::size_t bytes_ = 0;
};

/// A plan, and the completions that it gives members that arrive together.
struct KnownPlan {
  Plan plan;
  std::vector<Ps> relative;  ///< time from arrival to completion of each member; empty until asked for
};

/// What an engine computes with, and what it has computed. For groups of two members or more.
struct Engine::State {
  State(const network::DelayModel& of, Options with) : delays(of), options(std::move(with)) {}

  // ---- Who carries a collective out ----
  bool has_library() const { return options.library.library.has_value(); }
  /// Returns what carries out a collective in place of algorithms, besides libraries; none if nothing does.
  std::optional<std::string> carrier(const GroupLayout& layout, Kind kind, Bytes size) const;
  /// Returns whether all members complete a fixed time after the last arrival.
  bool is_whole(const GroupLayout& layout, Kind kind, Bytes size) const {
    return has_library() || is_of_experts(kind) || (options.custom.whole && carrier(layout, kind, size));
  }

  // ---- Times. Memoised ----
  KnownPlan& plan(const GroupLayout& layout, Kind kind, Bytes size, Turn turn);
  /// Returns the completions of members that arrive together at 0 and do not complete together.
  const std::vector<Ps>& relative(KnownPlan& known, std::size_t num_members);
  void finish_unequal(const KnownPlan& known, std::span<const Time> arrivals, Time first, std::span<Time> completions);
  ExpertTime expert_time(const GroupLayout& layout, Bytes size) const;
  /// Returns what a collective takes from its last arrival by the library's figures; max() if that does not fit.
  Time library_duration(const GroupLayout& layout, Kind kind, Bytes size);
  Time minimum_duration(const GroupLayout& layout);

  // ---- Messages. Memoised ----
  /// Returns the mean bytes that a member sends in each dimension.
  const CollectiveTraffic& traffic(const GroupLayout& layout, Kind kind, Bytes size);
  std::shared_ptr<const MessageProgram> program(const GroupLayout& layout, Kind kind, Bytes size, Turn turn);

  network::DelayModel delays;
  Options options;
  LibraryCollectives library{delays, options};

  std::unordered_map<std::size_t, std::vector<std::shared_ptr<const GroupLayout>>> layouts;  ///< layouts by hash
  std::unordered_map<const GroupLayout*, std::vector<NpuId>> first_members;                  ///< with Options::whole
  BoundedMemo<KnownPlan> plans;
  OfCollectives<Time> library_durations;
  std::unordered_map<const GroupLayout*, Time> minimum_durations;
  OfCollectives<CollectiveTraffic> traffics;
  BoundedMemo<std::shared_ptr<const MessageProgram>> programs;

  Workspace workspace;                    ///< memory of the call in progress
  std::vector<Ps> arrivals, completions;  ///< likewise

 private:
  Time computed_minimum_duration(const GroupLayout& layout) const;
  CollectiveTraffic computed_traffic(const GroupLayout& layout, Kind kind, Bytes size);
  std::shared_ptr<const MessageProgram> made_program(const GroupLayout& layout, Kind kind, Bytes size, Turn turn);
};

}  // namespace orrery::collective
