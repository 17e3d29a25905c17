#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collective_sequence.hpp"
#include "common_order.hpp"
#include "member_account.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

/// The collectives of one NPU in one group, in few numbers that show whether members may disagree.
struct Digest {
  std::uint32_t group = 0;
  std::uint32_t npu = 0;
  std::uint64_t count = 0;
  std::uint64_t contents = 0, order = 0;  ///< as of a Sequence

  bool same_contents(const Digest& other) const { return count == other.count && contents == other.contents; }
};

/// Two members of a group that disagree, or may disagree if it is about the order alone.
struct Dispute {
  std::uint32_t group = 0;
  std::uint32_t first = 0, second = 0;
  bool about_order = false;

  auto operator<=>(const Dispute&) const = default;
};

/// Sends the digest of each member to the rank that hosts the group. Returns those that come here, by group and NPU.
/// Collective.
std::vector<Digest> exchange_digests(const Subject& subject, Sequences& sequences, parallel::Communicator& world) {
  std::vector<std::vector<Digest>> outgoing(static_cast<std::size_t>(world.size()));
  for (const auto& npu : subject.run.npus) {
    const auto& of_npu = sequences.of(npu);
    for (std::size_t use = 0; use < npu.groups.size(); ++use) {
      const auto& [nodes, contents, order] = of_npu[use];
      if (nodes.empty()) continue;
      const auto& spec = subject.run.communicators[npu.groups[use].index()];
      outgoing[spec.host.index()].push_back({spec.id.value(), npu.id.value(), nodes.size(), contents, order});
    }
  }
  std::vector<Digest> mine;
  for (const auto& part : world.exchange(outgoing)) mine.insert(mine.end(), part.begin(), part.end());
  std::ranges::sort(mine, {}, [](const Digest& digest) { return std::tie(digest.group, digest.npu); });
  return mine;
}

/// Finds the disputes of the groups that this rank hosts.
class DisputeSearch {
 public:
  DisputeSearch(const Subject& subject, const std::vector<char>& checked) : subject_(subject), checked_(checked) {}

  std::vector<Dispute> run(std::span<const Digest> digests) {
    for (auto first = digests.begin(); first != digests.end();) {
      const auto last = std::find_if(first, digests.end(), [&](const Digest& d) { return d.group != first->group; });
      look_at(std::span(first, last));
      first = last;
    }
    return std::move(disputes_);
  }

 private:
  /// Adds the disputes of one group: one for each member that differs in a new way from the lowest member, and for the
  /// order also from the member before it.
  void look_at(std::span<const Digest> digests) {
    const Digest& first = digests.front();
    std::set<std::pair<std::uint64_t, std::uint64_t>> known = {{first.contents, first.order}};
    const Digest* previous = nullptr;
    for (const Digest& digest : digests) {
      if (!known.emplace(digest.contents, digest.order).second) continue;
      const bool about_order = digest.same_contents(first);
      disputes_.push_back({first.group, first.npu, digest.npu, about_order});
      if (!about_order) continue;
      if (previous != nullptr) disputes_.push_back({first.group, previous->npu, digest.npu, true});
      previous = &digest;
    }
    if (const auto absent = absent_member(digests)) disputes_.push_back({first.group, first.npu, *absent, false});
  }

  /// Returns the first checked member without a digest, which has no collective in the group.
  std::optional<std::uint32_t> absent_member(std::span<const Digest> digests) const {
    const auto& members = subject_.run.communicators[digests.front().group].group->members;
    const auto size = members.empty() ? checked_.size() : members.size();
    if (digests.size() == size) return {};
    std::set<std::uint32_t> present;
    for (const Digest& digest : digests) present.insert(digest.npu);
    for (std::size_t i = 0; i < size; ++i) {
      const auto npu = members.empty() ? static_cast<std::uint32_t>(i) : members[i].value();
      if (checked_[npu] && !present.contains(npu)) return npu;
    }
    return {};
  }

  const Subject& subject_;
  const std::vector<char>& checked_;
  std::vector<Dispute> disputes_;
};

/// Returns the first node that `account` has more often than `other`.
const MemberAccount::Node* surplus(const MemberAccount& account, const MemberAccount& other) {
  std::map<std::uint64_t, std::size_t> left;
  for (const auto& node : other.nodes) ++left[node.label];
  for (const auto& node : account.nodes)
    if (left[node.label]-- == 0) return &node;
  return nullptr;
}

Error other_contents(const std::string& group, const MemberAccount& a, const MemberAccount& b) {
  const auto *mine = surplus(a, b), *theirs = surplus(b, a);
  std::string text;
  const auto say = [&](const MemberAccount& member, const MemberAccount::Node* node, const MemberAccount& other) {
    if (node != nullptr)
      text += fmt::format("{}NPU {} has {}, which NPU {} has {}", text.empty() ? "" : "; ", member.npu, node->text(),
                          other.npu, other.nodes.empty() ? "not, nor any other" : "not, or not as often");
  };
  say(a, mine, b);
  say(b, theirs, a);
  return {ErrorCode::bad_input, theirs != nullptr ? b.place(theirs) : a.place(mine),
          fmt::format("the members of {} disagree on their collectives: {}", group, text),
          "the same kinds and sizes in the same order on all members", "Correct the traces."};
}

Error other_order(const std::string& group, const MemberAccount& a, const MemberAccount& b,
                  const std::vector<Before>& circle) {
  std::string text;
  const MemberAccount::Node* shown = nullptr;
  for (const Before& before : circle) {
    const MemberAccount& member = before.of_second_member ? b : a;
    const auto &first = member.nodes[before.first], &then = member.nodes[before.then];
    if (before.of_second_member) shown = &first;
    text += fmt::format("{}NPU {} has {} before {}", text.empty() ? "" : "; ", member.npu, first.text(), then.text());
  }
  return {ErrorCode::bad_input, b.place(shown),
          fmt::format("the members of {} disagree on the order of their collectives: {}", group, text),
          "dependencies that leave one order for all members", "Correct the dependencies in the traces."};
}

/// Adds a fault for each dispute, but one at most for a member of a group. If some order suits both members, there
/// is no fault here: the run compares the order in which they come.
void add_faults(const Subject& subject, const std::vector<Dispute>& disputes,
                const std::map<MemberOfGroup, MemberAccount>& accounts, Faults& faults) {
  std::set<MemberOfGroup> told;
  for (const Dispute& dispute : disputes) {
    if (told.contains({dispute.group, dispute.second})) continue;
    const std::string group = trace::describe(*subject.run.communicators[dispute.group].group);
    const auto& a = accounts.at({dispute.group, dispute.first});
    const auto& b = accounts.at({dispute.group, dispute.second});
    std::vector<Before> circle;
    if (dispute.about_order) circle = find_contradiction(a.calls, b.calls);
    if (dispute.about_order && circle.empty()) continue;
    faults.add(dispute.about_order ? other_order(group, a, b, circle) : other_contents(group, a, b));
    told.emplace(dispute.group, dispute.second);
  }
}

/// Adds a fault on rank 0 for each way in which a member of a group differs from the first one. O(nodes) for each
/// structure and one exchange; a member's graph goes to rank 0 if its nodes come in another order than those of the
/// first member.
void check_collectives(const Subject& subject, parallel::Communicator& world, Findings findings) {
  if (subject.run.options.replay_only || !subject.readable.groups) return;
  const auto checked = checked_npus(subject, world);
  const bool goes_over_links = subject.run.options.goes_over_links();
  Sequences sequences(!goes_over_links && subject.run.engine.rules().uneven_all_to_all);
  const auto digests = exchange_digests(subject, sequences, world);
  const auto here = DisputeSearch(subject, checked).run(digests);
  auto disputes = world.all_gather(std::span<const Dispute>(here));
  if (disputes.empty()) return;
  std::ranges::sort(disputes);
  std::map<MemberOfGroup, bool> wanted;
  for (const Dispute& dispute : disputes)
    for (const auto npu : {dispute.first, dispute.second}) {
      bool& with_graph = wanted[{dispute.group, npu}];
      with_graph = with_graph || dispute.about_order;
    }
  const auto accounts = gather_accounts(subject, wanted, sequences, world);
  if (world.is_root()) add_faults(subject, disputes, accounts, findings.faults);
}

}  // namespace

Check collectives() {
  return {"collectives", "members of a group do other collectives, or do them in an order that cannot suit all",
          Check::Collective(check_collectives)};
}

}  // namespace orrery::check
