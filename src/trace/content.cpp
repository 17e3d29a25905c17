#include "content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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
    Signature{0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file, perhaps the results of a run"},
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

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

/// Says whether a text begins as a topology of ns-3: the numbers of nodes, switches and links, the switches, and links
/// such as "0 32 200Gbps 0.0005ms 0".
bool is_ns3_topology(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.find_first_not_of("0123456789 \r") == std::string_view::npos &&
         std::ranges::count(trimmed(first, " \r"), ' ') == 2 && (contains(text, "Gbps") || contains(text, "Mbps"));
}

/// Texts that users have beside traces. What they are is told together with what takes them.
struct DescribedText {
  bool (*recognises)(std::string_view text);
  std::string_view kind;
};
constexpr std::array described_texts = {
    DescribedText{[](std::string_view text) { return contains(text, "comm_type,comm_group,comm_group_size"); },
                  "AICB's list of communication (CSV), which says nothing of the compute between it: take the text "
                  "workload that AICB writes beside it"},
    DescribedText{is_ns3_topology,
                  "a topology of ns-3, a network that Orrery does not have: describe the network as dimensions "
                  "(system.network.dimensions, or npus_count of ASTRA-sim's network.yml)"},
    DescribedText{[](std::string_view text) { return contains(text, "\"logical-dims\""); },
                  "a logical topology for ns-3: its dimensions belong into system.network.dimensions, or npus_count of "
                  "ASTRA-sim's network.yml"},
    DescribedText{[](std::string_view text) {
                    return contains(text, "ENABLE_QCN") || contains(text, "USE_DYNAMIC_PFC_THRESHOLD");
                  },
                  "a configuration of ns-3, a network that Orrery does not have: describe the network as dimensions "
                  "(system.network.dimensions)"},
    DescribedText{[](std::string_view text) {
                    return text.starts_with("Nodes ") && (contains(text, "\nTiers ") || contains(text, "\nPodsize "));
                  },
                  "a topology of htsim, a network that Orrery does not have: describe the network as dimensions "
                  "(system.network.dimensions)"},
    DescribedText{[](std::string_view text) {
                    return text.starts_with("infrastructure:") ||
                           (text.starts_with("device") && contains(text, "components:"));
                  },
                  "a description by InfraGraph, which Orrery does not read: describe the network as dimensions "
                  "(system.network.dimensions)"},
    DescribedText{
        [](std::string_view text) { return contains(text, "npus_count:") || contains(text, "\"npus_count\""); },
        "a network of ASTRA-sim: it belongs to --network-configuration"},
    DescribedText{[](std::string_view text) {
                    return contains(text, "-implementation\"") || contains(text, "\"preferred-dataset-splits\"");
                  },
                  "a system of ASTRA-sim: it belongs to --system-configuration"},
    DescribedText{[](std::string_view text) { return contains(text, "\"memory-type\""); },
                  "a remote memory of ASTRA-sim: it belongs to --remote-memory-configuration"},
};

}  // namespace

bool is_known_kind(std::string_view beginning) { return find_signature(beginning) != nullptr || is_text(beginning); }

std::string describe_content(std::string_view beginning) {
  if (const Signature* const signature = find_signature(beginning))
    return fmt::format("the file is {}", signature->kind);
  if (is_text(beginning)) {
    const std::string_view text = trimmed(beginning, " \t\r\n");
    for (const auto& [recognises, kind] : described_texts)
      if (recognises(text)) return fmt::format("the file is {}", kind);
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
