#include "link_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/base/time.hpp"

namespace orrery::show {
namespace {

using network::FlowLinkRecord;
using network::LinkMeeting;
using network::PacketRecords;
using network::PauseRecord;
using network::QueueRecord;
using nlohmann::ordered_json;

constexpr std::size_t most_flows_of_line = 8;

/// What one queue was in the whole run.
struct QueueTotal {
  std::uint32_t link = 0;
  std::uint64_t deepest = 0, marks = 0;
  Time when = {};      ///< the interval in which it was the deepest
  double waiting = 0;  ///< bytes times ps
  Time stopped = {};
};

Time start_of(const QueueRecord& queue) { return Time::from_ps(std::int64_t{queue.bin} << queue.shift); }

/// Returns the links whose queues were the deepest, these first.
std::vector<QueueTotal> queue_totals(const PacketRecords& records, std::size_t most) {
  std::vector<QueueTotal> totals;
  for (const QueueRecord& queue : records.queues) {
    if (totals.empty() || totals.back().link != queue.link) totals.push_back({.link = queue.link});
    QueueTotal& total = totals.back();
    if (queue.deepest > total.deepest) {
      total.deepest = queue.deepest;
      total.when = start_of(queue);
    }
    total.marks += queue.marks;
    total.waiting += static_cast<double>(queue.waiting);
    total.stopped += queue.stopped;
  }
  std::erase_if(totals, [](const QueueTotal& total) { return total.deepest == 0; });
  std::ranges::stable_sort(totals, [](const QueueTotal& a, const QueueTotal& b) { return a.deepest > b.deepest; });
  totals.resize(std::min(totals.size(), most));
  return totals;
}

/// Returns when the last interval ends.
Time end_of(const PacketRecords& records) {
  Time end;
  for (const QueueRecord& queue : records.queues)
    end = std::max(end, start_of(queue) + Time::from_ps(std::int64_t{1} << queue.shift));
  return end;
}

}  // namespace

void print_meetings(std::span<const LinkMeeting> meetings, const LinkTexts& texts) {
  if (meetings.empty()) {
    fmt::print("no two flows met on a link\n");
    return;
  }
  fmt::print("links on which the most flows met\n");
  fmt::print("  {:>7} {:>7} {:>11} {:>12}  {:<24} {}\n", "at once", "in all", "at", "sum of waits", "link",
             "flows at that time");
  for (const LinkMeeting& meeting : meetings) {
    std::string flows;
    for (std::size_t i = 0; i < std::min(meeting.met.size(), most_flows_of_line); ++i)
      flows += fmt::format("{}{}", i == 0 ? "" : ", ", texts.flow(meeting.met[i].source, meeting.met[i].number));
    if (meeting.met.size() > most_flows_of_line)
      flows += fmt::format(" and {} more", meeting.met.size() - most_flows_of_line);
    fmt::print("  {:>7} {:>7} {:>11} {:>12}  {:<24} {}\n", meeting.at_once, meeting.flows, readable(meeting.when),
               readable(meeting.waited), texts.link(meeting.link), flows);
  }
}

void print_meetings_as_csv(std::span<const LinkMeeting> meetings, const LinkTexts& texts) {
  fmt::print("link,name,at_once,in_all,when_ps,source,number,flow,first_ps,last_ps,waited_ps\n");
  for (const LinkMeeting& meeting : meetings)
    for (const FlowLinkRecord& use : meeting.met)
      fmt::print("{},{},{},{},{},{},{},{},{},{},{}\n", meeting.link, csv_cell(texts.link(meeting.link)),
                 meeting.at_once, meeting.flows, meeting.when.ps(), use.source, use.number,
                 csv_cell(texts.flow(use.source, use.number)), use.first.ps(), use.last.ps(), use.waited.ps());
}

ordered_json meetings_json(std::span<const LinkMeeting> meetings, const LinkTexts& texts) {
  ordered_json list = ordered_json::array();
  for (const LinkMeeting& meeting : meetings) {
    ordered_json& entry = list.emplace_back(ordered_json{{"link", meeting.link},
                                                         {"name", texts.link(meeting.link)},
                                                         {"at_once", meeting.at_once},
                                                         {"in_all", meeting.flows},
                                                         {"when_ps", meeting.when.ps()},
                                                         {"waited_ps", meeting.waited.ps()}});
    entry["flows"] = ordered_json::array();
    for (const FlowLinkRecord& use : meeting.met)
      entry["flows"].push_back({{"source", use.source},
                                {"number", use.number},
                                {"flow", texts.flow(use.source, use.number)},
                                {"first_ps", use.first.ps()},
                                {"last_ps", use.last.ps()},
                                {"waited_ps", use.waited.ps()}});
  }
  return list;
}

void print_queues(const PacketRecords& records, std::size_t most, const LinkTexts& texts) {
  if (records.queues.empty()) fmt::print("nothing waited in a queue\n");
  const auto totals = queue_totals(records, most);
  const double end = std::max(static_cast<double>(end_of(records).ps()), 1.0);
  if (!totals.empty()) {
    fmt::print("deepest queues, in intervals of {}\n",
               readable(Time::from_ps(std::int64_t{1} << records.queues.front().shift)));
    fmt::print("  {:>11} {:>11} {:>11} {:>9} {:>11}  {}\n", "deepest", "about at", "mean", "marks", "stopped", "link");
  }
  for (const QueueTotal& total : totals)
    fmt::print("  {:>11} {:>11} {:>11} {:>9} {:>11}  {}\n", size_text(total.deepest, 1), readable(total.when),
               size_text(static_cast<std::uint64_t>(total.waiting / end), 1), total.marks, readable(total.stopped),
               texts.link(total.link));
  if (records.pauses.empty()) return;
  std::vector<PauseRecord> pauses = records.pauses;
  std::ranges::stable_sort(pauses, [](const PauseRecord& a, const PauseRecord& b) { return a.total > b.total; });
  pauses.resize(std::min(pauses.size(), most));
  fmt::print("links that were stopped the longest; the end that a link leads to stopped it\n");
  fmt::print("  {:>7} {:>11} {:>11} {:>11} {:>11}  {}\n", "pauses", "in all", "longest", "first", "until", "link");
  for (const PauseRecord& pause : pauses)
    fmt::print("  {:>7} {:>11} {:>11} {:>11} {:>11}  {}\n", pause.pauses, readable(pause.total),
               readable(pause.longest), readable(pause.first), readable(pause.last), texts.link(pause.link));
}

void print_queues_as_csv(const PacketRecords& records, const LinkTexts& texts) {
  fmt::print("link,name,start_ps,interval_ps,mean_queue_bytes,deepest_queue_bytes,marks,stopped_ps\n");
  for (const QueueRecord& queue : records.queues)
    fmt::print("{},{},{},{},{},{},{},{}\n", queue.link, csv_cell(texts.link(queue.link)), start_of(queue).ps(),
               std::int64_t{1} << queue.shift, queue.mean(), queue.deepest, queue.marks, queue.stopped.ps());
}

ordered_json queues_json(const PacketRecords& records, const LinkTexts& texts) {
  ordered_json json;
  json["interval_ps"] = records.queues.empty() ? 0 : std::int64_t{1} << records.queues.front().shift;
  json["queues"] = ordered_json::array();
  for (const QueueRecord& queue : records.queues)
    json["queues"].push_back({{"link", queue.link},
                              {"name", texts.link(queue.link)},
                              {"start_ps", start_of(queue).ps()},
                              {"mean_bytes", queue.mean()},
                              {"deepest_bytes", queue.deepest},
                              {"marks", queue.marks},
                              {"stopped_ps", queue.stopped.ps()}});
  json["pauses"] = ordered_json::array();
  for (const PauseRecord& pause : records.pauses)
    json["pauses"].push_back({{"link", pause.link},
                              {"name", texts.link(pause.link)},
                              {"pauses", pause.pauses},
                              {"total_ps", pause.total.ps()},
                              {"longest_ps", pause.longest.ps()},
                              {"first_ps", pause.first.ps()},
                              {"last_ps", pause.last.ps()}});
  return json;
}

}  // namespace orrery::show
