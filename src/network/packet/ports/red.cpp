#include <vector>

#include "orrery/network/packet_rules.hpp"
#include "port_queues.hpp"

namespace orrery::network {
namespace {

/// Random early detection (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993): packets that come to a
/// long queue are marked, or dropped if their transport knows no marks. One packet waits in a slot before the
/// transmitter; those behind it count, without their link headers.
class Red final : public PortQueues {
 public:
  explicit Red(const NodeServices& services)
      : PortQueues(services), weight_(services.system.rules.mean_weight), means_(services.ports.size()) {
    const PacketRules& rules = services.system.rules;
    can_mark_ = !rules.transport->has_connections || rules.control->needs_marks;
  }

  void admit(Port&, Port& out, std::uint32_t slot) override {
    Ports& ports = services_.ports;
    Packet& packet = services_.packets[slot];
    const std::size_t index = ports.index_of(out);
    const std::uint64_t waiting = counted(out);
    if (out.marking.is_on && is_chosen(out, index, waiting)) {
      if (!can_mark_) return ports.drop(out, slot);
      packet.is_marked = true;
      ++out.done.marks;
      ports.observer().marked(out);
    }
    if (waiting + packet.size - link_header > limits_.of(index)) return ports.drop(out, slot);
    ports.enqueue(out, slot);
  }
  void serialize(Port& port, Archive& archive) override { archive(means_[services_.ports.index_of(port)]); }

 private:
  static constexpr std::uint64_t link_header = 2;  // bytes

  std::uint64_t counted(const Port& out) const {
    const PacketQueue& queue = out.queue;
    if (queue.size <= 1) return 0;
    return queue.bytes - services_.packets[queue.first].size - link_header * (queue.size - 1);
  }

  /// Returns whether an arriving packet is marked: always from the upper threshold on, and with a probability that
  /// rises from the lower one on.
  bool is_chosen(Port& out, std::size_t index, std::uint64_t waiting) {
    double& mean = means_[index];
    mean = weight_ * static_cast<double>(waiting) + (1 - weight_) * mean;
    const MarkThresholds& marks = out.marking.thresholds;
    if (waiting <= 1) return false;
    if (mean >= static_cast<double>(marks.most)) return true;
    if (mean < static_cast<double>(marks.least)) return false;
    const double share = (mean - static_cast<double>(marks.least)) / static_cast<double>(marks.most - marks.least);
    return egress_.draw(out) < marks.probability * share;
  }

  double weight_;
  bool can_mark_ = true;
  std::vector<double> means_;  // [ports] bytes
};

}  // namespace

extern const DisciplineType red_discipline;
constinit const DisciplineType red_discipline{
    .name = "red",
    .help = "a queue for each port, which marks packets, or drops those that cannot be marked, as it grows",
    .make = [](const NodeServices& services) -> std::unique_ptr<QueueDiscipline> {
      return std::make_unique<Red>(services);
    },
    .has_queues = true,
    .marks = true,
};

}  // namespace orrery::network
