#include "orrery/graphfile/ns3_config.hpp"

#include <fmt/format.h>

#include "astra_sim.hpp"
#include "keys/keys.hpp"
#include "keys/packets.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/network/packet_graph.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view logical_expected = R"(a list of sizes such as ["8", "4"], innermost first)";

/// Reads the sizes of dimensions, which ASTRA-sim writes as texts.
std::vector<std::uint32_t> read_logical_dimensions(const Value& root, Reading& reading) {
  Section section(&root, "", root, reading.faults);
  std::vector<std::uint32_t> sizes;
  if (const Value* const dims = section.need("logical-dims", logical_expected))
    for (const Value& item : as_list(*dims, "logical-dims", logical_expected))
      sizes.push_back(static_cast<std::uint32_t>(
          parse_count(as_text(item, "logical-dims", "a size"), 1, 1U << 24U, item.place("logical-dims"))));
  return sizes;
}

}  // namespace

void read_ns3_network(const AstraSimInputs& files, Reading& reading) {
  Configuration& target = reading.configuration;
  network::Options& options = target.execution.network;
  reading.faults.attempt([&] {
    std::string text = read_text(files.network);
    options.model = network::ModelName("packet");
    options.packets = network::PacketPresetName("astra-sim-ns3")->make();
    options.packets.completion = network::PacketCompletion::acknowledged;
    options.packets.tick = Time::from_ns(1);
    const graphfile::Ns3Config config = graphfile::read_ns3_config(text, files.network, options.packets);
    if (std::string notice = config.notice(files.network); !notice.empty())
      target.warnings.push_back(std::move(notice));
    options.graph =
        std::make_shared<const network::GivenGraph>(graphfile::read_ns3_graph(text, files.network, target.warnings));
    target.inputs.emplace_back("network.yml", std::move(text));
    if (files.logical.empty())
      throw Error(ErrorCode::usage, {.key = "--logical-topology-configuration"}, "found no such option",
                  "the file with the logical dimensions, which ASTRA-sim's ns-3 network needs too");
  });
  if (!options.graph || files.logical.empty()) return;
  with_file(files.logical, "logical.json", reading, parse_json, [&](const Value& root) {
    for (const std::uint32_t size : read_logical_dimensions(root, reading)) {
      topology::Dimension& dimension = target.dimensions.emplace_back();
      dimension.shape = topology::Shape("Switch");
      dimension.size = size;
    }
    if (!target.dimensions.empty()) take_delays_of_graph(target, {.file = files.logical.string()});
  });
}

}  // namespace orrery::config
