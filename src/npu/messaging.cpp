#include "messaging.hpp"

#include <fmt/format.h>

#include "delay_messaging.hpp"
#include "link_messaging.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::npu {

void Messaging::require_size(const Execution& npu, NodeId receive, Bytes size) {
  const std::uint64_t expected = npu.node(receive).size;
  if (size.count() == expected) return;
  const ChannelKey channel = channel_of(npu.npu(), receive);
  throw Error(ErrorCode::bad_input, npu.context().place_of(npu.npu().id, npu.npu().trace->id_of(receive)),
              fmt::format("the receive is of {}, the message from NPU {} with tag {} is of {}",
                          counted(expected, "byte"), channel.other.value(), channel.tag, size.count()),
              "the same size on both sides, message by message",
              "Correct the traces: tags tell messages apart, dependencies fix their order.");
}

bool Messaging::admit(Execution&, pdes::Event&) {
  ensure_failed("a message is one event where messages go over links", std::source_location::current());
}

void Messaging::handle(Execution&, const pdes::Event&) {
  ensure_failed("an NPU handles an event of a message where messages go over links", std::source_location::current());
}

LastArrival Messaging::departure_of(const Execution&, const pdes::Event&) const {
  ensure_failed("the departure of a message that goes over links", std::source_location::current());
}

bool Messaging::arrive(Execution&, const network::Message&, Time) {
  ensure_failed("a message arrives over links where there are none", std::source_location::current());
}

std::unique_ptr<Messaging> make_messaging(const Context& context) {
  if (context.services.links) return std::make_unique<LinkMessaging>();
  return std::make_unique<DelayMessaging>(context.options.senders_wait());
}

}  // namespace orrery::npu
