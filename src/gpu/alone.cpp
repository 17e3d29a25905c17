// Executes a program by itself: the links of a topology, and one queue of events.
#include "orrery/gpu/alone.hpp"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/gpu/ports.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/pdes/pending_set.hpp"

namespace orrery::gpu {
namespace {

using topology::Fabric;

/// A link as a server of requests, first come, first served.
class AloneLink {
 public:
  AloneLink(const network::LinkDelays& delays, const Fabric::Link& link) : delays_(delays), link_(link) {
    latency_ = delays.passes(link, Bytes(0));
    takes_whole_ = delays.fabric().takes_whole(link);
  }
  const Fabric::Link& link() const { return link_; }
  std::uint32_t dimension() const { return link_.dimension; }
  bool takes_whole() const { return takes_whole_; }
  Time latency() const { return latency_; }

  Time holds(std::uint64_t wire) {
    Known& known = known_[wire % known_.size()];
    if (known.wire != wire) known = {wire, delays_.holds(link_, Bytes(wire))};
    return known.time;
  }
  struct Service {
    Time begin, end;
  };
  /// Serves a request that comes now, and whose last byte comes at `tail`.
  Service serve(Time now, Time tail, std::uint64_t wire, bool passes_data) {
    const Time takes = holds(wire), begin = passes_data ? now : std::max(now, free_);
    const Time hold = std::max(takes, tail - begin);
    free_ = passes_data ? std::max(now, free_) + takes : begin + hold;
    return {begin, begin + hold};
  }

 private:
  struct Known {
    std::uint64_t wire = ~std::uint64_t{0};
    Time time;
  };
  const network::LinkDelays& delays_;
  Fabric::Link link_;
  bool takes_whole_ = false;
  Time latency_, free_;
  std::array<Known, 8> known_;  // times of the last sizes
};

/// The links that a program uses, and the ways over them.
class AloneLinks {
 public:
  AloneLinks(const network::DelayModel& model, std::span<const NpuId> members)
      : fabric_(model.topology()), delays_(fabric_, model.rounding()), members_(members) {}

  using Way = std::vector<std::uint32_t>;  ///< indices of links

  AloneLink& operator[](std::uint32_t link) { return links_[link]; }
  /// Returns the links from a GPU to another one.
  const Way& way(std::uint32_t from, std::uint32_t to) {
    Way& way = ways_[std::uint64_t{from} << 32U | to];
    if (!way.empty()) return way;
    if (from == to) return way = {this->way(from, other(from)).front(), this->way(other(to), to).back()};
    auto link = std::optional(fabric_.first(members_[from], members_[to]));
    while (link) {
      const Fabric::Link found = fabric_.find(*link);
      const auto [known, is_new] = index_.emplace(link->value(), static_cast<std::uint32_t>(links_.size()));
      if (is_new) links_.emplace_back(delays_, found);
      way.push_back(known->second);
      link = fabric_.next(found, members_[to]);
    }
    return way;
  }
  bool continue_over(const AloneLink& link, const AloneLink& next) const {
    return fabric_.continues(link.link(), next.link());
  }
  /// Says whether one switch joins the two GPUs.
  bool are_at_a_switch(std::uint32_t a, std::uint32_t b) {
    const Way& there = way(a, b);
    return there.size() == 2 && links_[there[0]].dimension() == links_[there[1]].dimension() &&
           fabric_.topology().dimension(links_[there[0]].dimension()).shape->has_switch_operations;
  }

 private:
  std::uint32_t other(std::uint32_t gpu) const { return gpu == 0 ? 1 : 0; }

  Fabric fabric_;
  network::LinkDelays delays_;
  std::span<const NpuId> members_;
  std::deque<AloneLink> links_;
  std::unordered_map<std::uint32_t, std::uint32_t> index_;  // of a topology::LinkId
  std::unordered_map<std::uint64_t, Way> ways_;
};

class AloneRun final : public Simulation {
 public:
  AloneRun(const Program& program, const Parameters& parameters, Granularity granularity,
           const network::DelayModel& delays, std::span<const NpuId> members)
      : program_(program),
        parameters_(parameters),
        is_fair_(parameters.arbitration == Arbitration::fair),
        links_(delays, members),
        ports_(program.gpus.size(), Ports(parameters)),
        ends_(program.gpus.size(), Time::max()) {
    for (std::uint32_t g = 0; g < program.gpus.size(); ++g)
      devices_.emplace_back(program, g, parameters, granularity, *this);
  }

  Timing run() {
    for (Device& device : devices_) device.begin();
    while (!events_.empty()) {
      const pdes::Event event = events_.pop();
      now_ = event.time;
      ++num_events_;
      handle(event);
    }
    return result();
  }

  // Of Simulation.
  Time now() const override { return now_; }
  void resume_at(Time time, std::uint32_t, std::coroutine_handle<> coroutine) override {
    push(time, What::resume, 0, reinterpret_cast<std::uintptr_t>(coroutine.address()));
  }
  void send(Time time, const Request& request) override {
    push_request(time, requests_.put({request, nullptr, 0, time, false}), request);
  }
  Time holds(std::uint32_t gpu, std::uint32_t to, std::uint64_t wire) override {
    return links_[links_.way(gpu, to).front()].holds(wire);
  }
  Time move_memory(std::uint32_t gpu, std::uint64_t bytes) override { return ports_[gpu].move(now_, bytes); }
  void finish(std::uint32_t gpu, Time time) override { ends_[gpu] = time; }

 private:
  enum class What : std::uint16_t { resume, arrive, take, left, pass };
  /// A request on its way.
  struct Moving {
    Request request;
    const AloneLinks::Way* way = nullptr;  ///< null: it has not been handed over
    std::uint32_t hop = 0;                 ///< links behind it
    Time tail;                             ///< when its last byte is at the link
    bool has_left = false;                 ///< it is through the ports of its GPU
  };
  /// The parts of a sum that a switch has.
  struct Parts {
    std::uint32_t count = 0;
    Time tail;
  };

  void push(Time time, What what, std::uint32_t slot, std::uint64_t detail = 0, std::uint32_t block = 0) {
    pdes::Event event;
    event.time = time;
    event.order = sequence_++;
    event.kind = static_cast<std::uint16_t>(what);
    event.node = slot;
    event.detail = detail;
    event.target = LpId(block);
    events_.push(event);
  }
  /// Lets a request come to a link. What comes at one time goes on in the order of bursts, then blocks, after all else
  /// of that time.
  void push_request(Time time, std::uint32_t slot, const Request& request) {
    pdes::Event event;
    event.time = time;
    event.order = std::uint64_t{1} << 63U | std::uint64_t{std::min(request.burst, (1U << 24U) - 1)} << 39U |
                  std::uint64_t{request.block & 0x3fffU} << 25U | (sequence_++ & 0x1ffffffU);
    event.kind = static_cast<std::uint16_t>(What::pass);
    event.node = slot;
    events_.push(event);
  }

  void handle(const pdes::Event& event) {
    switch (static_cast<What>(event.kind)) {
      case What::resume:
        return std::coroutine_handle<>::from_address(
                   reinterpret_cast<void*>(static_cast<std::uintptr_t>(event.detail)))  // NOLINT
            .resume();
      case What::arrive: {
        const Request& request = requests_[event.node].request;
        const Time there = ports_[request.to].come(now_, request);
        return there > now_ ? push(there, What::take, event.node) : take(event.node);
      }
      case What::take:
        return take(event.node);
      case What::left:
        return devices_[event.node].left(event.target.value(), event.detail);
      case What::pass:
        return pass(event.node);
    }
  }

  void take(std::uint32_t slot) {
    const Request request = requests_.take(slot).request;
    devices_[request.to].arrive(request);
  }
  /// Lets a request pass the ports of its GPU. Returns whether it is at its first link now.
  bool leave(Moving& moving, std::uint32_t slot) {
    if (moving.hop > 0 || std::exchange(moving.has_left, true)) return true;
    const Request& request = moving.request;
    const Time held = links_[moving.way->front()].holds(request.wire);
    const Time there = ports_[request.from].leave(now_, request, held);
    if (there <= now_) return true;
    moving.tail = there;
    push_request(there, slot, request);
    return false;
  }

  static bool is_for_switch(RequestKind kind) {
    return kind == RequestKind::switch_load || kind == RequestKind::switch_store;
  }

  /// Lets a request pass its next link.
  void pass(std::uint32_t slot) {
    Moving& moving = requests_[slot];
    Request& request = moving.request;
    const bool to_switch = is_for_switch(request.kind) && moving.hop == 0;
    if (to_switch) request.to = member_beside(request);
    if (moving.way == nullptr) moving.way = &links_.way(request.from, request.to);
    if (!leave(moving, slot)) return;
    if (request.kind == RequestKind::switch_part && moving.hop == 1 && !is_last_part(moving))
      return requests_.free(slot);
    const AloneLinks::Way& way = *moving.way;
    AloneLink& link = links_[way[moving.hop]];
    const bool passes_data = is_fair_ && is_control(request.kind) && !request.is_behind_data;
    const auto [begin, end] = link.serve(now_, moving.tail, request.wire, passes_data);
    if (moving.hop == 0 && request.wants_ack) push(end, What::left, request.from, request.held, request.block);
    ++moving.hop;
    moving.tail = end + link.latency();
    if (moving.hop == way.size()) return push(moving.tail + delay_of(request.kind, parameters_), What::arrive, slot);
    const AloneLink& next = links_[way[moving.hop]];
    const bool is_whole = !links_.continue_over(link, next) || next.takes_whole();
    const Time there = is_whole ? moving.tail : begin + link.latency();
    if (!to_switch) return push_request(there, slot, request);
    Moving copy = moving;
    requests_.free(slot);
    for (const std::uint32_t member : program_.groups[copy.request.group]) {
      copy.request.to = member;
      copy.way = &links_.way(copy.request.from, member);
      push_request(there, requests_.put(copy), copy.request);
    }
  }

  /// Returns a member of the group that the switch joins with the source of a request.
  std::uint32_t member_beside(const Request& request) {
    const auto& group = program_.groups[request.group];
    const std::uint32_t other = group[0] == request.from ? group[1] : group[0];
    for (const std::uint32_t member : group)
      if (member != request.from && !links_.are_at_a_switch(request.from, member))
        throw Error(ErrorCode::bad_input, {.file = program_.file},
                    fmt::format("the switch adds up or multiplies data of GPUs {} and {}, which no switch joins",
                                request.from, member),
                    "GPUs of one group of a Switch dimension");
    return other;
  }

  /// Counts a part of a sum that is at the switch. Returns whether it is the last one: it goes on for all.
  bool is_last_part(Moving& moving) {
    const Request& request = moving.request;
    const auto found = parts_.try_emplace(std::uint64_t{request.to} << 32U | request.tag).first;
    Parts& parts = found->second;
    parts.tail = std::max(parts.tail, moving.tail);
    if (++parts.count < program_.groups[request.group].size()) return false;
    moving.tail = parts.tail;
    parts_.erase(found);
    return true;
  }

  Timing result() {
    Timing timing;
    timing.ends = ends_;
    timing.events = num_events_;
    std::string waits;
    for (const Device& device : devices_)
      for (const std::string& line : device.waits()) waits += "\n  " + line;
    if (!waits.empty())
      throw Error(ErrorCode::bad_input, {.file = program_.file}, "thread blocks wait for ever:" + waits,
                  "a program in which every wait ends");
    for (std::uint32_t g = 0; g < ends_.size(); ++g)
      if (ends_[g] > timing.whole) {
        timing.whole = ends_[g];
        timing.last = g;
      }
    const Device& last = devices_[timing.last];
    if (!program_.gpus[timing.last].blocks.empty()) timing.stalls = last.stalls(last.last_block());
    timing.end = timing.whole;
    for (const Time time : timing.stalls) timing.end -= time;
    for (const Device& device : devices_)
      for (std::size_t k = 0; k < num_request_kinds; ++k) {
        timing.counts.requests[k] += device.counts().requests[k];
        timing.counts.wire[k] += device.counts().wire[k];
      }
    return timing;
  }

  const Program& program_;
  const Parameters& parameters_;
  bool is_fair_;
  AloneLinks links_;
  std::vector<Ports> ports_;  // [GPUs]
  std::deque<Device> devices_;
  pdes::PendingSet events_;
  Slots<Moving> requests_;
  std::unordered_map<std::uint64_t, Parts> parts_;  // by GPU that asked, and load
  std::vector<Time> ends_;
  Time now_;
  std::uint64_t sequence_ = 0, num_events_ = 0;
};

}  // namespace

Timing simulate_alone(const Program& program, const Parameters& parameters, Granularity granularity,
                      const network::DelayModel& delays, std::span<const NpuId> members) {
  return AloneRun(program, parameters, granularity, delays, members).run();
}

Timing simulate_alone(const Program& program, const Profile& profile, const Parameters& parameters,
                      Granularity granularity) {
  const auto size = static_cast<std::uint32_t>(program.gpus.size());
  const network::DelayModel delays(topology::Topology({{.shape = topology::Shape(profile.shape),
                                                        .size = size,
                                                        .bandwidth = profile.link,
                                                        .latency_ns = profile.latency_ns}}));
  std::vector<NpuId> members;
  for (std::uint32_t g = 0; g < size; ++g) members.emplace_back(g);
  return simulate_alone(program, parameters, granularity, delays, members);
}

}  // namespace orrery::gpu
