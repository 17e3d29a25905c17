#include "content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "line_reader.hpp"
#include "orrery/base/text.hpp"
#include "source.hpp"

namespace orrery::trace {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t bytes_of_text = 64;  ///< the bytes that decide whether a file is text
constexpr std::size_t shown_characters = 60;
constexpr std::size_t shown_bytes = 8;

/// Bytes at a position by which files of a kind are told.
struct Signature {
  std::size_t position;
  std::string_view bytes;
  std::string_view kind;
};

constexpr std::array signatures = {
    Signature{0, "\x89HDF\r\n\x1a\n"sv,
              "an HDF5 file, perhaps the results of a run, which 'orrery show results' prints"},
    Signature{0, "\x89PNG\r\n\x1a\n"sv, "a picture (PNG)"},
    Signature{0, "\xff\xd8\xff"sv, "a picture (JPEG)"},
    Signature{0, "%PDF-"sv, "a document (PDF)"},
    Signature{0, "PK\x03\x04"sv, "a zip archive"},
    Signature{0,
              "\xfd"
              "7zXZ\0"sv,
              "xz data"},
    Signature{0, "\x28\xb5\x2f\xfd"sv, "zstd data"},
    Signature{0, "BZh"sv, "bzip2 data"},
    Signature{0, "\x1f\x8b"sv, "gzip data within gzip data"},
    Signature{257, "ustar"sv, "a tar archive"},
    Signature{0, "SQLite format 3\0"sv, "an SQLite database"},
    Signature{0,
              "\x7f"
              "ELF"sv,
              "a program"},
    Signature{0, "\x7f\x10"sv,
              "a GOAL schedule in the binary form of txt2bin: give the text from which txt2bin made it"},
};

const Signature* find_signature(std::string_view beginning) {
  for (const Signature& signature : signatures)
    if (beginning.size() > signature.position && beginning.substr(signature.position).starts_with(signature.bytes))
      return &signature;
  return nullptr;
}

/// Says whether bytes are text: printable ASCII, tabs and line ends.
bool is_text(std::string_view beginning) {
  return std::ranges::all_of(beginning.substr(0, bytes_of_text), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte < 0x7f) || c == '\t' || c == '\n' || c == '\r';
  });
}

/// Returns the first characters of a text, with one blank in place of each run of blanks and line ends, and a question
/// mark in place of each byte that is not ASCII.
std::string excerpt(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (result.size() == shown_characters) return result + "...";
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_blank)
      result += static_cast<unsigned char>(c) < 0x80 ? c : '?';
    else if (!result.ends_with(' '))
      result += ' ';
  }
  return result;
}

/// Says whether a text is TOML or INI: its first line that is no comment is a section in brackets, and an assignment
/// follows.
bool is_toml(std::string_view text) {
  bool has_section = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end), " \t\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    if (has_section && !line.starts_with('[')) return line.find('=') != std::string_view::npos;
    const std::string_view name = trimmed(line, "[]");
    const bool is_name = std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
             c == '.';
    });
    const bool begins_with_letter = !name.empty() && (name.front() < '0' || name.front() > '9');
    if (!line.starts_with('[') || !line.ends_with(']') || !is_name || !begins_with_letter) return false;
    has_section = true;
  }
  return false;
}

/// Says whether a text begins with a line of so many whole numbers.
bool begins_with_numbers(std::string_view text, std::size_t wanted) {
  const auto words = words_in(text.substr(0, text.find_first_of("\r\n")));
  return words.size() == wanted && std::ranges::all_of(words, [](std::string_view word) {
           return word.find_first_not_of("0123456789") == std::string_view::npos;
         });
}

/// Texts of other tools, which no reader takes, and what to give in their place.
struct ForeignText {
  bool (*recognises)(std::string_view text);
  std::string_view description;
};

constexpr bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

/// Says whether a text is JSON whose first member is a list of whole numbers.
bool begins_with_group(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto expect = [&](char wanted) {
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    if (!text.starts_with(wanted)) return false;
    text.remove_prefix(1);
    return true;
  };
  if (!expect('{') || !expect('"')) return false;
  text.remove_prefix(std::min(text.find('"'), text.size()));
  if (!expect('"') || !expect(':') || !expect('[')) return false;
  text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

/// Says whether a line of a text begins with a word.
bool has_line(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (at == 0 || text[at - 1] == '\n') return true;
  return false;
}

bool is_torchtitan(std::string_view text) {
  return is_toml(text) && has_line(text, "[model]") && (has(text, "flavor") || has_line(text, "[parallelism]"));
}

/// Says whether a text has arguments of Megatron-LM, as options of a command line or as YAML.
bool is_megatron(std::string_view text) {
  return has(text, "--num-layers") || has(text, "--tensor-model-parallel-size") ||
         has(text, "tensor_model_parallel_size") ||
         (has(text, "num_layers") && has(text, "hidden_size") && !has(text, "model_type"));
}

bool is_configuration(std::string_view text) { return has_line(text, "system:") || has_line(text, "workload:"); }

constexpr std::array foreign_texts = {
    ForeignText{[](std::string_view text) { return has(text, "comm_type,comm_group,comm_group_size"); },
                "AICB's list of communication (CSV), which says nothing of the compute between it: take the text "
                "workload that AICB writes beside it"},
    ForeignText{[](std::string_view text) { return has(text, "logical-dims"); },
                "a logical topology of ASTRA-sim's ns-3 network: it belongs to --logical-topology-configuration"},
    ForeignText{[](std::string_view text) { return has(text, "TOPOLOGY_FILE ") || has(text, "ENABLE_QCN "); },
                "a configuration of ASTRA-sim's ns-3 network: it belongs to --network-configuration, or to "
                "system.network.graph and system.network.packets.file"},
    ForeignText{
        [](std::string_view text) { return begins_with_numbers(text, 3) && (has(text, "Gbps") || has(text, "Mbps")); },
        "a topology of ASTRA-sim's ns-3 network, which lists links one by one: it belongs to system.network.graph"},
    ForeignText{[](std::string_view text) { return text.starts_with("Nodes ") && has(text, "Connections "); },
                "a matrix of connections of htsim: give 'orrery flows' a FLOWS.yaml, which lists source, destination, "
                "bytes and start of each flow"},
    ForeignText{is_torchtitan,
                "a configuration of torchtitan (TOML): its model belongs to workload.model and its degrees of "
                "parallelism to workload.parallel of a configuration (docs/workloads.md, Arguments of other tools)"},
    ForeignText{is_toml,
                "TOML or INI, such as a configuration of torchtitan, and no trace: its model and parallelism "
                "belong to workload.model and workload.parallel of a configuration"},
    ForeignText{is_megatron,
                "a list of arguments of Megatron-LM: its model belongs to workload.model and its degrees of "
                "parallelism to workload.parallel of a configuration (docs/workloads.md, Arguments of other tools)"},
    ForeignText{[](std::string_view text) { return text.starts_with("Nodes ") && has(text, "Tiers "); },
                "a topology of htsim: describe its tiers as a dimension of shape FatTree in system.network.dimensions"},
    ForeignText{[](std::string_view text) {
                  return text.starts_with("infrastructure:") ||
                         (has(text, "components:") && (text.starts_with("device:") || text.starts_with("devices:")));
                },
                "a description of InfraGraph, which lists devices and links one by one: it belongs to "
                "system.network.graph, and 'orrery show graph FILE' shows it"},
    ForeignText{
        [](std::string_view text) { return text.starts_with('<') && has(text, "<graphs"); },
        "a graph of NCCL, which lists channels and no bandwidths of links: take the topology, which NCCL writes "
        "to NCCL_TOPO_DUMP_FILE"},
    ForeignText{[](std::string_view text) { return text.starts_with('<') && has(text, "type=\"Machine\""); },
                "a topology of hwloc, which knows no links between GPUs: take that of NCCL, which NCCL writes to "
                "NCCL_TOPO_DUMP_FILE"},
    ForeignText{
        [](std::string_view text) { return text.starts_with('<') && has(text, "<system") && has(text, "<cpu"); },
        "a topology of NCCL or RCCL: 'orrery convert FILE --output system.yaml' makes a system of it, and a generated "
        "graph takes it as server: {topology: FILE}"},
    ForeignText{[](std::string_view text) { return text.starts_with('<') && has(text, "<algo"); },
                "an algorithm of MSCCL (XML): it belongs to system.collectives.custom"},
    ForeignText{[](std::string_view text) {
                  return text.starts_with('{') && has(text, "\"collective\"") &&
                         (has(text, "\"gpus\"") || has(text, "\"num_threads_per_block\""));
                },
                "an execution plan of MSCCL++: it belongs to system.collectives.custom"},
    ForeignText{[](std::string_view text) { return has(text, "\"traceEvents\""); },
                "a trace for Chrome's viewer without the events of PyTorch's profiler: record with "
                "ProfilerActivity.CPU and ProfilerActivity.CUDA"},
    ForeignText{[](std::string_view text) { return text.starts_with('[') && has(text, "\"ph\""); },
                "a list of events for Chrome's viewer without those of PyTorch's profiler: record with "
                "ProfilerActivity.CPU and ProfilerActivity.CUDA"},
    ForeignText{begins_with_group, "a list of process groups: it belongs to workload.groups (--groups)"},
    ForeignText{[](std::string_view text) { return has(text, "\"topology-name\""); },
                "a network of ASTRA-sim 1.0: it belongs to --network-configuration"},
    ForeignText{
        [](std::string_view text) { return has_line(text, "scheduling-policy:") && has(text, "implementation:"); },
        "a system of ASTRA-sim 1.0: it belongs to --system-configuration"},
    ForeignText{[](std::string_view text) { return has_line(text, "topology:") && has(text, "["); },
                "a network of ASTRA-sim: it belongs to --network-configuration"},
    ForeignText{is_configuration, "a configuration of Orrery: 'orrery check FILE' and 'orrery run FILE' take it"},
    ForeignText{[](std::string_view text) { return has(text, "npus_count:") || has(text, "\"npus_count\""); },
                "a network of ASTRA-sim: it belongs to --network-configuration"},
    ForeignText{[](std::string_view text) {
                  return has(text, "-implementation\"") || has(text, "\"preferred-dataset-splits\"");
                },
                "a system of ASTRA-sim: it belongs to --system-configuration"},
    ForeignText{[](std::string_view text) { return has(text, "\"memory-type\""); },
                "a remote memory of ASTRA-sim: it belongs to --remote-memory-configuration"},
};

/// Returns what a topology of ns-3 is whose first line has as many numbers as no known kind; nothing for other texts.
std::optional<std::string> describe_other_ns3(std::string_view text) {
  if (!has(text, "Gbps") && !has(text, "Mbps")) return std::nullopt;
  for (const std::size_t numbers : {std::size_t{2}, std::size_t{4}, std::size_t{5}, std::size_t{6}, std::size_t{7}})
    if (begins_with_numbers(text, numbers))
      return fmt::format(
          "a topology of ns-3 whose first line has {} numbers: that of HPCC and ASTRA-sim has 3 (nodes, switches, "
          "links), "
          "and that of SimAI has 5 and the name of the GPU",
          numbers);
  return std::nullopt;
}

/// Returns the first entry that recognises a text; the end if none does.
auto find_foreign(std::string_view beginning) {
  const std::string_view text = trimmed(beginning, " \t\r\n");
  return std::ranges::find_if(foreign_texts, [&](const auto& each) { return each.recognises(text); });
}

}  // namespace

bool is_known_kind(std::string_view beginning) { return find_signature(beginning) != nullptr || is_text(beginning); }

std::optional<std::string> describe_foreign(std::string_view beginning) {
  if (const Signature* const signature = find_signature(beginning)) return std::string(signature->kind);
  if (!is_text(beginning)) return std::nullopt;
  if (auto topology = describe_other_ns3(trimmed(beginning, " \t\r\n"))) return topology;
  const auto found = find_foreign(beginning);
  if (found == foreign_texts.end() || found->recognises == is_configuration) return std::nullopt;
  return std::string(found->description);
}

std::string describe_content(std::string_view beginning) {
  if (const Signature* const signature = find_signature(beginning))
    return fmt::format("the file is {}", signature->kind);
  if (is_text(beginning)) {
    const std::string_view text = trimmed(beginning, " \t\r\n");
    if (const auto topology = describe_other_ns3(text)) return fmt::format("the file is {}", *topology);
    if (const auto foreign = find_foreign(beginning); foreign != foreign_texts.end())
      return fmt::format("the file is {}", foreign->description);
    const std::string_view kind = text.starts_with('{') || text.starts_with('[') ? "JSON"
                                  : text.starts_with('<')                        ? "XML"
                                                                                 : "text";
    return fmt::format("the file is {} and begins with '{}'", kind, shown(excerpt(text)));
  }
  std::string hexadecimal;
  for (const char c : beginning.substr(0, shown_bytes))
    hexadecimal += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  return fmt::format("the file begins with the bytes{}", hexadecimal);
}

}  // namespace orrery::trace
