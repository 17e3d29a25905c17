#include "orrery/fold/classes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace orrery::fold {
namespace {

/// A Likeness in the making: NPUs by colour, groups by members with the use of each, streams by both ends.
class Builder {
 public:
  explicit Builder(std::vector<std::uint32_t> colours)
      : colours_(std::move(colours)), uses_(colours_.size()), streams_(colours_.size()) {}

  /// Members (npu, use): of each NPU all uses from 0 on must come to be taken.
  Builder& group(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members, std::uint32_t shape = 0,
                 bool together = true) {
    const auto id = static_cast<std::uint32_t>(groups_.size());
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      auto& uses = uses_[members[i].first];
      if (uses.size() <= members[i].second) uses.resize(members[i].second + 1);
      uses[members[i].second] = {id, i};
    }
    groups_.push_back({members, shape, together});
    return *this;
  }
  Builder& group_of(const std::vector<std::uint32_t>& npus, std::uint32_t use = 0, bool together = true) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
    for (const auto npu : npus) members.emplace_back(npu, use);
    return group(members, 0, together);
  }
  /// Stream `s` of NPU `a` is stream `t` of NPU `b`.
  Builder& stream(std::uint32_t a, std::uint32_t s, std::uint32_t b, std::uint32_t t) {
    set(a, s, {b, t});
    set(b, t, {a, s});
    return *this;
  }

  Likeness likeness() const {
    Likeness result;
    result.colours = colours_;
    result.first_member = result.first_place = result.first_stream = {0};
    for (const auto& group : groups_) {
      for (const auto& [npu, use] : group.members) result.members.push_back({npu, use});
      result.first_member.push_back(result.members.size());
      result.shapes.push_back(group.shape);
      result.together.push_back(group.together);
    }
    for (std::size_t npu = 0; npu < colours_.size(); ++npu) {
      result.places.insert(result.places.end(), uses_[npu].begin(), uses_[npu].end());
      result.first_place.push_back(result.places.size());
      result.streams.insert(result.streams.end(), streams_[npu].begin(), streams_[npu].end());
      result.first_stream.push_back(result.streams.size());
    }
    return result;
  }
  Classes classes() const { return classes_of(likeness()); }

 private:
  struct Group {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
    std::uint32_t shape;
    bool together;
  };
  void set(std::uint32_t npu, std::uint32_t s, Likeness::Stream stream) {
    if (streams_[npu].size() <= s) streams_[npu].resize(s + 1);
    streams_[npu][s] = stream;
  }

  std::vector<std::uint32_t> colours_;
  std::vector<std::vector<Likeness::Place>> uses_;
  std::vector<std::vector<Likeness::Stream>> streams_;
  std::vector<Group> groups_;
};

using Numbers = std::vector<std::uint32_t>;

TEST(Classes, NpusOfEqualGroupsAreOne) {
  const auto classes = Builder({0, 0, 0, 0, 0, 0, 0, 0}).group_of({0, 1, 2, 3}).group_of({4, 5, 6, 7}).classes();
  EXPECT_EQ(classes.of_npu, Numbers(8, 0));
  EXPECT_EQ(classes.of_group[0], classes.of_group[1]);
  EXPECT_EQ(classes.sizes, std::vector<std::uint64_t>{8});
}

TEST(Classes, ShapesOfGroupsTellApart) {
  const auto classes = Builder({0, 0, 0, 0}).group({{0, 0}, {1, 0}}, 0).group({{2, 0}, {3, 0}}, 1).classes();
  EXPECT_EQ(classes.of_npu, (Numbers{0, 0, 1, 1}));
  EXPECT_EQ(classes.by_members, 1U);
}

// Those who meet somebody else complete at other times, and each at its own: its place in the ring counts.
TEST(Classes, OneLateMemberPartsItsGroup) {
  const auto classes = Builder({1, 0, 0, 0, 0, 0, 0, 0}).group_of({0, 1, 2, 3}).group_of({4, 5, 6, 7}).classes();
  EXPECT_EQ(classes.of_npu, (Numbers{0, 1, 2, 3, 4, 4, 4, 4}));
  EXPECT_EQ(classes.by_members, 3U);
}

TEST(Classes, PlacesCountWhereMembersDoNotCompleteTogether) {
  const auto classes =
      Builder({0, 0, 0, 0, 0, 0}).group_of({0, 1, 2}, 0, false).group_of({5, 4, 3}, 0, false).classes();
  EXPECT_EQ(classes.of_npu, (Numbers{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(classes.by_place, 2U);
}

// Alike at first sight, NPUs of a pipeline differ by how far they are from its ends.
TEST(Classes, StagesOfAPipeline) {
  Builder open({0, 1, 1, 1, 1, 2}), closed(Numbers(6, 0));
  for (std::uint32_t i = 0; i < 5; ++i) open.stream(i, i == 0 ? 0 : 1, i + 1, 0);
  for (std::uint32_t i = 0; i < 6; ++i) closed.stream(i, 1, (i + 1) % 6, 0);
  EXPECT_EQ(open.classes().of_npu, (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(open.classes().by_messages, 3U);
  EXPECT_EQ(closed.classes().count(), 1U);
}

// Each of the left sends its first and second stream to NPUs of one class: but not into the same streams there.
TEST(Classes, TwoPeersOfOneClass) {
  Builder builder({0, 0, 0, 0, 1, 1, 1, 1});
  builder.stream(0, 0, 4, 0).stream(0, 1, 5, 1).stream(1, 0, 5, 0).stream(1, 1, 4, 1);  // first to first
  builder.stream(2, 0, 6, 1).stream(2, 1, 7, 0).stream(3, 0, 7, 1).stream(3, 1, 6, 0);  // first to second
  EXPECT_EQ(builder.classes().of_npu, (Numbers{0, 0, 1, 1, 2, 2, 3, 3}));
}

// NPU i meets i + 1 in its first use and i - 1 in its second: every group has a member of each use, all are alike.
TEST(Classes, OverlappingGroups) {
  Builder builder(Numbers(5, 0));
  for (std::uint32_t i = 0; i < 5; ++i) builder.group({{i, 0}, {(i + 1) % 5, 1}});
  EXPECT_EQ(builder.classes().count(), 1U);
  // Where one group lists them the other way round, places differ.
  Builder turned(Numbers(5, 0));
  for (std::uint32_t i = 0; i < 4; ++i) turned.group({{i, 0}, {i + 1, 1}});
  turned.group({{0, 1}, {4, 0}});
  EXPECT_EQ(turned.classes().count(), 5U);
}

// Where algorithms do not tell places apart, only those count who do not behave alike.
TEST(Classes, PlacesThatAlgorithmsDoNotTellApart) {
  auto likeness = Builder({1, 0, 0, 0, 1, 0, 0, 0}).group_of({0, 1, 2, 3}).group_of({4, 5, 6, 7}).likeness();
  EXPECT_EQ(classes_of(likeness).of_npu, (Numbers{0, 1, 2, 3, 0, 1, 2, 3}));
  likeness.places_among = [](std::uint32_t, Likeness::Member, std::span<const std::uint32_t> marks) {
    return Numbers(marks.size(), 0);
  };
  EXPECT_EQ(classes_of(likeness).of_npu, (Numbers{0, 1, 1, 1, 0, 1, 1, 1}));
}

// Places come to count when marks get finer: 4 starts to differ by what it meets elsewhere.
TEST(Classes, PlacesAreLookedAtAgain) {
  Builder builder({0, 1, 0, 1, 0, 1, 2, 3, 3});
  builder.group_of({0, 1, 2, 3, 4, 5}).group({{6, 0}, {4, 1}}).group({{7, 0}, {0, 1}}).group({{8, 0}, {2, 1}});
  auto likeness = builder.likeness();
  likeness.places_among = [](std::uint32_t, Likeness::Member, std::span<const std::uint32_t> marks) {
    Numbers places(marks.size());
    const auto period = std::ranges::max(marks) > 1 ? static_cast<std::uint32_t>(marks.size()) : 2U;
    for (std::uint32_t i = 0; i < marks.size(); ++i) places[i] = i % period;
    return places;
  };
  EXPECT_EQ(classes_of(likeness).of_npu, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

/// Every signature anew until none tells more: slow and plain.
Numbers plain_classes(const Likeness& in) {
  using Text = std::vector<std::uint64_t>;
  std::vector<std::uint64_t> npus(in.colours.begin(), in.colours.end()), groups(in.num_groups(), 0);
  std::size_t before = 0;
  const auto number = [](const std::vector<Text>& texts, std::vector<std::uint64_t>& colours) {
    std::map<Text, std::uint64_t> known;
    for (std::size_t i = 0; i < texts.size(); ++i) colours[i] = known.try_emplace(texts[i], known.size()).first->second;
    return known.size();
  };
  for (;;) {
    std::vector<Text> of_groups, of_npus;
    std::vector<bool> is_placed;
    for (std::uint32_t g = 0; g < in.num_groups(); ++g) {
      Text text = {in.shapes[g]};
      bool placed = !in.together[g];
      for (const auto& member : in.members_of(g)) {
        text.push_back(npus[member.npu]);
        text.push_back(member.use);
        placed = placed || npus[member.npu] != text[1] || member.use != text[2];
      }
      if (!placed) text.resize(3);
      is_placed.push_back(placed);
      text.push_back(placed);
      of_groups.push_back(text);
    }
    number(of_groups, groups);
    for (std::uint32_t i = 0; i < in.num_npus(); ++i) {
      Text text = {npus[i]};
      for (const auto& place : in.places_of(i)) {
        text.push_back(groups[place.group]);
        text.push_back(is_placed[place.group] ? place.position : 1000);
      }
      for (const auto& stream : in.streams_of(i)) {
        text.push_back(npus[stream.peer]);
        text.push_back(stream.stream);
      }
      of_npus.push_back(text);
    }
    const auto count = number(of_npus, npus);
    if (count == before) break;
    before = count;
  }
  return {npus.begin(), npus.end()};
}

/// Groups along both ways of a grid and streams along a third, with a few NPUs, groups and streams that are not alike.
Likeness random_likeness(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t a = 1 + draw(5), b = 1 + draw(5), c = 1 + draw(6), n = a * b * c;
  const auto rarely = [&] { return draw(20 * n) == 0; };
  Numbers colours(n, 0);
  if (draw(2) == 0)  // planes, as the stages of a pipeline
    for (std::uint32_t i = 0; i < n; ++i) colours[i] = std::min(i / (a * b), 1 + draw(2) / 2);
  for (auto& colour : colours)
    if (rarely()) colour = 2;
  Builder builder(colours);
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
  return builder.likeness();
}

TEST(Classes, AgreeWithPlainRefinement) {
  std::size_t fewer = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const auto likeness = random_likeness(seed);
    const auto plain = plain_classes(likeness);
    const auto classes = classes_of(likeness);
    std::map<std::uint32_t, std::uint32_t> there, back;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(there.try_emplace(classes.of_npu[i], plain[i]).first->second, plain[i]) << seed << " " << i;
      ASSERT_EQ(back.try_emplace(plain[i], classes.of_npu[i]).first->second, classes.of_npu[i]) << seed << " " << i;
    }
    fewer += classes.count() < plain.size() && classes.count() > 1;
    std::map<std::uint32_t, bool> initial;
    for (const auto colour : likeness.colours) initial[colour] = true;
    EXPECT_EQ(classes.count(), initial.size() + classes.by_members + classes.by_place + classes.by_messages) << seed;
  }
  EXPECT_GT(fewer, 500U);
}

// What is told at one end of a long chain goes through it step by step, but only there.
TEST(Classes, LongChain) {
  constexpr std::uint32_t n = 100000;
  Numbers colours(n, 0);
  colours.front() = 1;
  colours.back() = 2;
  Builder builder(colours);
  for (std::uint32_t i = 0; i + 1 < n; ++i) builder.stream(i, i == 0 ? 0 : 1, i + 1, 0);
  EXPECT_EQ(builder.classes().count(), n);
}

}  // namespace
}  // namespace orrery::fold
