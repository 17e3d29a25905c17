#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calendar.hpp"
#include "layout.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/network/flit_rules.hpp"
#include "sources.hpp"

namespace orrery::network::flit {

/// What the link behind a port of a router has done.
struct LinkCounts {
  std::uint64_t flits = 0;
  std::uint64_t starved = 0;        ///< cycles in which a flit waited for the link and had no credit
  std::uint64_t starved_until = 0;  ///< the cycle after the last one that `starved` counts
  std::int64_t occupancy = 0;       ///< cycles in which credits came back less those in which flits were sent, summed
  std::uint32_t used = 0;           ///< flits sent and not given back
  std::uint32_t peak = 0;           ///< most of them at a time
};

/// Input-queued routers with virtual channels and credits, cycle by cycle (docs/flit-networks.md). In each cycle flits
/// and credits arrive and NPUs inject, then routers allocate virtual channels and their switches from what there is at
/// the begin of the cycle, and then the grants take effect. Only routers in which something waits are visited. No cycle
/// allocates memory once the buckets of the calendar have grown.
///
/// A *port* is counted over all routers. A *channel* is a virtual channel of a port: port * virtual-channels + number.
class Routers {
 public:
  /// A packet of which the last flit is at its NPU.
  struct Delivered {
    std::uint32_t npu;
    std::uint64_t note;
  };

  /// `stream`: a number that tells the draws of networks of one seed apart.
  Routers(const Layout& layout, const FlitRules& rules, std::uint32_t stream = 0);

  const Layout& layout() const { return layout_; }
  std::uint64_t cycle() const { return calendar_.now(); }
  /// Returns whether nothing is under way, credits included.
  bool is_idle() const { return calendar_.is_empty() && sources_.is_idle() && totals_.waiting == 0; }
  /// Goes on at a later cycle. Nothing may be under way.
  void skip_to(std::uint64_t cycle) { calendar_.skip_to(cycle); }

  /// Adds a packet to the queue of an NPU. `note` comes back when the packet has arrived. O(1).
  void inject(std::uint32_t from, std::uint32_t to, std::uint32_t flits, std::uint64_t note);
  /// Returns whether an NPU has injected all its packets.
  bool has_injected_all(std::uint32_t npu) const { return sources_.is_empty(npu); }
  /// Simulates the present cycle and goes on to the next one.
  void step();
  /// Returns the packets that arrived in the last cycle. An NPU acts on them in the present one.
  std::span<const Delivered> delivered() const { return delivered_; }

  std::uint64_t flit_hops() const { return totals_.flit_hops; }  ///< routers that flits have passed
  std::uint64_t flits_delivered() const { return totals_.delivered; }
  const SourceCounts& source(std::uint32_t npu) const { return sources_.counts(npu); }
  /// Returns the flits in the buffer behind the link of a port or on their way there, summed over cycles.
  std::uint64_t occupancy(std::uint32_t port) const {
    const LinkCounts& link = outputs_.links[port];
    return static_cast<std::uint64_t>(link.occupancy) + link.used * calendar_.now();
  }
  const LinkCounts& link(std::uint32_t port) const { return outputs_.links[port]; }

  /// Writes or reads the whole state.
  void serialize(Archive& archive) {
    archive(draws_, inputs_, outputs_, packets_, sources_, calendar_, live_, totals_);
  }

 private:
  struct Packet {
    std::uint64_t note = 0;
    std::uint32_t to = 0;
    std::uint32_t part = 0;  ///< torus: the half of the virtual channels that it takes in its present dimension
  };
  struct Inputs {
    std::vector<std::uint32_t> flits;                      ///< [channels * buffer] rings
    std::vector<std::uint16_t> first, count;               ///< [channels] of the ring
    std::vector<std::uint32_t> output, range;              ///< [channels] port, and virtual channels, that it asks for
    std::vector<std::uint8_t> granted;                     ///< [channels] virtual channel that it has there
    std::vector<std::uint32_t> busy, active;               ///< [ports] channels with a packet in front; with a grant
    std::vector<std::uint32_t> wait_channel, wait_switch;  ///< [ports] channels that ask
    std::vector<std::uint32_t> next_output;                ///< [channels] pointer of the allocation of channels
    std::vector<std::uint32_t> next_channel, next_port;    ///< [ports] pointers of the allocation of the switch

    void serialize(Archive& archive) {
      archive(flits, first, count, output, range, granted, busy, active, wait_channel, wait_switch, next_output,
              next_channel, next_port);
    }
  };
  struct Outputs {
    std::vector<std::uint16_t> used;                ///< [channels] flits sent and not given back
    std::vector<std::uint32_t> free, credit, room;  ///< [ports] channels that no packet has; with credit for a flit,
                                                    ///< and with what a packet needs
    std::vector<std::uint32_t> next_input;          ///< [channels] pointer of the allocation of channels
    std::vector<std::uint32_t> next_port;           ///< [ports] pointer of the allocation of the switch
    std::vector<LinkCounts> links;                  ///< [ports]

    void serialize(Archive& archive) { archive(used, free, credit, room, next_input, next_port, links); }
  };
  /// The nearest request for each output of an allocation.
  struct Requests {
    struct Best {
      std::uint32_t distance = ~0U;  ///< from the pointer of the output
      std::uint32_t channel = 0;     ///< channel that asks
    };
    std::vector<Best> best;            ///< [outputs]
    std::vector<std::uint32_t> asked;  ///< outputs with a request

    void add(std::uint32_t output, std::uint32_t distance, std::uint32_t channel) {
      Best& own = best[output];
      if (own.distance == ~0U) asked.push_back(output);
      if (distance < own.distance) own = {distance, channel};
    }
  };
  struct Draws {
    std::uint64_t seed = 0;
    std::vector<std::uint32_t> count;  ///< [routers]

    void serialize(Archive& archive) { archive(count); }
  };
  struct Totals {
    std::uint64_t flit_hops = 0, delivered = 0;
    std::uint64_t waiting = 0;  ///< channels that ask for something
  };

  void arrive(Calendar::Arrival arrival);
  void give_back(std::uint32_t channel);
  void eject(std::uint32_t flit);
  void become_first(std::uint32_t channel);
  void visit(std::uint32_t router);
  std::uint32_t router_of(std::uint32_t port) const { return layout_.is_crossbar() ? 0 : port / Layout::num_ports; }
  void start_waiting(std::uint32_t router);
  void ask_for_channel(std::uint32_t channel);
  void ask_for_switch(std::uint32_t channel);

  void request_channels(std::uint32_t router);
  void request_channel(std::uint32_t channel, std::uint32_t router);
  void grant_channels(std::uint32_t router);
  void request_switch(std::uint32_t router);
  std::uint32_t pick_request(std::uint32_t router, std::uint32_t port);
  void grant_switch(std::uint32_t router);
  void pass(std::uint32_t channel, std::uint32_t output);
  void leave(std::uint32_t flit, std::uint32_t output_channel, std::uint32_t output);

  void route(std::uint32_t channel);
  void route_on_torus(std::uint32_t channel, std::uint32_t router, std::uint32_t to);
  void route_on_mesh(std::uint32_t channel, std::uint32_t router, std::uint32_t to);
  bool prefers_x(std::uint32_t router, std::uint32_t x_port, std::uint32_t y_port);
  void choose(std::uint32_t channel, std::uint32_t port, std::uint32_t range);
  bool draw(std::uint32_t router);

  std::uint32_t front(std::uint32_t channel) const {
    return inputs_.flits[channel * rules_.buffer + inputs_.first[channel]];
  }

  Layout layout_;
  FlitRules rules_;
  std::uint32_t num_ports_;              // of a router
  std::vector<std::uint32_t> opposite_;  // [ports] Layout::opposite_ports
  Draws draws_;
  Inputs inputs_;
  Outputs outputs_;
  Slots<Packet> packets_;
  Sources sources_;
  Calendar calendar_;
  std::vector<std::uint32_t> live_;  // [routers] channels that ask for something
  Requests channel_requests_, switch_requests_;
  std::vector<Delivered> delivered_;
  Totals totals_;
};

}  // namespace orrery::network::flit
