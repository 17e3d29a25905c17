#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"
#include "orrery/memory/options.hpp"
#include "orrery/workload/description.hpp"
#include "section.hpp"
#include "value.hpp"

namespace orrery::config {

// The two formats of configurations. Faults are noted; what is faulty keeps its default.

/// Orrery's own. `root` is the text with the overrides applied; reads the files that it names as text inputs too.
Configuration read_own(const Value& root, bool system_only, Faults& faults);

/// `network.dimensions`, appended; returns for how many of them each entry of the list stands: a torus for its rings.
std::vector<std::uint32_t> read_dimensions(Section& network, std::vector<topology::Dimension>& dimensions);
std::string to_text(const topology::Dimension& dimension);
/// Whether an entry of the list may have this shape: "Ring", "Torus2D", ...
bool is_shape(std::string_view word);

/// `workload.model` and `workload.parallel`.
workload::Description read_description(Section& workload);
std::string to_text(const workload::Description& description);
/// "bf16", "fp8", "fp32".
const std::vector<std::pair<std::string_view, workload::Precision>>& precisions();
/// A text in double quotes, which YAML reads back as it is.
std::string in_quotes(std::string_view text);

/// ASTRA-sim's files, which are read here.
Configuration read_astra_sim(const AstraSimInputs& files, bool system_only, Faults& faults);

/// "ring", "direct2", ...: throws Error (bad_input) at `place` with the known names.
collective::Algorithm parse_algorithm(std::string_view text, const Place& place);

/// One algorithm for each item; what is faulty is noted and stands as the ring.
std::vector<collective::Algorithm> parse_algorithms(const std::vector<Value>& items, const std::string& key,
                                                    std::string_view expected, Faults& faults);

/// The kinds of collectives that files may spell out.
std::span<const collective::Kind> custom_kinds();
/// How a format takes the name of a file.
using PathOf = std::filesystem::path (*)(const Value& value, const std::string& key);
/// The file or files of a kind, if the key is there, with the texts of XML among the inputs.
void read_custom(Section& section, std::string_view key, collective::Kind kind, PathOf path_of, Configuration& result);

/// `ID: PREFIX` of nodes that run files of their own: all entries of the mapping.
void read_custom_nodes(Section& section, PathOf path_of, Configuration& result);

/// `system.remote-memory`.
void read_remote_memory(Section section, Configuration& result);
std::string to_text(const memory::RemoteMemoryOptions& memory);
/// A fault at the value of the key if `found` does not divide `of`, a number of `what`.
void require_divisor(Section& section, std::string_view key, std::uint32_t found, std::uint32_t of,
                     std::string_view what);

/// "auto", "data", "ctrl", "both".
const std::vector<std::pair<std::string_view, trace::Dependencies>>& dependency_policies();
const std::vector<std::pair<std::string_view, trace::Streams>>& stream_policies();
/// "auto", "plain", "none".
const std::vector<std::pair<std::string_view, collective::DimensionOrder>>& dimension_orders();
const std::vector<std::pair<std::string_view, collective::ChunkOrder>>& chunk_orders();
const std::vector<std::pair<std::string_view, npu::CommOrder>>& comm_orders();
const std::vector<std::pair<std::string_view, Progress>>& progress_kinds();
/// "error", "report".
const std::vector<std::pair<std::string_view, ExcessPolicy>>& excess_policies();

/// "congestion-unaware", "congestion-aware".
const std::vector<std::pair<std::string_view, network::ModelName>>& network_models();

/// "store-and-forward", "cut-through".
const std::vector<std::pair<std::string_view, network::Switching>>& network_switchings();

/// PREFIX -> "PREFIX.{npu}.et" for all NPUs.
TraceFiles traces_of_prefix(const std::string& prefix, std::uint32_t num_npus);

/// For topology::Links.
topology::LinkFault link_fault(const Perturbation::Links& links);

/// `perturbation`, of NPUs in these dimensions; sets the NPUs' compute speeds too.
void read_perturbation(Section section, Configuration& result);
/// The keys of `perturbation` but for the noise, which is in npu::Options.
std::string to_text(const Perturbation& perturbation);

/// What is written for a meaning.
template <class T>
std::string_view word(const std::vector<std::pair<std::string_view, T>>& words, T meaning) {
  for (const auto& [text, value] : words)
    if (value == meaning) return text;
  return {};
}

/// The product of the sizes; 0 if there are none, one is 0 (not known), or it is above 2^32 - 1.
std::uint32_t count_npus(const std::vector<topology::Dimension>& dimensions);

}  // namespace orrery::config
