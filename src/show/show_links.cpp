#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "link_tables.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/results/read.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;

/// Returns what tables call the messages of a run: the NPUs at their ends.
std::string ends_of(const results::FlowsTable& table, std::uint32_t source, std::uint32_t number) {
  const auto name_of = [](const network::FlowRecord& flow) { return std::pair(flow.source, flow.number); };
  const auto found = std::ranges::lower_bound(table.flows, std::pair(source, number), {}, name_of);
  if (found == table.flows.end() || name_of(*found) != std::pair(source, number))
    return fmt::format("{} #{}", source, number);
  return fmt::format("{} to {}", source, found->destination);
}

}  // namespace

void show_collisions(const ShowCollisionsCommand& command) {
  const results::FlowsTable table = results::read_flows(command.file);
  const LinkTexts texts{[&](std::uint32_t link) { return printable(table.names.of(link)); },
                        [&](std::uint32_t source, std::uint32_t number) { return ends_of(table, source, number); }};
  const auto meetings = network::find_meetings(table.links, command.most_links);
  if (command.form == TableForm::text) return print_meetings(meetings, texts);
  if (command.form == TableForm::csv) return print_meetings_as_csv(meetings, texts);
  print_figures(ordered_json{{"file", command.file.string()}, {"links", meetings_json(meetings, texts)}}, true);
}

void show_queues(const ShowQueuesCommand& command) {
  results::QueuesTable table = results::read_queues(command.file);
  const LinkTexts texts{[&](std::uint32_t link) { return printable(table.names.of(link)); }, {}};
  network::PacketRecords records;
  records.queues = std::move(table.queues);
  records.pauses = std::move(table.pauses);
  if (command.form == TableForm::text) return print_queues(records, command.most_links, texts);
  if (command.form == TableForm::csv) return print_queues_as_csv(records, texts);
  print_figures(queues_json(records, texts), true);
}

}  // namespace orrery::show
