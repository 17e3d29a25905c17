// Slow ports and failed links, computed by hand.
#include <gtest/gtest.h>

#include <string>

#include "dimension_of.hpp"
#include "orrery/base/error.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/topology/links.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::dimension_of;
using topology::LinkFault;
using topology::Links;
using topology::Shape;
using topology::Topology;

DelayModel with(const std::vector<Dimension>& dimensions, const std::vector<LinkFault>& faults,
                const Rules& rules = {}) {
  Links links(dimensions);
  for (const LinkFault& fault : faults) links.add(fault);
  return DelayModel(Topology(dimensions, links), rules);
}

LinkFault slow(std::uint32_t d, std::vector<NpuId> npus, double bandwidth, double latency) {
  return {d, std::move(npus), {bandwidth, latency}, false};
}

LinkFault failed(std::uint32_t d, std::uint32_t a, std::uint32_t b) { return {d, {NpuId(a), NpuId(b)}, {}, true}; }

Time delay_ns(const DelayModel& delays, std::uint32_t a, std::uint32_t b) {
  return delays.delay(NpuId(a), NpuId(b), Bytes(1000));
}

constexpr Time nanoseconds(std::int64_t count) { return Time::from_ns(count); }

// A hop takes 100 ns, 1000 B take 100 ns. NPU 1: half the bandwidth. NPU 2: three times the latency.
TEST(Links, AMessageTakesWhatTheSlowerOfItsEndsAllows) {
  const auto delays = with({dimension_of(Shape("Ring"), 6)}, {slow(0, {NpuId(1)}, 0.5, 1), slow(0, {NpuId(2)}, 1, 3)});
  EXPECT_EQ(delay_ns(delays, 3, 4), nanoseconds(100 + 100));
  EXPECT_EQ(delay_ns(delays, 0, 1), nanoseconds(100 + 200));
  EXPECT_EQ(delay_ns(delays, 1, 0), nanoseconds(100 + 200));
  EXPECT_EQ(delay_ns(delays, 2, 4), nanoseconds(600 + 100));
  EXPECT_EQ(delay_ns(delays, 1, 2), nanoseconds(300 + 200));
  EXPECT_EQ(delay_ns(delays, 0, 3), nanoseconds(300 + 100));  // passes both NPUs, but has other ends
  EXPECT_EQ(delays.minimum_delay(), nanoseconds(100));
}

// Two faults slow NPU 1: a quarter of the bandwidth, half of the latency. One of them slows NPU 0 too.
TEST(Links, FactorsOfOneNpuMultiply) {
  const auto delays =
      with({dimension_of(Shape("Switch"), 4)}, {slow(0, {NpuId(0), NpuId(1)}, 0.5, 1), slow(0, {NpuId(1)}, 0.5, 0.5)});
  EXPECT_EQ(delay_ns(delays, 0, 2), nanoseconds(200 + 200));
  EXPECT_EQ(delay_ns(delays, 1, 2), nanoseconds(200 + 400));  // the other end keeps its latency
  EXPECT_EQ(delays.minimum_delay(), nanoseconds(100));        // if two ends had the factor 0.5
}

// NPUs (0,0) = 0, (1,0) = 1, (0,1) = 3, (1,1) = 4 of 3 x 2. Only what a dimension's own port carries is slow.
TEST(Links, EveryDimensionHasPortsOfItsOwn) {
  const std::vector<Dimension> dimensions = {dimension_of(Shape("FullyConnected"), 3), dimension_of(Shape("Ring"), 2)};
  const auto physical = with(dimensions, {slow(1, {NpuId(4)}, 0.25, 1)});
  EXPECT_EQ(delay_ns(physical, 0, 1), nanoseconds(200));
  EXPECT_EQ(delay_ns(physical, 3, 4), nanoseconds(200));
  EXPECT_EQ(delay_ns(physical, 1, 4), nanoseconds(100 + 400));
  EXPECT_EQ(delay_ns(physical, 0, 4), nanoseconds(200 + 100 + 400));
  EXPECT_EQ(delay_ns(with(dimensions, {slow(0, {NpuId(4)}, 0.25, 1)}, {Rounding::down_to_ns, false}), 0, 4),
            nanoseconds(100 + 400));
}

// A Ring of 6 without the link between 5 and 0 is the row 0 .. 5; without that between 2 and 3 the row 3, 4, 5, 0,
// 1, 2.
TEST(Links, ARingLeadsTheOtherWayRound) {
  const std::vector<Dimension> dimensions = {dimension_of(Shape("Ring"), 6)};
  const auto at_the_end = with(dimensions, {failed(0, 5, 0)});
  EXPECT_EQ(delay_ns(at_the_end, 0, 5), nanoseconds(600));
  EXPECT_EQ(delay_ns(at_the_end, 1, 5), nanoseconds(500));
  EXPECT_EQ(delay_ns(at_the_end, 2, 3), nanoseconds(200));
  const auto in_the_middle = with(dimensions, {failed(0, 2, 3), failed(0, 3, 2)});
  EXPECT_EQ(delay_ns(in_the_middle, 3, 2), nanoseconds(600));
  EXPECT_EQ(delay_ns(in_the_middle, 1, 4), nanoseconds(400));
  EXPECT_EQ(delay_ns(in_the_middle, 5, 0), nanoseconds(200));
}

// A FullyConnected of 4 without the link between 1 and 3: messages between them take two hops.
TEST(Links, FullyConnectedGoesByAThirdNpu) {
  const auto delays = with({dimension_of(Shape("FullyConnected"), 4)}, {failed(0, 1, 3)});
  EXPECT_EQ(delay_ns(delays, 3, 1), nanoseconds(300));
  EXPECT_EQ(delay_ns(delays, 1, 2), nanoseconds(200));
}

// Rings of 4 in dimension 1 of 2 x 4: 0, 2, 4, 6 and 1, 3, 5, 7. The first has no link between 2 and 4. A message from
// 0 to 5 goes in dimension 0 first, to 1, and then in the other ring.
TEST(Links, ALinkFailsInItsGroupOnly) {
  const auto delays = with({dimension_of(Shape("Ring"), 2), dimension_of(Shape("Ring"), 4)}, {failed(1, 2, 4)});
  EXPECT_EQ(delay_ns(delays, 2, 4), nanoseconds(400));
  EXPECT_EQ(delay_ns(delays, 3, 5), nanoseconds(200));
  EXPECT_EQ(delay_ns(delays, 2, 5), nanoseconds(200 + 200));
  EXPECT_EQ(delay_ns(delays, 3, 4), nanoseconds(200 + 400));
}

std::string refusal(const std::vector<Dimension>& dimensions, const std::vector<LinkFault>& faults) {
  try {
    with(dimensions, faults);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "accepted";
}

// Faults that are not possible in a Ring of 4, a FullyConnected of 4 and a Switch of 2, and in other shapes.
TEST(Links, RefusesFaultsThatAreNotPossible) {
  const std::vector<Dimension> all = {dimension_of(Shape("Ring"), 4), dimension_of(Shape("FullyConnected"), 4),
                                      dimension_of(Shape("Switch"), 2)};
  const auto expect = [&](const std::vector<LinkFault>& faults, const char* part) {
    EXPECT_NE(refusal(all, faults).find(part), std::string::npos) << refusal(all, faults) << " / " << part;
  };
  EXPECT_EQ(refusal(all, {failed(0, 0, 3), failed(1, 0, 4), failed(1, 0, 8), failed(0, 4, 5)}), "accepted");
  expect({slow(3, {NpuId(0)}, 0.5, 1)}, "found dimension 3; expected a dimension, 0 to 2");
  expect({slow(0, {NpuId(32)}, 0.5, 1)}, "found NPU 32; expected an NPU below 32");
  expect({slow(0, {NpuId(0)}, 0, 1)}, "the factor of bandwidth is 0");
  expect({slow(0, {NpuId(0)}, 1, 1e7)}, "the factor of latency is");
  expect({failed(2, 0, 16)}, "in a Switch each NPU has one link");
  expect({failed(0, 0, 2)}, "are no neighbours on the Ring");
  expect({failed(0, 0, 1), failed(0, 1, 2)}, "cut the Ring of NPU 1 in two");
  expect({failed(0, 0, 4)}, "do not differ in dimension 0 alone");
  expect({failed(0, 3, 3)}, "do not differ in dimension 0 alone");
  expect({failed(1, 0, 4), failed(1, 0, 8), failed(1, 0, 12)}, "no third NPU");
  expect({LinkFault{0, {NpuId(0)}, {}, true}}, "found 1 NPUs of a failed link");
  Dimension tree = dimension_of(Shape("FatTree"), 4);
  tree.parameters = {{"ports", 4}};
  EXPECT_NE(refusal({tree}, {failed(0, 1, 2)}).find("in a FatTree each NPU has one link"), std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Mesh"), 4)}, {failed(0, 1, 2)}).find("cuts the Mesh of NPU 0 in two"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 2)}, {failed(0, 0, 1)}).find("a Ring of 2 has one link"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::network
