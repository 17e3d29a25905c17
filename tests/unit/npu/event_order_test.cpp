#include "event_order.hpp"

#include <gtest/gtest.h>

namespace orrery::npu {
namespace {

// In the natural order events are handled at once, nodes that take no time end together, and no event has a place.
TEST(EventOrder, TheNaturalOrderKeepsNothing) {
  EventOrder order;
  EXPECT_FALSE(order.keep(pdes::Event{}));
  EXPECT_TRUE(order.kept().empty());
  EXPECT_FALSE(order.begins_lowest_first());
  EXPECT_FALSE(order.has_ends());
  order.add_end(NodeId(7), {});
  order.add_receive_end(NodeId(2), {});
  EXPECT_TRUE(order.has_ends());
  EXPECT_FALSE(order.awaits_answer());
  std::vector<NodeId> over;
  order.take_ends(over);
  EXPECT_EQ(over, (std::vector{NodeId(7), NodeId(2)}));
  EXPECT_FALSE(order.has_ends());
  EXPECT_FALSE(order.next_access(NodeId(1), true, Time::zero()).access.is_known());
}

// The places of the natural order are unknown, whatever happens first.
TEST(EventPlaces, TheNaturalOrderKnowsNone) {
  EventPlaces places;
  EXPECT_FALSE(places.are_known());
  EXPECT_FALSE(places.next(Time::from_ns(3)).is_known());
  EXPECT_FALSE(places.next_sending(Time::from_ns(3), Leaving::in_event).is_known());
  places.post(NodeId(1), Time::zero());
  EXPECT_FALSE(places.meet(NodeId(1), pdes::Event{}, Time::zero()).place.is_known());
  EXPECT_FALSE(places.next_cleared(NodeId(1), pdes::Event{}, Time::zero()).is_known());
}

}  // namespace
}  // namespace orrery::npu
