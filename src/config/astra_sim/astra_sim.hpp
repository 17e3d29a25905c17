#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "key_table.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"

namespace orrery::config {

// The descriptors of ASTRA-sim's keys and flags, and how its files are read with them.

/// The lists of network.yml, which have one entry for each dimension.
struct NetworkLists {
  std::vector<topology::Shape> shapes;
  std::vector<std::uint32_t> sizes;
  std::vector<double> bandwidths;  ///< GB/s of 2^30 bytes
  std::vector<double> latencies;   ///< ns
};
const Keys<NetworkLists>& network_yml_keys();
const Keys<Configuration>& system_json_keys();
const Keys<Configuration>& remote_memory_json_keys();
const Keys<AstraSimInputs>& astra_sim_flags();

/// Each of these functions reads one file and notes its faults.
void read_network_yml(const AstraSimInputs& files, Reading& reading);
/// Reads the configuration of ns-3, its topology and the logical dimensions on it.
void read_ns3_network(const AstraSimInputs& files, Reading& reading);
void read_system_json(const AstraSimInputs& files, Reading& reading);
void read_remote_memory_json(const AstraSimInputs& files, Reading& reading);

// The files of ASTRA-sim 1.0 are told by their content and read as if they were those of ASTRA-sim 2.

/// Parses network.yml, or the network file (JSON) of ASTRA-sim 1.0.
Value parse_astra_sim_network(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults);
/// Parses system.json, or the system file (lines of `key: value`) of ASTRA-sim 1.0.
Value parse_astra_sim_system(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults);

/// Reads ASTRA-sim's files. Faults are noted; what is faulty keeps its default.
Configuration read_astra_sim(const AstraSimInputs& files, bool system_only, Faults& faults);

// The types of values that ASTRA-sim writes without a unit.

extern const ValueKind<bool> zero_or_one_kind;
extern const ValueKind<double> positive_kind, plain_nanoseconds_kind;
extern const ValueKind<Bandwidth> plain_bandwidth_kind;

/// Returns the type of switches, which are 0 or 1, or false or true.
constexpr Type<bool> zero_or_one() { return zero_or_one_kind; }
/// Returns the type of numbers of more than 0; `unit` is what tables say.
constexpr Type<double> positive_number(std::string_view unit) { return {positive_kind, {.text = unit}}; }
/// Returns the type of bandwidths in GB/s of 10^9 bytes.
constexpr Type<Bandwidth> plain_bandwidth() { return plain_bandwidth_kind; }
/// Returns the type of times in ns, 0 to 1000 s.
constexpr Type<double> plain_nanoseconds() { return plain_nanoseconds_kind; }

/// Reads a file, keeps its text among the inputs under `input_name`, and gives its top mapping to `read`.
template <class Parse, class Read>
void with_file(const std::filesystem::path& path, const std::string& input_name, Reading& reading, Parse parse,
               Read read) {
  reading.faults.attempt([&] {
    const auto origin = std::make_shared<const Origin>(Origin{path.string(), path.parent_path()});
    std::string text = read_text(path);
    const Value root = parse(text, origin, reading.faults);
    std::ranges::move(root.all_notes(), std::back_inserter(reading.configuration.warnings));
    reading.configuration.inputs.emplace_back(input_name, std::move(text));
    if (root.kind == Value::Kind::null)
      throw Error(ErrorCode::bad_input, {.file = path.string()}, "the file is empty", "a mapping of keys to values");
    read(root);
  });
}

/// Adds one warning to the configuration that names the entries of `section` that are not known, and
/// `reading.without_effect`, which it empties. It points out which known keys may be meant.
void warn_without_effect(const Section& section, const std::filesystem::path& file, Reading& reading);

}  // namespace orrery::config
