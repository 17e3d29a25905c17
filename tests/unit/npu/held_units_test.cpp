#include "held_units.hpp"

#include <gtest/gtest.h>

namespace orrery::npu {
namespace {

Time s(double seconds) { return Time::from_ps(static_cast<std::int64_t>(seconds * 1e12)); }

/// Returns when a compute node ends that takes `compute` alone, beside an exchange from 0 to `communication`.
Time end_beside(double compute, double communication, double share) {
  HeldUnits units(share);
  const NodeId node(7);
  units.begin_exchange(Time::zero());
  units.begin_compute(node, Time::zero());
  bool transfers = true;
  Time end = s(compute);
  while (true) {
    if (transfers && s(communication) <= end) {
      units.end_exchange(s(communication));
      transfers = false;
    }
    const Time owed = units.take_owed(node, end);
    if (owed == Time::zero()) return end;
    end += owed;
  }
}

// An exchange c with a share s of the units beside a computation C: C + s c if (1 - s) c <= C; otherwise C / (1 - s).
TEST(HeldUnits, SlowComputeNodesDown) {
  EXPECT_EQ(end_beside(17, 6, 0), s(17));
  EXPECT_NEAR(end_beside(17, 6, 20.0 / 132).seconds(), 17 + 6 * 20.0 / 132, 1e-11);
  EXPECT_NEAR(end_beside(17, 18, 0.25).seconds(), 17 + 18 * 0.25, 1e-11);
  EXPECT_NEAR(end_beside(6, 20, 0.25).seconds(), 8, 1e-10);
}

// Two exchanges at a time hold twice as much; what was before a node does not count for it.
TEST(HeldUnits, CountExchangesBesideTheNode) {
  HeldUnits units(0.1);
  units.begin_exchange(s(0));
  units.begin_exchange(s(1));
  units.begin_compute(NodeId(0), s(2));
  units.end_exchange(s(3));
  EXPECT_NEAR(units.take_owed(NodeId(0), s(4)).seconds(), 0.3, 1e-11);
  units.end_exchange(s(4));
  EXPECT_EQ(units.take_owed(NodeId(0), s(4.3)), Time::zero());
}

}  // namespace
}  // namespace orrery::npu
