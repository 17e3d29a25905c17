#include "orrery/network/link_order.hpp"

#include <gtest/gtest.h>

namespace orrery::network {
namespace {

constexpr LpId lowest_link{100};

Time at_ns(std::int64_t count) { return Time::from_ns(count); }
EventPlace place_sent_by(std::uint32_t npu, std::int64_t at) {
  return EventPlace::first_of(NpuId(npu)).next(at_ns(at), 0);
}
pdes::Event coming_event(std::uint32_t slot, std::int64_t at, LpId from) {
  pdes::Event event = pdes::Event::make(at_ns(at), pdes::Stage::server, from, 0, lowest_link);
  event.node = slot;
  return event;
}

// The message in slot 0 has a place, that in slot 1 has none. A message without a place stands where its source would
// send it now.
TEST(LinkOrder, AMessageWithoutAPlaceComesFromItsSource) {
  LinkOrder order(lowest_link);
  order.keep(0, place_sent_by(3, 5));
  EXPECT_TRUE(order.knows(0));
  EXPECT_FALSE(order.knows(1));
  EXPECT_EQ(order.offered(coming_event(0, 5, LpId(3)), NpuId(3)), place_sent_by(3, 5));
  EXPECT_EQ(order.offered(coming_event(1, 7, LpId(4)), NpuId(4)), place_sent_by(4, 7));
}

// A message comes from a link, not from an NPU: the event that brings it hands it on, so its place is one step later.
TEST(LinkOrder, ALinkHandsAMessageOnInAnEventOfItsOwn) {
  LinkOrder order(lowest_link);
  order.keep(0, place_sent_by(3, 5));
  EXPECT_EQ(order.offered(coming_event(0, 9, lowest_link), NpuId(3)), place_sent_by(3, 5).next(at_ns(9), 0));
}

// Two messages come at 5 ns, and the link serves each for 10 ns. The second one is handed on because of the end of the
// first one's service.
TEST(LinkOrder, AMessageThatHasWaitedFollowsTheServiceBeforeIt) {
  LinkOrder order(lowest_link);
  EventPlace last;
  order.keep(0, place_sent_by(0, 5));
  order.keep(1, place_sent_by(1, 5));
  order.note_service(last, coming_event(0, 5, LpId(0)), NpuId(0), at_ns(0), at_ns(5));
  EXPECT_EQ(last, place_sent_by(0, 5));
  const EventPlace first_end = last.beside();
  order.note_service(last, coming_event(1, 5, LpId(1)), NpuId(1), at_ns(15), at_ns(15));
  EXPECT_EQ(order.at(1), first_end.next(at_ns(15), 0));
  EXPECT_EQ(last, order.at(1));
}

// A receipt takes the place of its message, and gives it up once. A slot that takes another message has no place.
TEST(LinkOrder, PlacesAreTakenOnce) {
  LinkOrder order(lowest_link);
  order.keep(0, place_sent_by(2, 1));
  const pdes::Event receipt = pdes::Event::make(at_ns(8), pdes::Stage::client, lowest_link, 4, LpId(2));
  order.keep_receipt(receipt, 0);
  EXPECT_FALSE(order.packed_receipt(receipt).empty());
  EXPECT_EQ(order.take(receipt, false), place_sent_by(2, 1));
  EXPECT_FALSE(order.take(receipt, false).is_known());
  EXPECT_TRUE(order.packed_receipt(receipt).empty());
  order.forget(0);
  EXPECT_FALSE(order.take(coming_event(0, 9, lowest_link), true).is_known());
}

}  // namespace
}  // namespace orrery::network
