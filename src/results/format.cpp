#include "format.hpp"

#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::results::format {

std::vector<std::string> collective_kinds() {
  std::vector<std::string> names;
  for (std::uint8_t kind = 0; kind <= static_cast<std::uint8_t>(collective::last_kind); ++kind)
    names.emplace_back(collective::name(static_cast<collective::Kind>(kind)));
  return names;
}

std::string_view status_name(Status status) {
  switch (status) {
    case Status::complete:
      return "complete";
    case Status::stuck:
      return "stuck";
    case Status::interrupted:
      return "interrupted";
  }
  ensure_failed("a status has a name", std::source_location::current());
}

}  // namespace orrery::results::format
