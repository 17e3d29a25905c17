#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "temporary_folder.hpp"

namespace orrery::collective {
namespace {

// Two ranks reduce one of two chunks each and send it back; rank 1 does it in two thread blocks.
constexpr std::string_view pair =
    R"(<algo name="pair" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
<gpu id="1" i_chunks="2" o_chunks="0" s_chunks="1">
<tb id="4" send="0" recv="-1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="2" deps="0" hasdep="0"/>
</tb>
<tb id="2" send="-1" recv="0" chan="0">
<step s="0" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb>
</gpu>
<gpu id="0" i_chunks="2" o_chunks="0" s_chunks="1">
<tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb>
</gpu>
</algo>
)";

class MscclFile : public ::testing::Test {
 protected:
  std::shared_ptr<const CustomCollective> read(std::string_view text, Kind kind = Kind::all_reduce) {
    const auto file = folder_.path() / "algorithm.xml";
    std::ofstream(file) << text;
    return read_custom_collective(file, kind, {.key = "the key"});
  }
  /// What is said of `pair` with `to` in place of the first `from` after `after`.
  std::string refusal(std::string_view from, std::string_view to, std::string_view after = "<algo",
                      Kind kind = Kind::all_reduce) {
    std::string text(pair);
    const auto at = text.find(from, text.find(after));
    EXPECT_NE(at, std::string::npos) << from;
    return read_refusal(text.replace(at, from.size(), to), kind);
  }
  std::string read_refusal(std::string_view text, Kind kind = Kind::all_reduce) {
    try {
      (void)read(text, kind);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "accepted";
  }
  void expect(const std::string& message, std::initializer_list<std::string_view> parts) {
    for (const auto part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }

  test::TemporaryFolder folder_;
};

// A file has two ranks whose steps send, receive and reduce. Each step becomes one, two or three operations with its
// partner and dependencies.
TEST_F(MscclFile, StepsBecomeOperations) {
  using OpKind = CustomCollective::OperationKind;
  const auto made = read(pair);
  EXPECT_EQ(made->num_positions(), 2U);
  EXPECT_FALSE(made->has_fixed_sizes());
  std::vector<OpKind> kinds;
  for (const auto& operation : made->operations()) kinds.push_back(operation.kind);
  EXPECT_EQ(kinds, (std::vector<OpKind>{OpKind::send, OpKind::receive, OpKind::reduce, OpKind::send,
                                        OpKind::receive,  // rank 0
                                        OpKind::send, OpKind::send, OpKind::receive, OpKind::reduce, OpKind::receive}));
  EXPECT_EQ(made->first(1), 5U);
  EXPECT_EQ((*made)[0].partner, 7U);
  EXPECT_EQ((*made)[3].partner, 9U);
  EXPECT_EQ((*made)[9].partner, 3U);
  EXPECT_EQ((*made)[6].dependencies, 2U) << "the step before it and what depid and deps say";
  EXPECT_EQ(std::vector(made->successors(8).begin(), made->successors(8).end()), (std::vector<std::uint32_t>{6, 9}));
}

// A size is cut into two chunks that may differ by a byte. The chunks add up to the size, up to the largest one.
TEST_F(MscclFile, ChunksAddUpToTheWhole) {
  const auto made = read(pair);
  for (const std::uint64_t whole : {0U, 1U, 2U, 1000U, 1001U}) {
    EXPECT_EQ(made->bytes(0, Bytes(whole)), Bytes(whole - whole / 2)) << "chunk 1";
    EXPECT_EQ(made->bytes(3, Bytes(whole)), Bytes(whole / 2)) << "chunk 0";
    EXPECT_EQ(made->bytes(2, Bytes(whole)), Bytes(whole / 2)) << "its reduction";
  }
  EXPECT_EQ(made->bytes(0, Bytes::most()).count(), Bytes::most().count() / 2 + 1);
}

// A file is no XML, is for another kind, lacks a rank or has it twice, or has wrong numbers of chunks. The error says
// which of these it is, with the line where there is one.
TEST_F(MscclFile, WhatIsNoAlgorithmIsRefused) {
  expect(refusal("</gpu>", ""), {"algorithm.xml:", "no XML"});
  expect(refusal("<algo name=\"pair\"", "<program", "<algo"), {"no XML"});
  expect(refusal("coll=\"allreduce\"", "coll=\"custom\""), {"algorithm.xml:1:", "coll is 'custom'", "allgather"});
  expect(refusal("<algo", "<algo", "<algo", Kind::all_gather),
         {"the key", "whose coll is that of all-reduce", "allgather"});
  expect(refusal("ngpus=\"2\"", "ngpus=\"3\""), {"there is no gpu 2"});
  expect(refusal("gpu id=\"0\"", "gpu id=\"1\""), {"algorithm.xml:12:", "gpu 1 is there twice"});
  expect(refusal("i_chunks=\"2\"", "i_chunks=\"3\""), {"i_chunks of gpu 1 is 3", "2, as"});
  expect(
      read_refusal("<algo ngpus='6' coll='allreduce' nchunksperloop='16777216'><gpu id='0'/><gpu id='1'/><gpu id='2'/>"
                   "<gpu id='3'/><gpu id='4'/><gpu id='5'/></algo>"),
      {"buffers of all ranks have 201326592 chunks", "67108864 at the most"});
  expect(refusal("nchunksperloop=\"2\"", "nchunksperloop=\"x\""), {"nchunksperloop of the algo is 'x'"});
  EXPECT_THROW(read_custom_collective(folder_.path() / "nothing.xml", Kind::all_reduce, {}), Error);
  EXPECT_THROW(read_custom_collective(folder_.path() / "nothing", Kind::all_reduce, {}), Error);
}

// A thread block is there twice, sends to itself, shares a connection, or lacks the peer of its step. The error names
// the rank, the thread block and the step.
TEST_F(MscclFile, FaultsOfThreadBlocksAreRefused) {
  expect(refusal("tb id=\"2\"", "tb id=\"4\""), {"algorithm.xml:7:", "gpu 1 has tb 4 twice"});
  expect(refusal("send=\"0\"", "send=\"1\""), {"tb 4 of gpu 1 would send to itself"});
  expect(refusal("recv=\"-1\"", "recv=\"0\""), {"two thread blocks of gpu 1 receive from gpu 0 on channel 0"});
  expect(refusal("send=\"0\"", "send=\"-1\""), {"algorithm.xml:4:", "rank 1, thread block 4, step 0", "has no send"});
  expect(refusal("recv=\"0\"", "recv=\"-1\""), {"rank 1, thread block 2, step 0", "has no recv"});
  expect(refusal("chan=\"0\"", "chan=\"1\""), {"rank 0, thread block 0, step 1", "position 1 has no send"});
  expect(refusal("chan=\"0\"", "chan=\"1\"", "tb id=\"2\""),
         {"rank 0, thread block 0, step 0", "position 1 has no receive"});
}

// A step has a wrong number, type, buffer, chunk or dependency. The error names the rank, the thread block, the step
// and what is wrong.
TEST_F(MscclFile, FaultsOfStepsAreRefused) {
  expect(refusal("<step s=\"1\"", "<step s=\"2\""), {"algorithm.xml:5:", "step 1 of tb 4 of gpu 1 has s=\"2\""});
  expect(refusal("type=\"s\"", "type=\"x\""), {"its type is 'x'", "rrcs"});
  expect(refusal("srcbuf=\"i\"", "srcbuf=\"q\""), {"srcbuf is 'q'"});
  expect(refusal("srcoff=\"0\"", "srcoff=\"2\""),
         {"rank 1, thread block 4, step 0", "chunk 2 of buffer i, which has 2"});
  expect(refusal("srcbuf=\"i\"", "srcbuf=\"s\""), {"rank 1, thread block 4, step 0", "nobody has put there"});
  expect(refusal("cnt=\"1\"", "cnt=\"2\""), {"receives 1 chunk, but rank 1 sends 2"});
  expect(refusal("depid=\"2\"", "depid=\"3\""),
         {"rank 1, thread block 4, step 1", "waits for step 0 of thread block 3"});
  expect(refusal("deps=\"0\"", "deps=\"5\""), {"waits for step 5 of thread block 2"});
}

// Steps of two thread blocks wait for each other. The error says that one waits for itself.
TEST_F(MscclFile, CirclesAreRefused) {
  expect(refusal("depid=\"-1\" deps=\"-1\"", "depid=\"2\" deps=\"1\""), {"rank ", "thread block", "waits for itself"});
}

// The steps move or add up the wrong chunks. The error names the rank and the chunk that does not get its result.
TEST_F(MscclFile, WrongDataAreRefused) {
  expect(refusal("type=\"rrcs\"", "type=\"rcs\""),
         {"rank 0 does not get its result", "chunk 0 of its output has 1 contribution", "2 contributions"});
  expect(refusal("srcoff=\"1\"", "srcoff=\"0\"", "type=\"rrc\""), {"adds up chunks 1 and 0"});
  expect(refusal("dstoff=\"0\"", "dstoff=\"1\"", "tb id=\"2\""),
         {"rank 1 does not get its result", "chunk 0 of its output"});
  // Without the dependency the chunk may leave before it is reduced.
  expect(refusal("depid=\"2\" deps=\"0\"", "depid=\"-1\" deps=\"-1\""),
         {"rank 0 does not get its result", "1 contribution"});
  expect(refusal("inplace=\"1\"", "inplace=\"0\""), {"is never written"});
}

// One file for each kind of collective uses the buffers that the kind has. Each is accepted, and a broadcast from the
// wrong root is refused.
TEST_F(MscclFile, EveryKindHasItsBuffers) {
  const auto file = [](std::string_view head, std::string_view sends, std::string_view receives) {
    return fmt::format(
        "<algo ngpus='2' {}><gpu id='0' s_chunks='1'><tb id='0' send='1' recv='1'>{}</tb></gpu>"
        "<gpu id='1' s_chunks='1'><tb id='0' send='0' recv='0'>{}</tb></gpu></algo>",
        head, sends, receives);
  };
  const auto step = [](int s, std::string_view type, std::string_view from, int at, std::string_view to, int into) {
    return fmt::format("<step s='{}' type='{}' srcbuf='{}' srcoff='{}' dstbuf='{}' dstoff='{}' cnt='1'/>", s, type,
                       from, at, to, into);
  };
  const auto exchange = [&](int own, int other) {
    return step(0, "s", "i", other, "i", 0) + step(1, "r", "o", 0, "o", other) + step(2, "cpy", "i", own, "o", own);
  };
  EXPECT_NO_THROW(read(file("coll='alltoall' nchunksperloop='2'", exchange(0, 1), exchange(1, 0)), Kind::all_to_all));
  const auto gather = [&](int own) {
    return step(0, "s", "i", 0, "i", 0) + step(1, "r", "o", 0, "o", 1 - own) + step(2, "cpy", "i", 0, "o", own);
  };
  const std::string gathers = file("coll='allgather' nchunksperloop='2'", gather(0), gather(1));
  EXPECT_EQ(read(gathers, Kind::all_gather)->bytes(0, Bytes(9)), Bytes(4));
  const auto scatter = [&](int own) {
    return step(0, "s", "i", 1 - own, "i", 0) + step(1, "r", "s", 0, "s", 0) + step(2, "cpy", "i", own, "o", 0) +
           step(3, "re", "s", 0, "o", 0);
  };
  const std::string scatters = file("coll='reduce_scatter' nchunksperloop='2'", scatter(0), scatter(1));
  EXPECT_NO_THROW(read(scatters, Kind::reduce_scatter));
  const std::string passes = step(0, "s", "i", 0, "i", 0), takes = step(0, "r", "i", 0, "o", 0);
  EXPECT_NO_THROW(read(file("coll='broadcast' nchunksperloop='1' inplace='1'", passes, takes), Kind::broadcast));
  EXPECT_NO_THROW(
      read(file("coll='broadcast' nchunksperloop='1' inplace='1' root='1'", takes, passes), Kind::broadcast));
  EXPECT_THROW(read(file("coll='broadcast' nchunksperloop='1' inplace='1'", takes, passes), Kind::broadcast), Error);
  const std::string adds = step(0, "rrc", "i", 0, "i", 0);
  EXPECT_NO_THROW(read(file("coll='reduce' nchunksperloop='1' inplace='1'", adds, passes), Kind::reduce));
  EXPECT_NO_THROW(read(
      file("coll='scatter' nchunksperloop='2' inplace='1'", step(0, "s", "i", 1, "i", 1), step(0, "r", "o", 0, "o", 0)),
      Kind::scatter));
  EXPECT_NO_THROW(
      read(file("coll='gather' nchunksperloop='2' inplace='1'", step(0, "r", "o", 1, "o", 1), passes), Kind::gather));
}

}  // namespace
}  // namespace orrery::collective
