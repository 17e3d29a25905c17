#include "orrery/collective/custom_collective.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "custom_collective_builder.hpp"
#include "et_writer.hpp"
#include "system.hpp"
#include "temporary_folder.hpp"

namespace orrery::collective {
namespace {

using topology::Shape;
using OperationKind = CustomCollective::OperationKind;

/// Builds a custom collective by hand: sizes are in bytes, dependencies are operations.
class Hand {
 public:
  explicit Hand(std::uint32_t positions) : builder_(positions) {}

  std::uint32_t send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                     std::initializer_list<std::uint32_t> after = {}) {
    return behind(builder_.add_message({.kind = OperationKind::send, .position = from, .fixed = Bytes(bytes)}, to, 0),
                  after);
  }
  std::uint32_t receive(std::uint32_t at, std::uint32_t from, std::uint64_t bytes,
                        std::initializer_list<std::uint32_t> after = {}) {
    return behind(
        builder_.add_message({.kind = OperationKind::receive, .position = at, .fixed = Bytes(bytes)}, from, 0), after);
  }
  std::uint32_t work(std::uint32_t at, OperationKind kind, std::uint64_t bytes,
                     std::initializer_list<std::uint32_t> after, Time duration = Time::zero()) {
    return behind(builder_.add({.kind = kind, .position = at, .fixed = Bytes(bytes), .duration = duration}), after);
  }
  std::shared_ptr<const CustomCollective> finish() {
    builder_.match(
        [](std::uint32_t, std::string_view found, std::string_view) { return Error(ErrorCode::internal, found); });
    return builder_.finish("hand", 0);
  }

 private:
  std::uint32_t behind(std::uint32_t operation, std::initializer_list<std::uint32_t> after) {
    for (const std::uint32_t before : after) builder_.depend(before, operation);
    return operation;
  }
  CustomCollectiveBuilder builder_;
};

/// 10 B/ns and 100 ns; endpoint delays of 7 ns, 3 m / 100 ns for a reduction.
std::vector<Time> finish(Hand& hand, Shape shape, const std::vector<Time>& arrivals, const AllRules& rules = {}) {
  Options options = options_of({});
  options.custom.of_kind[Kind::all_reduce] = {hand.finish()};
  System system({{shape, static_cast<std::uint32_t>(arrivals.size()), Bandwidth::from_bytes_per_ns(10), 100}}, options,
                rules);
  return system.finish(Kind::all_reduce, 1, arrivals);
}

/// Members 1 and 2 get 1,000 and 2,000 bytes of member 0.
Hand two_sends() {
  Hand hand(3);
  hand.send(0, 1, 1000);
  hand.send(0, 2, 2000);
  hand.receive(1, 0, 1000);
  hand.receive(2, 0, 2000);
  return hand;
}

// Member 0 sends to members 1 and 2 over its one link to the switch. The second message leaves when the first one has
// left.
TEST(CustomCollective, MessagesLeaveByOneLinkOneAfterTheOther) {
  Hand hand = two_sends();
  // The second leaves when the first has: 7 + 100, + 2 hops and 200, + 7. Member 0 has sent all after 7 + 300.
  EXPECT_EQ(finish(hand, Shape("Switch"), at_ns({0, 0, 0})), at_ns({307, 314, 514}));
}

// A communicator has a custom collective of its own, beside those for all. Its layout and times are its own, whatever
// the kind, and a group of another size is refused.
TEST(CustomCollective, ACommunicatorMayHaveOneOfItsOwn) {
  Options options = options_of({ring});
  options.custom.of_kind[Kind::all_gather] = {Hand(3).finish()};
  options.custom.of_nodes = {Hand(3).finish(), two_sends().finish()};
  System system({{Shape("Switch"), 4, Bandwidth::from_bytes_per_ns(10), 100}}, options);
  const std::vector<NpuId> three{NpuId(0), NpuId(1), NpuId(2)};
  const auto plain = system.engine.layout(three, all_dimensions);
  const auto own = system.engine.layout(three, all_dimensions, 2);
  EXPECT_NE(plain, own);
  EXPECT_NE(system.engine.layout(three, all_dimensions, 1), own);
  EXPECT_EQ(system.engine.layout(std::vector{NpuId(1), NpuId(2), NpuId(3)}, all_dimensions, 2), own);
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::barrier}) {
    system.engine.validate(*own, kind);
    std::vector<Time> completions(3);
    system.engine.finish(*own, kind, Bytes(1), at_ns({0, 0, 0}), completions);
    EXPECT_EQ(completions, at_ns({307, 314, 514})) << name(kind);
    system.engine.finish(*plain, kind, Bytes(1), at_ns({0, 0, 0}), completions);
    EXPECT_NE(completions, at_ns({307, 314, 514})) << name(kind);
  }
  EXPECT_EQ(system.engine.minimum_duration(*own), Time::from_ns(7));
  EXPECT_THROW(system.engine.validate(*system.engine.layout({}, all_dimensions, 2), Kind::all_reduce), Error);
}

// Member 0 sends to members 1 and 2 over links that differ, or over one link of a mesh. Messages with links of their
// own travel together, and those that share one follow each other.
TEST(CustomCollective, LinksOfTheirOwnCarryMessagesTogether) {
  Hand hand = two_sends();
  EXPECT_EQ(finish(hand, Shape("FullyConnected"), at_ns({0, 0, 0})), at_ns({207, 214, 314}));
  Hand around = two_sends();  // member 2 is one hop down
  EXPECT_EQ(finish(around, Shape("Ring"), at_ns({0, 0, 0})), at_ns({207, 214, 314}));
  Hand along = two_sends();  // member 2 is two hops up
  EXPECT_EQ(finish(along, Shape("Mesh"), at_ns({0, 0, 0})), at_ns({307, 214, 514}));
}

// Members 1 and 2 send to member 0, which has one link from the switch. The second message arrives its transfer time
// after the first one.
TEST(CustomCollective, MessagesComeByOneLinkOneAfterTheOther) {
  Hand hand(3);
  hand.receive(0, 1, 1000);
  hand.receive(0, 2, 2000);
  hand.send(1, 0, 1000);
  hand.send(2, 0, 2000);
  // 7 + 200 + 100 for the first; the other ends 200 later though it could be there at 407.
  EXPECT_EQ(finish(hand, Shape("Switch"), at_ns({0, 0, 0}))[0], Time::from_ns(307 + 200 + 7));
}

// Member 0 sends to members 1 and 2 under ASTRA-sim's rules. The messages do not share the link.
TEST(CustomCollective, AstraSimSendsEachMessageByItself) {
  Hand hand = two_sends();
  EXPECT_EQ(finish(hand, Shape("Switch"), at_ns({0, 0, 0}), AllRules::astra_sim()), at_ns({400, 300, 400}))
      << "a send is over when its message is there, and there are no endpoint delays";
}

// Members 1 and 2 send to member 0, and member 1 starts 1000 ns late. Its message still comes first, because the order
// is that of members that start together.
TEST(CustomCollective, TheOrderAtALinkIsThatOfMembersThatStartTogether) {
  Hand hand(3);
  hand.receive(0, 1, 1000);
  hand.receive(0, 2, 2000);
  hand.send(1, 0, 1000);
  hand.send(2, 0, 2000);
  const auto late = finish(hand, Shape("Switch"), at_ns({0, 1000, 0}));
  EXPECT_EQ(late[0], Time::from_ns(1307 + 200 + 7)) << "member 2 stays behind member 1";
}

// Member 1 joins 5000 ns after the others. No member completes before that.
TEST(CustomCollective, NobodyIsThroughBeforeAllHaveBegun) {
  Hand hand = two_sends();
  EXPECT_EQ(finish(hand, Shape("Switch"), at_ns({0, 5000, 0})), at_ns({5007, 5014, 5007}));
}

// Member 0 receives, reduces, copies and computes. Its end is the sum of these times.
TEST(CustomCollective, WorkTakesItsTime) {
  Hand hand(2);
  const auto got = hand.receive(0, 1, 1000);
  const auto sum = hand.work(0, OperationKind::reduce, 1000, {got});
  const auto copy = hand.work(0, OperationKind::copy, 1000, {sum});
  const auto join = hand.work(0, OperationKind::nothing, 0, {copy});
  hand.work(0, OperationKind::compute, 0, {join}, Time::from_ns(55));
  hand.send(1, 0, 1000);
  EXPECT_EQ(finish(hand, Shape("Switch"), at_ns({0, 0}))[0], Time::from_ns(307 + 7 + 30 + 20 + 55));
}

// Member 0 receives, reduces and computes under ASTRA-sim's rules. The reduction takes 1 ns and the computation its
// recorded duration.
TEST(CustomCollective, WorkTakesANanosecondInAstraSim) {
  Hand hand(2);
  const auto got = hand.receive(0, 1, 1000);
  const auto sum = hand.work(0, OperationKind::reduce, 1000, {got});
  hand.work(0, OperationKind::compute, 0, {sum}, Time::from_ns(55));
  hand.send(1, 0, 1000);
  EXPECT_EQ(finish(hand, Shape("Switch"), at_ns({0, 0}), AllRules::astra_sim())[0], Time::from_ns(300 + 1 + 55));
}

// A custom collective is for three members. A group of three is accepted, all six NPUs are refused with the sizes that
// there are, and other kinds keep their algorithms.
TEST(CustomCollective, OtherSizesOfGroupsAreRefused) {
  Options options = options_of({ring});
  Hand hand = two_sends();
  options.custom.of_kind[Kind::all_reduce] = {hand.finish()};
  System system({{Shape("Ring"), 6, Bandwidth::from_bytes_per_ns(10), 100}}, options);
  EXPECT_EQ(system.refusal(Kind::all_reduce, npus({4, 0, 2})), "accepted");
  EXPECT_EQ(system.refusal(Kind::all_gather), "accepted") << "other kinds have their algorithms";
  const std::string message = system.refusal(Kind::all_reduce);
  EXPECT_NE(message.find("no file spells it out for 6 members"), std::string::npos) << message;
  EXPECT_NE(message.find("3 (hand)"), std::string::npos) << message;
}

// A custom collective has fixed sizes, and collectives are cut into four chunks. It is refused.
TEST(CustomCollective, FixedSizesAreNotCut) {
  Options options = options_of({ring});
  Hand hand = two_sends();
  options.custom.of_kind[Kind::all_reduce] = {hand.finish()};
  options.chunks.splits = 4;
  System system({{Shape("Ring"), 3, Bandwidth::from_bytes_per_ns(10), 100}}, options);
  EXPECT_NE(system.refusal(Kind::all_reduce).find("have fixed sizes, which 4 chunks would send 4 times"),
            std::string::npos);
}

// A message crosses two dimensions and another one crosses one. Their bytes count in each dimension that they cross, as
// a mean over the members.
TEST(CustomCollective, BytesCountInEveryDimensionThatAMessageCrosses) {
  Options options = options_of({});
  Hand hand(4);
  hand.send(0, 3, 1000);
  hand.send(0, 1, 600);
  hand.receive(1, 0, 600);
  hand.receive(3, 0, 1000);
  options.custom.of_kind[Kind::all_reduce] = {hand.finish()};
  System system({{Shape("Ring"), 2, Bandwidth::from_bytes_per_ns(10), 100},
                 {Shape("Ring"), 2, Bandwidth::from_bytes_per_ns(10), 100}},
                options);
  EXPECT_EQ(system.engine.traffic(*system.engine.layout({}, all_dimensions), Kind::all_reduce, Bytes(1)),
            (CollectiveTraffic{Bytes(400), Bytes(250)}));
}

/// Chakra traces of two positions, each of which sends half of the data to the other.
class ChakraCollective : public ::testing::Test {
 protected:
  ChakraCollective() {
    for (const std::int64_t position : {0, 1})
      nodes_[position] = {chunks(et::Node(5, "give", et::comm_send).int32("comm_dst", 1 - position), 1 - position),
                          chunks(et::Node(2, "take", et::comm_recv).int32("comm_src", 1 - position), position),
                          et::Node(9, "add", et::comp).data({2})};
  }

  static et::Node chunks(et::Node node, std::int64_t first) {
    return node.int32("comm_tag", 3)
        .int32("msg_chunk_cnt", 1)
        .int32("msg_chunk_idx", first)
        .int32("total_chunk_cnt", 2);
  }
  static et::Node bytes(et::Node node, std::int64_t size) {
    return node.int32("msg_chunk_cnt", -1).int64("comm_size", size);
  }

  std::shared_ptr<const CustomCollective> read() {
    for (std::size_t position = 0; position < 2; ++position) {
      et::File file;
      file.metadata("0.0.4");
      for (const et::Node& node : nodes_[position]) file.add(node);
      et::write(folder_.path() / fmt::format("part.{}.et", position), file.text());
    }
    return read_custom_collective(folder_.path() / "part", Kind::all_reduce, {});
  }
  void expect_refusal(std::initializer_list<std::string_view> parts) {
    try {
      (void)read();
      ADD_FAILURE() << "accepted, expected something about " << *parts.begin();
    } catch (const Error& error) {
      const std::string message = error.what();
      for (const auto part : parts)
        EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    }
  }

  test::TemporaryFolder folder_;
  std::vector<et::Node> nodes_[2];
};

// Two traces of one file prefix have a send, a receive and a computation each. They become operations in the order of
// their ids, with partners and sizes as shares of the whole.
TEST_F(ChakraCollective, NodesBecomeOperations) {
  const auto made = read();
  EXPECT_EQ(made->num_positions(), 2U);
  EXPECT_FALSE(made->has_fixed_sizes());
  ASSERT_EQ(made->operations().size(), 6U);  // in the order of their ids: take, give, add
  EXPECT_EQ((*made)[0].kind, OperationKind::receive);
  EXPECT_EQ((*made)[0].partner, 4U);
  EXPECT_EQ((*made)[1].kind, OperationKind::send);
  EXPECT_EQ((*made)[2].kind, OperationKind::reduce) << "a computation without a duration";
  EXPECT_EQ(made->bytes(0, Bytes(101)), Bytes(50));
  EXPECT_EQ(made->bytes(1, Bytes(101)), Bytes(51));
  EXPECT_EQ(made->bytes(2, Bytes(101)), Bytes(50)) << "what the receive before it brought";
}

// The traces give sizes in bytes, and a computation has a duration. The collective has fixed sizes and keeps the
// duration.
TEST_F(ChakraCollective, SizesMayBeBytes) {
  for (auto& nodes : nodes_)
    for (std::size_t k = 0; k < 2; ++k) nodes[k] = bytes(nodes[k], 1000);
  nodes_[0][2] = et::Node(9, "add", et::comp).data({2}).micros(3);
  const auto made = read();
  EXPECT_TRUE(made->has_fixed_sizes());
  EXPECT_EQ(made->bytes(0, Bytes(7)), Bytes(1000));
  EXPECT_EQ((*made)[2].kind, OperationKind::compute);
  EXPECT_EQ((*made)[2].duration, Time::from_ns(3000));
  EXPECT_EQ(made->bytes(5, Bytes(7)), Bytes(1000));
}

// One message has a size in bytes, the others have shares. The error names the trace and the node.
TEST_F(ChakraCollective, SizesOfBothKindsAreRefused) {
  nodes_[1][0] = bytes(nodes_[1][0], 1000);
  expect_refusal({"part.1.et", "node 5 'give'", "total_chunk_cnt is 0, elsewhere 2"});
}

// A send has no receive at its destination. The error names the trace, the node and the position.
TEST_F(ChakraCollective, MessagesWithoutTheirOtherEndAreRefused) {
  nodes_[1].erase(nodes_[1].begin() + 1);
  nodes_[1][1] = et::Node(9, "add", et::comp);
  expect_refusal({"part.0.et", "node 5 'give'", "position 1 has no receive for this send"});
}

// A send has two chunks and its receive one. The error names both.
TEST_F(ChakraCollective, SizesThatDifferAreRefused) {
  nodes_[0][0] = nodes_[0][0].int32("msg_chunk_cnt", 2).int32("msg_chunk_idx", 0);
  expect_refusal({"part.1.et", "node 2 'take'", "receives 1 chunks, but node 5 of position 0 sends 2 chunks"});
}

// A trace has a collective node. The error names the trace and the node.
TEST_F(ChakraCollective, WhatIsNoPartOfACollectiveIsRefused) {
  nodes_[0][2] = et::collective(9, "all", 0, 1000);
  expect_refusal({"part.0.et", "node 9 'all'", "no part of a collective"});
}

// A send names position 2, and there are positions 0 and 1. The error names the node and the position.
TEST_F(ChakraCollective, OtherPositionsAreRefused) {
  nodes_[0][0] = chunks(et::Node(5, "give", et::comm_send).int32("comm_dst", 2), 1);
  expect_refusal({"part.0.et", "node 5 'give'", "the other end is position 2"});
}

// A send begins at chunk 2 of two. The error names the node and the chunks.
TEST_F(ChakraCollective, ChunksBeyondTheWholeAreRefused) {
  nodes_[0][0] = nodes_[0][0].int32("msg_chunk_idx", 2);
  expect_refusal({"part.0.et", "node 5 'give'", "1 chunks from chunk 2 on, of 2"});
}

// Each position sends only when it has received. The error says that an operation waits for itself.
TEST_F(ChakraCollective, CirclesOverMessagesAreRefused) {
  for (auto& nodes : nodes_) nodes[0] = nodes[0].data({2});
  expect_refusal({"part.", "waits for itself"});
}

}  // namespace
}  // namespace orrery::collective
