#include "kineto_arguments.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

namespace orrery::trace {
namespace {

using Json = simdjson::dom::element;

/// Sizes of PyTorch's types, as operators ("c10::Half") and kernels ("Half") name them.
std::optional<std::uint64_t> size_of_type(std::string_view name) {
  if (const auto colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  std::string type(name);
  std::ranges::transform(type, type.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {{"float", 4},
                                                                  {"half", 2},
                                                                  {"bfloat16", 2},
                                                                  {"double", 8},
                                                                  {"long int", 8},
                                                                  {"long", 8},
                                                                  {"int", 4},
                                                                  {"short", 2},
                                                                  {"short int", 2},
                                                                  {"unsigned char", 1},
                                                                  {"signed char", 1},
                                                                  {"char", 1},
                                                                  {"byte", 1},
                                                                  {"bool", 1},
                                                                  {"float8_e5m2", 1},
                                                                  {"float8_e4m3fn", 1},
                                                                  {"float8_e4m3fnuz", 1},
                                                                  {"float8_e5m2fnuz", 1},
                                                                  {"float8_e8m0fnu", 1},
                                                                  {"complexfloat", 8},
                                                                  {"complexdouble", 16}};
  for (const auto& [known, size] : sizes)
    if (type == known) return size;
  return std::nullopt;
}

/// Multiplies; nothing if the product does not fit.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / b) return std::nullopt;
  return a * b;
}

/// Returns the number of elements of the tensor or the tensors whose sizes these are: [4, 2], [[4, 2], [8]].
std::optional<std::uint64_t> elements(const Json& dimensions) {
  simdjson::dom::array list;
  if (dimensions.get(list) != simdjson::SUCCESS || list.size() == 0) return std::nullopt;
  std::uint64_t sum = 0, number = 1;
  bool is_of_tensors = false;
  for (const Json item : list) {
    std::optional<std::uint64_t> next;
    if (item.is_array()) {
      is_of_tensors = true;
      const auto of_tensor = elements(item);
      if (!of_tensor) return std::nullopt;
      sum += *of_tensor;
    } else if (next = whole_in(item); !next || !(next = product(number, *next))) {
      return std::nullopt;
    } else {
      number = *next;
    }
  }
  return is_of_tensors ? sum : number;
}

std::optional<Json> first_of(const Json& list) {
  simdjson::dom::array array;
  if (list.get(array) != simdjson::SUCCESS || array.size() == 0) return std::nullopt;
  return array.at(0).value();
}

bool is_of_communication(std::string_view key) {
  return key == "Collective name" || key.ends_with("nelems") || key.starts_with("Process Group") ||
         key.starts_with("Group size") || key.starts_with("Global rank") || key == "dtype" || key.ends_with(" Rank");
}

void read_communication(std::string_view key, const Json& value, KinetoArguments& all) {
  if (key == "Collective name") {
    if (const auto text = text_in(value)) all.record.name = *text;
  } else if (key == "In msg nelems") {
    all.in_elements = whole_in(value);
  } else if (key == "Out msg nelems") {
    all.out_elements = whole_in(value);
  } else if (key == "dtype") {
    if (const auto text = text_in(value)) all.element_size = size_of_type(*text);
  } else if (key == "Process Group Name") {
    if (const auto text = text_in(value)) all.record.group = *text;
  } else if (key == "Process Group Ranks") {
    all.members = text_in(value);
  } else if (key == "Group size") {
    all.record.group_size = whole_in(value);
  } else if (key == "Global rank start") {
    all.ranks.first = whole_in(value);
  } else if (key == "Global rank stride") {
    all.ranks.stride = whole_in(value);
  } else if (key == "Src Rank") {
    all.ends.source = whole_in(value);
  } else if (key == "Dst Rank") {
    all.ends.destination = whole_in(value);
  }
}

/// Returns the members that lie regularly: so many from `first` on, each `stride` after the one before.
std::vector<std::uint64_t> regular(std::uint64_t first, std::uint64_t stride, std::uint64_t size) {
  std::vector<std::uint64_t> members(size);
  for (std::uint64_t i = 0; i < size; ++i) members[i] = first + i * stride;
  return members;
}

constexpr std::uint64_t most_members = std::uint64_t{1} << 24;

void settle_members(const KinetoArguments& all, CommunicationRecord& record) {
  const std::uint64_t size = record.group_size.value_or(0);
  if (all.members)
    if (auto listed = members_in(*all.members)) {
      record.members = std::move(listed->first);
      record.is_cut = listed->second;
    }
  const bool is_complete =
      record.members && !record.is_cut && (record.members->empty() || record.members->size() == size);
  if (is_complete || size < 2 || size > most_members) return;
  if (all.ranks.first && all.ranks.stride && *all.ranks.stride > 0 && *all.ranks.stride < most_members &&
      *all.ranks.first < most_members) {
    record.members = regular(*all.ranks.first, *all.ranks.stride, size);
    record.is_cut = false;
  } else if (record.is_cut && record.members->size() > 2) {  // all but the last are the first ones
    const auto& known = *record.members;
    const std::uint64_t stride = known[1] - known[0];
    auto made = regular(known[0], stride, size);
    if (std::equal(known.begin(), known.end() - 1, made.begin()) && made.back() == known.back()) {
      record.members = std::move(made);
      record.is_cut = false;
    }
  }
}

}  // namespace

std::optional<std::uint64_t> whole_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> whole_in(const Json& value) {
  std::uint64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  const auto text = text_in(value);
  return text ? whole_in(*text) : std::nullopt;
}

std::optional<std::string_view> text_in(const Json& value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

KinetoArguments read_arguments(const Json& args) {
  KinetoArguments all;
  simdjson::dom::object object;
  if (args.get(object) != simdjson::SUCCESS) return all;
  for (const auto [key, value] : object) {
    if (key == "correlation")
      all.correlation = whole_in(value);
    else if (key == "stream")
      all.stream = whole_in(value);
    else if (key == "device")
      all.device = whole_in(value);
    else if (key == "wait_on_stream")
      all.waited_stream = whole_in(value);
    else if (key == "wait_on_cuda_event_record_corr_id")
      all.event_record = whole_in(value);
    else if (key == "Input Dims")
      all.dimensions = value;
    else if (key == "Input type")
      all.types = value;
    else if (key == "Concrete Inputs")
      all.values = value;
    else if (is_of_communication(key))
      read_communication(key, value, all);
  }
  return all;
}

CommunicationRecord make_record(KinetoArguments& all, bool is_operator) {
  CommunicationRecord record = std::move(all.record);
  // A message of some versions names both ends: the peer is the other one.
  const bool is_receive = record.name.find("recv") != std::string::npos;
  if (const auto& other = is_receive ? all.ends.source : all.ends.destination)
    record.peer = other;
  else if (const auto& only = is_receive ? all.ends.destination : all.ends.source)
    record.peer = only;
  if (all.element_size) {
    if (all.in_elements) record.in_bytes = product(*all.in_elements, *all.element_size);
    if (all.out_elements) record.out_bytes = product(*all.out_elements, *all.element_size);
  }
  if (is_operator && !record.in_bytes && all.dimensions && all.types) {
    const auto dimensions = first_of(*all.dimensions), type = first_of(*all.types);
    const auto name = type ? text_in(*type) : std::nullopt;
    const auto size = name ? size_of_type(*name) : std::nullopt;
    const auto number = dimensions ? elements(*dimensions) : std::nullopt;
    if (size && number) record.in_bytes = product(*number, *size);
  }
  simdjson::dom::array values;
  if (is_operator && all.values && all.values->get(values) == simdjson::SUCCESS && values.size() >= 8) {
    if (!record.group_size) record.group_size = whole_in(values.at(values.size() - 1).value());
    if (!record.peer) record.peer = whole_in(values.at(3).value());
  }
  settle_members(all, record);
  return record;
}

std::optional<std::uint64_t> first_tensor_bytes(const KinetoArguments& all) {
  simdjson::dom::array dimensions, types;
  if (!all.dimensions || all.dimensions->get(dimensions) != simdjson::SUCCESS) return std::nullopt;
  if (!all.types || all.types->get(types) != simdjson::SUCCESS) return std::nullopt;
  auto type = types.begin();
  for (const Json input : dimensions) {
    if (!(type != types.end())) break;
    const auto name = text_in(*type);
    ++type;
    const auto size = name ? size_of_type(*name) : std::nullopt;
    const auto number = elements(input);
    if (size && number) return product(*number, *size);
  }
  return std::nullopt;
}

void CommunicationRecord::complete_with(const CommunicationRecord& other) {
  if (name.empty()) name = other.name;
  if (!in_bytes && !out_bytes) {
    in_bytes = other.in_bytes;
    out_bytes = other.out_bytes;
  }
  if (!group) group = other.group;
  if (!members) {
    members = other.members;
    is_cut = other.is_cut;
  }
  if (!group_size) group_size = other.group_size;
  if (!peer) peer = other.peer;
}

std::optional<std::pair<std::vector<std::uint64_t>, bool>> members_in(std::string_view text) {
  std::pair<std::vector<std::uint64_t>, bool> listed;
  const auto blank = [](char c) { return c == ' ' || c == '"' || c == ','; };
  if (text.starts_with('"') && text.ends_with('"') && text.size() > 1) text = text.substr(1, text.size() - 2);
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    if (blank(text.front())) {
      text.remove_prefix(1);
    } else if (text.starts_with("...")) {
      listed.second = true;
      text.remove_prefix(3);
    } else {
      std::uint64_t rank = 0;
      const auto result = std::from_chars(text.data(), text.data() + text.size(), rank);
      if (result.ec != std::errc() || rank >= most_members) return std::nullopt;
      listed.first.push_back(rank);
      text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
    }
  }
  return listed;
}

}  // namespace orrery::trace
