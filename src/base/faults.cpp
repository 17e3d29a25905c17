#include "orrery/base/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

#include "orrery/base/text.hpp"

namespace orrery {
namespace {

constexpr std::size_t most_kept_of_file = 1000;
constexpr std::size_t most_raised = 20;
constexpr std::size_t most_raised_of_file = 5;

}  // namespace

bool Faults::ByPlace::operator()(const Error& a, const Error& b) const {
  const auto key = [](const Error& e) {
    const Place& place = e.place();
    return std::tie(place.line, place.node, place.byte_offset, place.key, e.text());
  };
  return key(a) < key(b);
}

void Faults::add(const Error& fault) {
  File& file = files_[fault.place().file];
  const auto [kept, added] = file.faults.insert(fault);
  if (!added && fault.place().npu < kept->place().npu) file.faults.insert(file.faults.erase(kept), fault);
  if (file.faults.size() <= most_kept_of_file) return;
  file.faults.erase(std::prev(file.faults.end()));
  file.is_full = true;
}

std::size_t Faults::count() const {
  std::size_t count = 0;
  for (const auto& [name, file] : files_) count += file.faults.size();
  return count;
}

std::vector<std::string> Faults::texts(std::size_t most_of_file) const {
  std::vector<std::pair<std::optional<std::uint32_t>, const std::string*>> order;  // lowest NPU, name of the file
  for (const auto& [name, file] : files_) {
    const auto lowest = std::ranges::min_element(file.faults, {}, [](const Error& e) { return e.place().npu; });
    order.emplace_back(lowest->place().npu, &name);
  }
  std::ranges::sort(
      order, [](const auto& a, const auto& b) { return std::tie(a.first, *a.second) < std::tie(b.first, *b.second); });
  std::vector<std::string> texts;
  for (const auto& [npu, name] : order) {
    const File& file = files_.at(*name);
    for (const Error& fault : file.faults | std::views::take(most_of_file)) texts.emplace_back(fault.what());
    if (file.faults.size() > most_of_file)
      texts.push_back(fmt::format("{}{}and {}{} in this file", *name, name->empty() ? "" : ": ",
                                  file.is_full ? "more than " : "",
                                  counted(file.faults.size() - most_of_file, "more fault")));
  }
  return texts;
}

ErrorCode Faults::code() const {
  ErrorCode code = ErrorCode::bad_input;
  for_each([&](const Error& fault) { code = std::min(code, fault.code()); });
  return code;
}

void Faults::raise() const {
  if (empty()) return;
  if (count() == 1) throw *files_.begin()->second.faults.begin();
  const auto all = texts(most_raised_of_file);
  std::string text = "the input has several faults";
  for (std::size_t i = 0; i < std::min(all.size(), most_raised); ++i) text += "\n  " + all[i];
  if (all.size() > most_raised) text += "\n  and more: 'orrery check' lists them all";
  throw Error(code(), text);
}

}  // namespace orrery
