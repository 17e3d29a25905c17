#include "orrery/communicator/communicators.hpp"

#include "wire_format.hpp"

namespace orrery::communicator {

Communicators::Communicators(const Setup& setup, MemberSide::Announce announce)
    : kernel_(setup.kernel),
      here_(setup.hosting.here),
      members_(
          setup, [this](Rank to, const Report& report, std::span<const Time> times) { send(to, report, times); },
          std::move(announce)),
      host_(setup, [this](Rank to, const Report& report, std::span<const Time> times) { send(to, report, times); }) {}

void Communicators::send(Rank to, const Report& report, std::span<const Time> times) {
  if (to == here_) return deliver(here_, report, times);
  wire::pack(report, times, message_);
  kernel_.post(to, message_);
}

void Communicators::receive(Rank from, std::span<const std::byte> message) {
  const Report report = wire::unpack(message, received_);
  deliver(from, report, received_);
}

void Communicators::deliver(Rank from, const Report& report, std::span<const Time> times) {
  if (report.kind == ReportKind::completions)
    members_.complete(report, times);
  else
    host_.receive(from, report, times);
}

}  // namespace orrery::communicator
