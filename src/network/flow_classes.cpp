#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/model.hpp"

namespace orrery::network {
namespace {

constexpr std::size_t num_size_ranges = 10;

auto place_of(const FlowRecord& flow) { return std::tuple(flow.source, flow.number); }

/// Returns the least value that so many thousandths of the values do not exceed. The values ascend.
double percentile(std::span<const double> values, std::size_t thousandths) {
  const std::size_t rank = (values.size() * thousandths + 999) / 1000;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;  // ascending, so that the sum does not depend on the order of flows
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = percentile(values, 500),
          .p90 = percentile(values, 900),
          .p95 = percentile(values, 950),
          .p99 = percentile(values, 990),
          .p99_9 = percentile(values, 999),
          .most = values.back()};
}

FlowClass class_of(FlowClass::Kind kind, std::int32_t label, std::span<const FlowRecord* const> flows) {
  FlowClass made{.kind = kind, .label = label, .flows = flows.size()};
  std::vector<double> times, slowdowns;
  made.least_bytes = ~std::uint64_t{0};
  for (const FlowRecord* const flow : flows) {
    made.least_bytes = std::min(made.least_bytes, flow->bytes);
    made.most_bytes = std::max(made.most_bytes, flow->bytes);
    times.push_back(static_cast<double>((flow->received - flow->start).ps()));
    slowdowns.push_back(slowdown_of(*flow));
  }
  made.time = spread_of(std::move(times));
  made.slowdown = spread_of(std::move(slowdowns));
  return made;
}

/// Adds the classes by size. The flows ascend in bytes. Equal sizes are in one class.
void add_sizes(std::span<const FlowRecord* const> flows, std::vector<FlowClass>& classes) {
  std::size_t first = 0;
  for (std::size_t range = 1; range <= num_size_ranges; ++range) {
    std::size_t end = std::max(flows.size() * range / num_size_ranges, first);
    while (end > first && end < flows.size() && flows[end]->bytes == flows[end - 1]->bytes) ++end;
    if (end > first)
      classes.push_back(class_of(FlowClass::Kind::size, FlowRecord::no_label, flows.subspan(first, end - first)));
    first = end;
  }
}

}  // namespace

PacketRecords MessageNetwork::packet_records() const { return {}; }

void put_in_order(PacketRecords& records) {
  std::ranges::sort(records.links, {},
                    [](const FlowLinkRecord& use) { return std::tuple(use.link, use.source, use.number); });
  std::ranges::sort(records.pauses, {}, &PauseRecord::link);
  std::ranges::sort(records.connections, {}, [](const ConnectionRecord& connection) {
    return std::tuple(connection.source, connection.destination, connection.number);
  });
  std::uint32_t shift = 0;
  for (const QueueRecord& queue : records.queues) shift = std::max(shift, queue.shift);
  for (QueueRecord& queue : records.queues) {
    queue.bin >>= shift - queue.shift;
    queue.shift = shift;
  }
  std::ranges::sort(records.queues, {}, [](const QueueRecord& queue) { return std::pair(queue.link, queue.bin); });
  std::vector<QueueRecord> joined;
  for (const QueueRecord& queue : records.queues) {
    if (joined.empty() || joined.back().link != queue.link || joined.back().bin != queue.bin) {
      joined.push_back(queue);
      continue;
    }
    QueueRecord& into = joined.back();
    into.waiting += queue.waiting;
    into.deepest = std::max(into.deepest, queue.deepest);
    into.stopped += queue.stopped;
    into.marks += queue.marks;
  }
  records.queues = std::move(joined);
}

std::vector<FlowRecord> join_arrivals(FlowRecords records) {
  std::ranges::sort(records.begun, {}, place_of);
  for (const FlowRecords::Arrival& arrival : records.arrivals) {
    const auto found =
        std::ranges::lower_bound(records.begun, std::tuple(arrival.source, arrival.number), {}, place_of);
    ensure(found != records.begun.end() && place_of(*found) == std::tuple(arrival.source, arrival.number),
           "a message that has come has begun");
    found->received = arrival.received;
  }
  return std::move(records.begun);
}

double slowdown_of(const FlowRecord& flow) {
  const Time took = flow.received - flow.start;
  return flow.alone > Time::zero() ? static_cast<double>(took.ps()) / static_cast<double>(flow.alone.ps()) : 1;
}

std::vector<FlowClass> classify(const std::vector<FlowRecord>& flows) {
  std::vector<const FlowRecord*> ended;
  std::map<std::int32_t, std::vector<const FlowRecord*>> labels;
  for (const FlowRecord& flow : flows) {
    if (flow.received == FlowRecord::never) continue;
    ended.push_back(&flow);
    labels[flow.label].push_back(&flow);
  }
  std::vector<FlowClass> classes;
  if (ended.empty()) return classes;
  classes.push_back(class_of(FlowClass::Kind::all, FlowRecord::no_label, ended));
  std::ranges::stable_sort(ended, {}, &FlowRecord::bytes);
  add_sizes(ended, classes);
  const bool has_labels = labels.size() > 1 || labels.begin()->first != FlowRecord::no_label;
  for (const auto& [label, its] : labels)
    if (has_labels) classes.push_back(class_of(FlowClass::Kind::label, label, its));
  return classes;
}

}  // namespace orrery::network
