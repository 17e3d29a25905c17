#include "orrery/base/notices.hpp"

namespace orrery {

void Notices::add(std::string_view kind, std::uint32_t npu, std::string_view text, std::uint64_t count) {
  const auto [entry, added] = entries_.try_emplace(std::string(kind), Entry{std::string(text), npu, 0});
  if (!added && npu < entry->second.npu) {
    entry->second.text = text;
    entry->second.npu = npu;
  }
  entry->second.count += count;
}

void Notices::add(std::string_view kind, std::string_view text, std::uint64_t count) { add(kind, 0, text, count); }

void Notices::merge(const Notices& other) {
  for (const auto& [kind, entry] : other.entries()) add(kind, entry.npu, entry.text, entry.count);
}

void Notices::merge_for(std::uint32_t npu, const Notices& of_file) {
  for (const auto& [kind, entry] : of_file.entries()) add(kind, npu, entry.text, entry.count);
}

}  // namespace orrery
