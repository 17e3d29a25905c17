#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orrery/network/flow_records.hpp"

namespace orrery::show {

/// What tables of links call them and the messages on them.
struct LinkTexts {
  std::function<std::string(std::uint32_t link)> link;                          ///< "NPU 3 to switch 0"
  std::function<std::string(std::uint32_t source, std::uint32_t number)> flow;  ///< "3 to 7"
};

/// Prints the links on which messages met, and which these were.
void print_meetings(std::span<const network::LinkMeeting> meetings, const LinkTexts& texts);
void print_meetings_as_csv(std::span<const network::LinkMeeting> meetings, const LinkTexts& texts);
nlohmann::ordered_json meetings_json(std::span<const network::LinkMeeting> meetings, const LinkTexts& texts);

/// Prints the deepest queues, and who stopped whom. The records are in the order of network::put_in_order.
void print_queues(const network::PacketRecords& records, std::size_t most_links, const LinkTexts& texts);
/// Prints each interval of each queue.
void print_queues_as_csv(const network::PacketRecords& records, const LinkTexts& texts);
nlohmann::ordered_json queues_json(const network::PacketRecords& records, const LinkTexts& texts);

}  // namespace orrery::show
