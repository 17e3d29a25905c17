#include "orrery/fold/equivalence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "mpi_world.hpp"

namespace orrery::fold {
namespace {

/// A signature graph in the making: the signature of each NPU, groups by members with the use of each, streams by both
/// ends.
class Builder {
 public:
  explicit Builder(std::vector<std::uint32_t> signatures)
      : signatures_(std::move(signatures)), uses_(signatures_.size()), streams_(signatures_.size()) {}

  /// Adds a group of members (npu, use). In the end each NPU must have all uses from 0 on.
  Builder& group(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members, std::uint32_t layout = 0,
                 bool together = true) {
    const auto id = static_cast<std::uint32_t>(groups_.size());
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      auto& uses = uses_[members[i].first];
      if (uses.size() <= members[i].second) uses.resize(members[i].second + 1);
      uses[members[i].second] = {id, i};
    }
    groups_.push_back({members, layout, together});
    return *this;
  }
  Builder& group_of(const std::vector<std::uint32_t>& npus, std::uint32_t use = 0, bool together = true) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
    for (const auto npu : npus) members.emplace_back(npu, use);
    return group(members, 0, together);
  }
  /// Makes stream `s` of NPU `a` the other end of stream `t` of NPU `b`.
  Builder& stream(std::uint32_t a, std::uint32_t s, std::uint32_t b, std::uint32_t t) {
    set(a, s, {b, t});
    set(b, t, {a, s});
    return *this;
  }

  SignatureGraph graph() const {
    SignatureGraph result;
    result.signature_of_npu = signatures_;
    result.first_member = result.first_membership = result.first_stream = {0};
    for (const auto& group : groups_) {
      for (const auto& [npu, use] : group.members) result.members.push_back({npu, use});
      result.first_member.push_back(result.members.size());
      result.layouts.push_back(group.layout);
      result.completes_together.push_back(group.together);
    }
    for (std::size_t npu = 0; npu < signatures_.size(); ++npu) {
      result.memberships.insert(result.memberships.end(), uses_[npu].begin(), uses_[npu].end());
      result.first_membership.push_back(result.memberships.size());
      result.streams.insert(result.streams.end(), streams_[npu].begin(), streams_[npu].end());
      result.first_stream.push_back(result.streams.size());
    }
    return result;
  }
  EquivalenceClasses classes() const { return refine(graph()); }

 private:
  struct Group {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
    std::uint32_t layout;
    bool together;
  };
  void set(std::uint32_t npu, std::uint32_t s, SignatureGraph::StreamEnd stream) {
    if (streams_[npu].size() <= s) streams_[npu].resize(s + 1);
    streams_[npu][s] = stream;
  }

  std::vector<std::uint32_t> signatures_;
  std::vector<std::vector<SignatureGraph::Membership>> uses_;
  std::vector<std::vector<SignatureGraph::StreamEnd>> streams_;
  std::vector<Group> groups_;
};

using Numbers = std::vector<std::uint32_t>;

// Eight equal NPUs are in two groups of four. All NPUs are one class, and so are the groups.
TEST(Refinement, NpusOfEqualGroupsAreOneClass) {
  const auto classes = Builder({0, 0, 0, 0, 0, 0, 0, 0}).group_of({0, 1, 2, 3}).group_of({4, 5, 6, 7}).classes();
  EXPECT_EQ(classes.of_npu, Numbers(8, 0));
  EXPECT_EQ(classes.of_group[0], classes.of_group[1]);
  EXPECT_EQ(classes.sizes, std::vector<std::uint64_t>{8});
}

// Four equal NPUs are in two groups of different layouts. The NPUs of each group are a class.
TEST(Refinement, LayoutsOfGroupsTellApart) {
  const auto classes = Builder({0, 0, 0, 0}).group({{0, 0}, {1, 0}}, 0).group({{2, 0}, {3, 0}}, 1).classes();
  EXPECT_EQ(classes.of_npu, (Numbers{0, 0, 1, 1}));
  EXPECT_EQ(classes.by_members, 1U);
}

// There are two groups of four, and NPU 0 has a signature of its own. The members of its group are a class each, as
// each is at another position from NPU 0. The members of the other group are one class.
TEST(Refinement, OneOtherMemberSplitsItsGroup) {
  const auto classes = Builder({1, 0, 0, 0, 0, 0, 0, 0}).group_of({0, 1, 2, 3}).group_of({4, 5, 6, 7}).classes();
  EXPECT_EQ(classes.of_npu, (Numbers{0, 1, 2, 3, 4, 4, 4, 4}));
  EXPECT_EQ(classes.by_members, 3U);
}

// Two groups of three equal NPUs do not complete together. NPUs at the same position are a class.
TEST(Refinement, PositionsCountWhereMembersDoNotCompleteTogether) {
  const auto classes =
      Builder({0, 0, 0, 0, 0, 0}).group_of({0, 1, 2}, 0, false).group_of({5, 4, 3}, 0, false).classes();
  EXPECT_EQ(classes.of_npu, (Numbers{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(classes.by_position, 2U);
}

// Six NPUs send to the next one. In an open chain, whose ends have signatures of their own, each NPU is a class, by its
// distance from the ends. In a closed ring all NPUs are one class.
TEST(Refinement, StagesOfAPipeline) {
  Builder open({0, 1, 1, 1, 1, 2}), closed(Numbers(6, 0));
  for (std::uint32_t i = 0; i < 5; ++i) open.stream(i, i == 0 ? 0 : 1, i + 1, 0);
  for (std::uint32_t i = 0; i < 6; ++i) closed.stream(i, 1, (i + 1) % 6, 0);
  EXPECT_EQ(open.classes().of_npu, (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(open.classes().by_messages, 3U);
  EXPECT_EQ(closed.classes().count(), 1U);
}

// Four NPUs send two streams each to two of four others. NPUs 0 and 1 send their first stream into the first stream of
// a peer, NPUs 2 and 3 into the second one: they are two classes, though all peers have one signature.
TEST(Refinement, StreamsOfThePeerTellApart) {
  Builder builder({0, 0, 0, 0, 1, 1, 1, 1});
  builder.stream(0, 0, 4, 0).stream(0, 1, 5, 1).stream(1, 0, 5, 0).stream(1, 1, 4, 1);  // first to first
  builder.stream(2, 0, 6, 1).stream(2, 1, 7, 0).stream(3, 0, 7, 1).stream(3, 1, 6, 0);  // first to second
  EXPECT_EQ(builder.classes().of_npu, (Numbers{0, 0, 1, 1, 2, 2, 3, 3}));
}

// Five NPUs in a ring of five groups: NPU i is in a group with i + 1 by its first use and with i - 1 by its second. All
// are one class. When one group lists its members in the other order, each NPU is a class.
TEST(Refinement, OverlappingGroups) {
  Builder builder(Numbers(5, 0));
  for (std::uint32_t i = 0; i < 5; ++i) builder.group({{i, 0}, {(i + 1) % 5, 1}});
  EXPECT_EQ(builder.classes().count(), 1U);
  Builder turned(Numbers(5, 0));
  for (std::uint32_t i = 0; i < 4; ++i) turned.group({{i, 0}, {i + 1, 1}});
  turned.group({{0, 1}, {4, 0}});
  EXPECT_EQ(turned.classes().count(), 5U);
}

// Two groups of four, each with one member of another signature. If every position has its own number, the other
// members are three classes. If the algorithms give all positions one number, they are one class.
TEST(Refinement, PositionsThatAlgorithmsDoNotTellApart) {
  auto graph = Builder({1, 0, 0, 0, 1, 0, 0, 0}).group_of({0, 1, 2, 3}).group_of({4, 5, 6, 7}).graph();
  EXPECT_EQ(refine(graph).of_npu, (Numbers{0, 1, 2, 3, 0, 1, 2, 3}));
  graph.positions_among = [](std::uint32_t, std::span<const std::uint32_t> labels) {
    return Numbers(labels.size(), 0);
  };
  EXPECT_EQ(refine(graph).of_npu, (Numbers{0, 1, 1, 1, 0, 1, 1, 1}));
}

// A group of six whose positions repeat with period two as long as there are two labels. Groups with NPUs of other
// signatures tell NPU 4 from 0 and 2: then there are three labels, all positions count, and each NPU is a class.
TEST(Refinement, PositionsAreNumberedAgain) {
  Builder builder({0, 1, 0, 1, 0, 1, 2, 3, 3});
  builder.group_of({0, 1, 2, 3, 4, 5}).group({{6, 0}, {4, 1}}).group({{7, 0}, {0, 1}}).group({{8, 0}, {2, 1}});
  auto graph = builder.graph();
  graph.positions_among = [](std::uint32_t, std::span<const std::uint32_t> labels) {
    Numbers positions(labels.size());
    const auto period = std::ranges::max(labels) > 1 ? static_cast<std::uint32_t>(labels.size()) : 2U;
    for (std::uint32_t i = 0; i < labels.size(); ++i) positions[i] = i % period;
    return positions;
  };
  EXPECT_EQ(refine(graph).of_npu, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

// One of four members differs. The others are one class if equal members are taken to complete together, until it is
// known that the third member does not complete with the second and the fourth.
TEST(Refinement, EqualMembersAreTakenToCompleteTogether) {
  Builder builder({0, 1, 1, 1});
  builder.group_of({0, 1, 2, 3});
  auto graph = builder.graph();
  EXPECT_EQ(refine(graph).of_npu, (Numbers{0, 1, 2, 3}));
  graph.assumes_completing_together = true;
  EXPECT_EQ(refine(graph).of_npu, (Numbers{0, 1, 1, 1}));
  graph.divergences = {{1}, {{}, {0, 5, 9, 5}}};
  EXPECT_EQ(refine(graph).of_npu, (Numbers{0, 1, 2, 1}));
}

// Seven pairs, NPUs i and 7 + i. Other groups tell the first NPU of pairs 0 to 2 apart, and at the same time the second
// one of pairs 3 to 5. So pair 6 is unlike all others, although there are more of each of these.
TEST(Refinement, WhatIsNotLookedAtAgainIsNoPartOfALargerFragment) {
  Numbers signatures(28);
  for (std::uint32_t i = 0; i < 7; ++i) {
    signatures[7 + i] = 1;
    signatures[14 + i] = i < 3 ? 2 : 3;
    signatures[21 + i] = 3 <= i && i < 6 ? 4 : 5;
  }
  Builder builder(signatures);
  for (std::uint32_t i = 0; i < 7; ++i)
    builder.group_of({i, 7 + i}).group({{14 + i, 0}, {i, 1}}).group({{21 + i, 0}, {7 + i, 1}});
  auto graph = builder.graph();
  graph.assumes_completing_together = true;
  const auto classes = refine(graph).of_npu;
  EXPECT_EQ(classes[7], classes[9]);
  EXPECT_NE(classes[7], classes[13]);
  EXPECT_EQ(classes[3], classes[5]);
  EXPECT_NE(classes[3], classes[6]);
}

/// Computes every signature anew until the number of classes stays the same: slow and plain.
Numbers plain_classes(const SignatureGraph& in) {
  using Signature = std::vector<std::uint64_t>;
  std::vector<std::uint64_t> npus(in.signature_of_npu.begin(), in.signature_of_npu.end()), groups(in.num_groups(), 0);
  std::size_t before = 0;
  const auto number = [](const std::vector<Signature>& signatures, std::vector<std::uint64_t>& numbers) {
    std::map<Signature, std::uint64_t> known;
    for (std::size_t i = 0; i < signatures.size(); ++i)
      numbers[i] = known.try_emplace(signatures[i], known.size()).first->second;
    return known.size();
  };
  for (;;) {
    std::vector<Signature> of_groups, of_npus;
    std::vector<bool> positions_matter;
    for (std::uint32_t g = 0; g < in.num_groups(); ++g) {
      Signature signature = {in.layouts[g]};
      const bool is_told_apart = !in.completes_together[g] || in.divergences.of(g) != 0;
      bool is_mixed = is_told_apart;
      for (const auto& member : in.members_of(g)) {
        signature.push_back(npus[member.npu]);
        signature.push_back(member.use);
        is_mixed = is_mixed || npus[member.npu] != signature[1] || member.use != signature[2];
      }
      if (!is_mixed) signature.resize(3);
      positions_matter.push_back(is_told_apart || (is_mixed && !in.assumes_completing_together));
      signature.push_back(is_mixed);
      signature.push_back(in.divergences.of(g));
      of_groups.push_back(signature);
    }
    number(of_groups, groups);
    for (std::uint32_t i = 0; i < in.num_npus(); ++i) {
      Signature signature = {npus[i]};
      for (const auto& membership : in.memberships_of(i)) {
        signature.push_back(groups[membership.group]);
        const auto diverging = in.divergences.of(membership.group);
        signature.push_back(!positions_matter[membership.group] ? 1000
                            : diverging == 0                    ? membership.position
                                             : in.divergences.labels[diverging][membership.position]);
      }
      for (const auto& stream : in.streams_of(i)) {
        signature.push_back(npus[stream.peer]);
        signature.push_back(stream.stream);
      }
      of_npus.push_back(signature);
    }
    const auto count = number(of_npus, npus);
    if (count == before) break;
    before = count;
  }
  return {npus.begin(), npus.end()};
}

/// Groups along two directions of a grid and streams along the third, with a few NPUs and groups that differ.
SignatureGraph random_graph(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t a = 1 + draw(5), b = 1 + draw(5), c = 1 + draw(6), n = a * b * c;
  const std::uint32_t odds = draw(2) == 0 ? 20 * n : 1 + n / 2;
  const auto rarely = [&] { return draw(odds) == 0; };
  Numbers signatures(n, 0);
  if (draw(2) == 0)  // planes, as the stages of a pipeline
    for (std::uint32_t i = 0; i < n; ++i) signatures[i] = std::min(i / (a * b), 1 + draw(2) / 2);
  for (auto& signature : signatures)
    if (rarely()) signature = 2;
  Builder builder(signatures);
  for (std::uint32_t k = 0; k < b * c; ++k) {
    std::vector<std::uint32_t> line(a);
    for (std::uint32_t i = 0; i < a; ++i) line[i] = k * a + i;
    if (rarely()) std::ranges::reverse(line);
    builder.group_of(line, 0, !rarely());
  }
  for (std::uint32_t k = 0; k < a * c; ++k) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> line;
    for (std::uint32_t i = 0; i < b; ++i) line.emplace_back(k / a * a * b + k % a + i * a, 1);
    builder.group(line, rarely());
  }
  for (std::uint32_t i = 0; i < n; ++i) builder.stream(i, 1, (i + a * b) % n, 0);
  SignatureGraph graph = builder.graph();
  graph.assumes_completing_together = draw(2) == 0;
  if (draw(4) > 0) return graph;
  graph.divergences.labels.emplace_back();
  for (std::uint32_t g = 0; g < graph.num_groups(); ++g) {
    graph.divergences.of_group.push_back(draw(4) > 0 ? 0 : g + 1);
    auto& labels = graph.divergences.labels.emplace_back();
    for (std::size_t i = 0; i < graph.members_of(g).size(); ++i) labels.push_back(draw(2));
  }
  return graph;
}

// 3,000 random graphs are refined. The classes are those of a plain refinement, and the causes add up to the number of
// classes.
TEST(Refinement, AgreesWithPlainRefinement) {
  std::size_t fewer = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const auto graph = random_graph(seed);
    const auto plain = plain_classes(graph);
    const auto classes = refine(graph);
    std::map<std::uint32_t, std::uint32_t> there, back;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(there.try_emplace(classes.of_npu[i], plain[i]).first->second, plain[i]) << seed << " " << i;
      ASSERT_EQ(back.try_emplace(plain[i], classes.of_npu[i]).first->second, classes.of_npu[i]) << seed << " " << i;
    }
    fewer += classes.count() < plain.size() && classes.count() > 1;
    std::map<std::uint32_t, bool> initial;
    for (const auto signature : graph.signature_of_npu) initial[signature] = true;
    EXPECT_EQ(classes.count(), initial.size() + classes.by_members + classes.by_position + classes.by_messages) << seed;
  }
  EXPECT_GT(fewer, 500U);
}

/// Returns what rank `rank` of `num_ranks` has of a graph: contiguous blocks of NPUs and of groups.
SignatureGraph part_of(const SignatureGraph& graph, std::uint32_t rank, std::uint32_t num_ranks) {
  SignatureGraph part;
  part.signature_of_npu = graph.signature_of_npu;
  part.layouts = graph.layouts;
  part.completes_together = graph.completes_together;
  part.assumes_completing_together = graph.assumes_completing_together;
  part.divergences = graph.divergences;
  for (std::uint32_t r = 0; r <= num_ranks; ++r) {
    part.npu_blocks.bounds.push_back(graph.num_npus() * r / num_ranks);
    part.group_blocks.bounds.push_back(graph.num_groups() * (num_ranks - r) / num_ranks);
  }
  for (auto& bound : part.group_blocks.bounds) bound = graph.num_groups() - bound;  // cut at other places
  part.npu_blocks.here = part.group_blocks.here = rank;
  part.first_member = part.first_membership = part.first_stream = {0};
  for (std::uint32_t g = part.group_blocks.first(); g < part.group_blocks.bounds[rank + 1]; ++g) {
    const auto members = graph.members_of(g);
    part.members.insert(part.members.end(), members.begin(), members.end());
    part.first_member.push_back(part.members.size());
  }
  for (std::uint32_t npu = part.npu_blocks.first(); npu < part.npu_blocks.bounds[rank + 1]; ++npu) {
    const auto memberships = graph.memberships_of(npu);
    part.memberships.insert(part.memberships.end(), memberships.begin(), memberships.end());
    part.first_membership.push_back(part.memberships.size());
    const auto streams = graph.streams_of(npu);
    part.streams.insert(part.streams.end(), streams.begin(), streams.end());
    part.first_stream.push_back(part.streams.size());
  }
  return part;
}

// 300 random graphs are spread over the ranks. The classes, and what told them apart, are those of the whole graphs.
TEST(Refinement, IsTheSameOnAnyNumberOfRanks) {
  auto& world = test::world();
  const auto num_ranks = static_cast<std::uint32_t>(world.size());
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const auto graph = random_graph(seed);
    const auto whole = refine(graph);
    const auto spread = refine(part_of(graph, static_cast<std::uint32_t>(world.rank().value()), num_ranks), world);
    EXPECT_EQ(spread.of_npu, whole.of_npu) << seed;
    EXPECT_EQ(spread.of_group, whole.of_group) << seed;
    EXPECT_EQ(spread.representatives, whole.representatives) << seed;
    EXPECT_EQ(spread.by_members, whole.by_members) << seed;
    EXPECT_EQ(spread.by_position, whole.by_position) << seed;
    EXPECT_EQ(spread.by_messages, whole.by_messages) << seed;
  }
}

// A chain has 100,000 NPUs, and its ends have signatures of their own. Each NPU is a class. A refinement that looks at
// all NPUs again in each of the 50,000 steps would not end in time.
TEST(Refinement, LongChain) {
  constexpr std::uint32_t n = 100000;
  Numbers signatures(n, 0);
  signatures.front() = 1;
  signatures.back() = 2;
  Builder builder(signatures);
  for (std::uint32_t i = 0; i + 1 < n; ++i) builder.stream(i, i == 0 ? 0 : 1, i + 1, 0);
  EXPECT_EQ(builder.classes().count(), n);
}

}  // namespace
}  // namespace orrery::fold
