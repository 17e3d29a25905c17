#include "kineto_libraries.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::trace {
namespace {

/// Returns the name of a function in lower case without template arguments, parameters, blanks, '_' and '-'.
std::string plain_function(std::string_view name) {
  std::string plain;
  constexpr std::string_view anonymous = "(anonymous namespace)";
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(anonymous)) {
      i += anonymous.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '<' || c == '(') break;
    if (c != '_' && c != '-' && c != ' ') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  }
  return plain;
}

bool is_compiled(std::string_view name) { return name.starts_with("triton_"); }

constexpr std::pair<std::string_view, CollectiveKind> collectives[] = {
    {"allreduce", CollectiveKind::all_reduce},
    {"crossdevicereduce", CollectiveKind::all_reduce},
    {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter},
    {"alltoall", CollectiveKind::all_to_all}};

/// Parts of names by which kernels of communication are told whose names tell no collective.
constexpr std::string_view libraries[] = {"multimem", "deepep::", "nvshmem", "mscclpp", "userbuffers"};

}  // namespace

std::optional<CollectiveKind> library_collective(std::string_view name) {
  if (is_compiled(name)) return std::nullopt;
  const std::string plain = plain_function(name);
  for (const auto& [part, kind] : collectives)
    if (plain.find(part) != std::string::npos) return kind;
  return std::nullopt;
}

bool is_library_kernel(std::string_view name) {
  if (is_compiled(name)) return false;
  const std::string plain = plain_function(name);
  const auto has = [&](std::string_view part) { return plain.find(part) != std::string::npos; };
  return std::ranges::any_of(libraries, has) || library_collective(name);
}

std::optional<std::uint64_t> members_of_kernel(std::string_view name) {
  if (plain_function(name).find("crossdevicereduce") == std::string::npos) return std::nullopt;
  const std::size_t first = name.find('<');
  if (first == std::string_view::npos) return std::nullopt;
  std::size_t argument = 0, begin = first + 1;
  int depth = 0;
  for (std::size_t i = begin; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    const bool ends = depth == 0 && (name[i] == ',' || name[i] == '>');
    if (name[i] == '>') --depth;
    if (!ends) continue;
    std::string_view text = name.substr(begin, i - begin);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (argument++ == 1) return whole_in(text);
    if (depth < 0) break;
    begin = i + 1;
  }
  return std::nullopt;
}

CommunicationRecord library_record(std::string_view name, const KinetoArguments& all) {
  CommunicationRecord record;
  record.name = name;
  record.in_bytes = first_tensor_bytes(all);
  if (!name.starts_with("symm_mem::") || !all.values) return record;
  simdjson::dom::array values;
  if (all.values->get(values) != simdjson::SUCCESS) return record;
  for (const simdjson::dom::element value : values)
    if (const auto text = text_in(value); text && !text->empty()) record.group = *text;
  return record;
}

}  // namespace orrery::trace
