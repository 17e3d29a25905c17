#include "orrery/model/saved_rank.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "orrery/base/archive.hpp"
#include "orrery/base/error.hpp"
#include "parts.hpp"

namespace orrery::model {
namespace {

using checkpoint::Piece;

/// What the kernel knows of one logical process.
struct LpState {
  Time clock = Time::from_ps(-1);
  std::uint32_t depth = 0;
  std::vector<pdes::Event> events;           ///< pending
  std::vector<std::vector<std::byte>> more;  ///< [events] what network::MessageNetwork::unpack needs; or nothing

  void serialize(Archive& archive) { archive(clock, depth, events, more); }
};

std::map<LpId, LpState> by_lp(const pdes::KernelState& kernel) {
  std::map<LpId, LpState> states;
  for (const pdes::Event& event : kernel.events) states[event.target].events.push_back(event);
  for (const auto& lp : kernel.lps) {
    states[lp.id].clock = lp.clock;
    states[lp.id].depth = lp.depth;
  }
  return states;
}

/// Returns those processes from `first` to before `end` that are in use or have a pending event.
std::vector<LpId> with_pending(std::vector<LpId> used, const std::map<LpId, LpState>& states, LpId first, LpId end) {
  std::vector<LpId> all = std::move(used);
  for (auto state = states.lower_bound(first); state != states.lower_bound(end); ++state) all.push_back(state->first);
  std::ranges::sort(all);
  const auto rest = std::ranges::unique(all);
  all.erase(rest.begin(), rest.end());
  return all;
}

void add(pdes::KernelState& kernel, LpId lp, const LpState& state) {
  kernel.lps.push_back({lp, state.clock, state.depth});
  kernel.events.insert(kernel.events.end(), state.events.begin(), state.events.end());
}

}  // namespace

Rank SavedRank::host_of(LpId lp) const {
  if (lp == Piece::of_all) return Rank(0);
  if (lp < run_.first_communicator()) return run_.hosting.of_npu[lp.index()];
  if (lp < run_.first_server()) return run_.communicators[lp.index() - run_.first_communicator().index()].host;
  if (lp < run_.first_link()) return run_.hosting.of_server[lp.index() - run_.first_server().index()];
  return model_.parts_->links->host_of(lp);
}

/// Writes or reads what logical processes have summed up.
void SavedRank::serialize_sums(pdes::KernelState& kernel, Archive& archive) {
  std::uint64_t num_handled = kernel.num_handled, critical_path = kernel.critical_path;
  std::optional<Overrun> overrun = model_.overrun_;
  archive(num_handled, critical_path, overrun);
  model_.network_.serialize_sums(archive);
  parts().communicators.hosts().serialize_sums(archive);
  npu::serialize_sums(parts().npus, archive);
  if (!archive.reads()) return;
  kernel.num_handled += num_handled;
  kernel.critical_path = std::max(kernel.critical_path, critical_path);
  if (overrun) keep_earliest(model_.overrun_, *overrun);
}

/// Writes or reads what belongs to a logical process alone.
void SavedRank::serialize(LpId lp, std::span<const pdes::Event> pending, Archive& archive,
                          const npu::ResumedFrom* resumed_from) {
  if (lp < run_.first_communicator())
    npu::serialize(parts().npus, NpuId(lp.value()), archive, pending, resumed_from);
  else if (lp < run_.first_server())
    parts().communicators.hosts().serialize(GroupId(lp.value() - run_.first_communicator().value()), archive);
  else if (lp < run_.first_link())
    parts().servers.serialize(lp, lp.value() - run_.first_server().value(), archive);
  else
    parts().links->serialize(lp, archive);
}

std::vector<Piece> SavedRank::save(const pdes::KernelState& kernel) {
  std::map<LpId, LpState> states = by_lp(kernel);
  std::vector<Piece> pieces;
  const auto add = [&](LpId lp) {
    Archive archive;
    LpState& state = states[lp];
    for (const pdes::Event& event : state.events) {
      if (lp >= run_.first_server() && lp < run_.first_link())
        state.more.push_back(parts().servers.pack(event));
      else if (parts().links)
        state.more.push_back(parts().links->pack(event));
    }
    archive(state);
    serialize(lp, state.events, archive);
    pieces.push_back({lp, archive.written()});
    states.erase(lp);
  };
  for (const NpuId npu : parts().npu_ids) add(LpId(npu.value()));
  for (const GroupId group : parts().communicators.hosts().used())
    add(LpId(run_.first_communicator().value() + group.value()));
  for (const LpId server : with_pending(parts().servers.used(), states, run_.first_server(), run_.first_link()))
    add(server);
  if (parts().links)
    for (const LpId link : with_pending(parts().links->used(), states, run_.first_link(), Piece::of_all)) add(link);
  for (const auto& [lp, state] : states) ensure(state.events.empty(), "a pending event of no logical process here");
  Archive sums;
  pdes::KernelState totals{
      .now = {}, .events = {}, .lps = {}, .num_handled = kernel.num_handled, .critical_path = kernel.critical_path};
  serialize_sums(totals, sums);
  pieces.push_back({Piece::of_all, sums.written()});
  return pieces;
}

void SavedRank::keep_history() { npu::keep_history(parts().npus); }

void SavedRank::prepare(pdes::Kernel& kernel) { model_.parts_ = std::make_unique<RankModel::Parts>(model_, kernel); }

void SavedRank::restore(pdes::Kernel& kernel, Time now, std::span<const Piece> pieces) {
  pdes::KernelState all;
  all.now = now;
  for (const Piece& piece : pieces) {
    Archive archive(piece.bytes);
    if (piece.lp == Piece::of_all) {
      serialize_sums(all, archive);
    } else {
      LpState state;
      archive(state);
      for (std::size_t i = 0; i < state.more.size(); ++i) {
        if (state.more[i].empty()) continue;
        if (piece.lp >= run_.first_server() && piece.lp < run_.first_link())
          parts().servers.unpack(state.events.at(i), state.more[i]);
        else
          parts().links->unpack(state.events.at(i), state.more[i]);
      }
      add(all, piece.lp, state);
      serialize(piece.lp, state.events, archive);
    }
    ensure(archive.is_at_end(), "what was saved is longer than what is read");
  }
  kernel.restore(all);
  parts().communicators.members().resume();
}

/// Turns pending events of an NPU into those of the NPU that is resumed from it. Only events that it sends to itself,
/// and completions of its collectives, name other logical processes than representatives, which they still are.
void SavedRank::take_over(LpId lp, LpId resumed_from, std::span<pdes::Event> pending) const {
  const auto spec = std::ranges::lower_bound(run_.npus, lp, {}, &npu::NpuSpec::lp);
  ensure(spec != run_.npus.end() && spec->lp() == lp, "an NPU that is resumed on another rank");
  for (pdes::Event& event : pending) {
    event.target = lp;
    LpId source = event.source() == resumed_from ? lp : event.source();
    if (source >= run_.first_communicator()) {
      const GroupId communicator = spec->groups[spec->program->use_of_node(NodeId(event.node))];
      source = LpId(run_.first_communicator().value() + communicator.value());
    }
    event.order = pdes::Event::make_order(event.stage(), source, event.sequence());
  }
}

void SavedRank::restore(pdes::Kernel& kernel, const ResumedState& resumed) {
  prepare(kernel);
  pdes::KernelState all;
  all.now = resumed.now;
  for (const auto& [lp, index] : resumed.lps) {
    const Piece& piece = resumed.pieces[index];
    Archive archive(piece.bytes);
    if (lp == Piece::of_all) {
      serialize_sums(all, archive);
      continue;
    }
    LpState state;
    archive(state);
    if (lp < run_.first_communicator()) {
      take_over(lp, piece.lp, state.events);
      const npu::ResumedFrom resumed_from = resumed.resumed_from(NpuId(lp.value()), NpuId(piece.lp.value()));
      serialize(lp, state.events, archive, &resumed_from);
    } else {
      ensure(lp < run_.first_server() && state.events.empty(), "the state of a server or link in a split run");
      serialize(lp, state.events, archive);
    }
    add(all, lp, state);
    ensure(archive.is_at_end(), "what was saved is longer than what is read");
  }
  parts().communicators.hosts().rename_records(resumed.communicators_of);
  kernel.restore(all);
  parts().communicators.members().resume();
}

}  // namespace orrery::model
