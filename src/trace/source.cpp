#include "source.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t longest_shown_name = 80;

}  // namespace

std::string shown(std::string_view name) { return cited(name, longest_shown_name); }

}  // namespace orrery::trace
