#include "split_classes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "orrery/fold/folding.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/run/simulation.hpp"

namespace orrery::run {
namespace {

using checkpoint::Piece;

/// Sends each piece once to each rank that needs it, and returns those that this rank needs. `ranks_of`: by the id of
/// the piece. Collective.
std::vector<Piece> dealt(const std::vector<Piece>& mine, const std::map<LpId, std::vector<Rank>>& ranks_of,
                         parallel::Communicator& world) {
  std::vector<parallel::Packer> packers(static_cast<std::size_t>(world.size()));
  for (const Piece& piece : mine)
    if (const auto ranks = ranks_of.find(piece.lp); ranks != ranks_of.end())
      for (const Rank rank : ranks->second) {
        packers[rank.index()].put(piece.lp);
        packers[rank.index()].put_all(std::span<const std::byte>(piece.bytes));
      }
  std::vector<std::vector<std::byte>> outgoing;
  outgoing.reserve(packers.size());
  for (auto& packer : packers) outgoing.push_back(packer.take());
  std::vector<Piece> pieces;
  for (const auto& bytes : world.exchange_bytes(outgoing))
    for (parallel::Unpacker unpacker(bytes); !unpacker.empty();) {
      const auto lp = unpacker.get<LpId>();
      pieces.push_back({lp, unpacker.get_all<std::byte>()});
    }
  return pieces;
}

/// Says who takes over what in a folding that refines another one.
class Succession {
 public:
  Succession(const fold::Folding& folding, const fold::Origins& origins, LpId first_communicator)
      : folding_(folding),
        origins_(origins),
        first_communicator_(first_communicator.value()),
        communicators_of_(folding.successors(origins)) {}

  /// Returns the ranks that need the state of each logical process of the run before.
  std::map<LpId, std::vector<Rank>> ranks() const {
    std::map<LpId, std::vector<Rank>> ranks{{Piece::of_all, {Rank(0)}}};
    for (const auto npu : folding_.classes().representatives)
      ranks[before(NpuId(npu))].push_back(folding_.host_of_npu()[npu]);
    for (std::uint32_t group = 0; group < communicators_of_.size(); ++group)
      for (const GroupId communicator : communicators_of_[group])
        ranks[lp(GroupId(group))].push_back(folding_.communicators()[communicator.index()].host);
    for (auto& [lp, all] : ranks) {
      std::ranges::sort(all);
      const auto rest = std::ranges::unique(all);
      all.erase(rest.begin(), rest.end());
    }
    return ranks;
  }

  /// Returns which logical processes of this rank take over which of these pieces.
  std::vector<model::ResumedState::Lp> lps(const std::vector<Piece>& pieces, Rank here) const {
    std::vector<model::ResumedState::Lp> lps;
    std::map<LpId, std::size_t> index;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].lp == Piece::of_all)
        lps.push_back({Piece::of_all, i});
      else
        index.emplace(pieces[i].lp, i);
    for (const npu::NpuSpec& npu : folding_.npus()) lps.push_back({npu.lp(), index.at(before(npu.id))});
    for (std::uint32_t group = 0; group < communicators_of_.size(); ++group)
      if (const auto piece = index.find(lp(GroupId(group))); piece != index.end())
        for (const GroupId communicator : communicators_of_[group])
          if (folding_.communicators()[communicator.index()].host == here)
            lps.push_back({lp(communicator), piece->second});
    return lps;
  }

  const std::vector<std::vector<GroupId>>& communicators_of() const { return communicators_of_; }

 private:
  LpId before(NpuId npu) const { return LpId(origins_.representative_of(npu).value()); }
  LpId lp(GroupId communicator) const { return LpId(first_communicator_ + communicator.value()); }

  const fold::Folding& folding_;
  const fold::Origins& origins_;
  std::uint32_t first_communicator_;
  std::vector<std::vector<GroupId>> communicators_of_;
};

/// Returns the NPUs that this rank simulates from now on, and those that have represented them, as they are in the run
/// that is not folded. Collective.
std::map<NpuId, npu::NpuSpec> npus_before_and_after(Preparation& preparation, const fold::Origins& origins,
                                                    parallel::Communicator& world) {
  std::vector<NpuId> needed;
  for (const npu::NpuSpec& npu : preparation.folding()->npus()) {
    needed.push_back(npu.id);
    needed.push_back(origins.representative_of(npu.id));
  }
  std::ranges::sort(needed);
  const auto repeated = std::ranges::unique(needed);
  needed.erase(repeated.begin(), repeated.end());
  std::map<NpuId, npu::NpuSpec> npus;
  world.agree([&] {
    for (auto& npu : preparation.unfolded(needed)) npus.emplace(npu.id, std::move(npu));
  });
  return npus;
}

/// Returns what says how NPUs take over states. Collective.
std::function<npu::ResumedFrom(NpuId, NpuId)> find_resumed_from(Preparation& preparation, fold::Origins origins,
                                                                parallel::Communicator& world) {
  struct Known {
    Known(fold::Origins its, std::map<NpuId, npu::NpuSpec> of_run,
          std::span<const communicator::CommunicatorSpec> communicators)
        : origins(std::move(its)), npus(std::move(of_run)), awaited(origins.class_of, communicators) {}
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;

    fold::Origins origins;
    std::map<NpuId, npu::NpuSpec> npus;
    fold::AwaitedNpus awaited;
  };
  auto npus = npus_before_and_after(preparation, origins, world);
  const auto known = std::make_shared<Known>(std::move(origins), std::move(npus), preparation.communicators());
  return [known](NpuId resumed, NpuId from) {
    return npu::ResumedFrom{known->npus.at(from), [known, &npu = known->npus.at(resumed)](NodeId node, NpuId last) {
                              return known->awaited.of(npu, node, last);
                            }};
  };
}

}  // namespace

std::optional<model::ResumedState> split_classes(Preparation& preparation,
                                                 std::span<const communicator::Divergence> divergences,
                                                 const model::ResumedState* from, const config::RunOptions& options,
                                                 parallel::Communicator& world) {
  Time first = Time::max();
  for (const auto& divergence : divergences) first = std::min(first, divergence.last_arrival);
  // The ids of memory servers follow those of communicators, whose number changes.
  if (first == Time::zero() || preparation.system().memory.num_servers() > 0) {
    preparation.fold_again(divergences, world);
    preparation.note_split({});
    return {};
  }
  model::ResumedState result;
  result.now = first - Time::from_ps(1);
  config::RunOptions quiet = options;
  quiet.progress = config::Progress::none;
  const auto mine =
      Simulation(preparation, quiet, {}, world, nullptr, {.from = from, .limit = result.now}).state_at_limit();
  fold::Origins origins = preparation.folding()->origins();
  const LpId first_communicator = preparation.run_context().first_communicator();
  preparation.fold_again(divergences, world);
  if (!preparation.folding()->refines(origins)) {
    preparation.note_split({});
    return {};
  }
  preparation.note_split(fold::EarlierClasses{static_cast<std::uint32_t>(origins.representatives.size()), result.now});
  const Succession succession(*preparation.folding(), origins, first_communicator);
  result.pieces = dealt(mine, succession.ranks(), world);
  result.lps = succession.lps(result.pieces, world.rank());
  result.communicators_of = succession.communicators_of();
  result.resumed_from = find_resumed_from(preparation, std::move(origins), world);
  return result;
}

}  // namespace orrery::run
