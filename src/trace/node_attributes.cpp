#include "node_attributes.hpp"

#include <fmt/format.h>

#include <limits>

#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

std::string_view what_is_missing(Attribute which) {
  if (which == Attribute::comm_size || which == Attribute::tensor_size) return "the size is missing: ";
  return which == Attribute::comm_type ? "the collective type is missing: " : "the peer is missing: ";
}

}  // namespace

void NodeAttributes::fail(std::string_view found, std::string_view expected) const {
  throw Error(ErrorCode::bad_input, trace_.place(node_), found, expected);
}

void NodeAttributes::fail_as_number(std::string_view what, Number value) const {
  if (value.form == NumberForm::negative)
    fail(fmt::format("{} is -{}", what, value.magnitude), "a number of 0 or more");
  const std::string_view fault = value.form == NumberForm::fraction       ? "is not a whole number"
                                 : value.form == NumberForm::out_of_range ? "does not fit 64 bits"
                                                                          : "is not a number";
  fail(fmt::format("{} {}", what, fault), "a whole number");
}

std::uint64_t NodeAttributes::required(Attribute which) const {
  const Number value = node_[which];
  const bool is_size = which == Attribute::comm_size || which == Attribute::tensor_size;
  if (value.form == NumberForm::whole) {
    if (is_size && value.magnitude > Bytes::most().count())
      fail(fmt::format("{} is {}", name(which), value.magnitude), fmt::format("at most {}", Bytes::most().count()));
    return value.magnitude;
  }
  if (value.form == NumberForm::fraction && which == Attribute::num_ops) return value.magnitude;
  if (value.form == NumberForm::absent)
    fail(fmt::format("{}there is no {}", what_is_missing(which), name(which)),
         fmt::format("the attribute {}", name(which)));
  fail_as_number(name(which), value);
}

std::uint64_t NodeAttributes::optional(Attribute which) const {
  return node_[which].form == NumberForm::absent ? 0 : required(which);
}

CollectiveKind NodeAttributes::collective_kind() const {
  const std::uint64_t type = required(Attribute::comm_type);
  const auto kind = trace_.numbering->collective_kind(type);
  if (!kind) fail(fmt::format("collective type {} is not known", type), "a collective type of Chakra");
  return *kind;
}

std::uint32_t NodeAttributes::npu(Attribute which, std::uint32_t num_npus) const {
  const Number value = node_[which];
  const bool is_negative = value.form == NumberForm::negative;
  if (is_negative || (value.form == NumberForm::whole && value.magnitude >= num_npus))
    fail(fmt::format("{} is {}{}, but the system has {}", name(which), is_negative ? "-" : "", value.magnitude,
                     counted(num_npus, "NPU")),
         fmt::format("0 to {}", num_npus - 1));
  return static_cast<std::uint32_t>(required(which));
}

std::uint64_t NodeAttributes::tag() const {
  const Number value = node_[Attribute::comm_tag];
  return value.form == NumberForm::negative ? 0 - value.magnitude : value.magnitude;
}

std::int32_t NodeAttributes::priority() const {
  const Number value = node_[Attribute::comm_priority];
  constexpr std::uint64_t largest = std::numeric_limits<std::int32_t>::max();
  const bool is_whole = value.form == NumberForm::whole || value.form == NumberForm::negative;
  if (value.form == NumberForm::absent || (is_whole && value.magnitude == 0)) return 0;
  if (!is_whole || value.magnitude > largest)
    fail("comm_priority is no whole number of 32 bits", fmt::format("-{0} to {0}", largest));
  const auto magnitude = static_cast<std::int32_t>(value.magnitude);
  return value.form == NumberForm::negative ? -magnitude : magnitude;
}

Time NodeAttributes::duration() const {
  if (node_[Attribute::duration_ps].form != NumberForm::absent) {
    const std::uint64_t exact = required(Attribute::duration_ps);
    if (exact > static_cast<std::uint64_t>(Time::max().ps()))
      fail(fmt::format("duration_ps is {}", exact), fmt::format("at most {}", Time::max().ps()));
    return Time::from_ps(static_cast<std::int64_t>(exact));
  }
  const auto [ps, unit] = trace_.duration_unit;
  const auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / ps);
  if (node_.duration > longest)
    fail(fmt::format("a duration of {}", counted(node_.duration, unit)), fmt::format("at most {}", longest));
  return Time::from_ps(static_cast<std::int64_t>(node_.duration) * ps);
}

}  // namespace orrery::trace
