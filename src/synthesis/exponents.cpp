#include "exponents.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/synthesis/exponents.hpp"

namespace orrery::synthesis {
namespace {

using trace::CollectiveKind;

bool reaches(const Family& family, std::size_t axis) {
  return family.kind == trace::NodeKind::collective && family.group.extents[axis].kind == Extent::Kind::all;
}

/// Returns the mean of a sketch's sizes.
SketchPoint mean_of(const Sketch& sketch) {
  SketchPoint mean;
  for (const SketchPoint& point : sketch.points) {
    mean.flops += point.weight * point.flops;
    mean.bytes += point.weight * point.bytes;
    mean.ps += point.weight * point.ps;
  }
  return mean;
}

double size_of(const SketchPoint& mean) { return mean.flops > 0 ? mean.flops : mean.bytes > 0 ? mean.bytes : mean.ps; }

[[noreturn]] void refuse_reference(std::string_view found) {
  throw Error(ErrorCode::bad_input, {.key = "--reference"}, found,
              "traces of the same program that differ in the size of one axis and in sizes only");
}

/// Returns the axis whose size differs.
std::size_t other_axis(const Model& model, const Model& other) {
  if (model.axes.size() != other.axes.size())
    refuse_reference(fmt::format("{} axes in place of {}", other.axes.size(), model.axes.size()));
  std::size_t axis = model.axes.size(), count = 0;
  for (std::size_t a = 0; a < model.axes.size(); ++a)
    if (model.axes[a].size != other.axes[a].size) {
      axis = a;
      ++count;
    }
  if (count != 1) refuse_reference(fmt::format("{} axes of another size", count));
  return axis;
}

}  // namespace

void assume_exponents(const Program& program, const std::vector<Location>& locations, const Model& model, Role& role) {
  for (Token& token : role.tokens)
    for (Slot& slot : token.body) slot.exponents.assign(model.axes.size(), 0);
  const auto slot_at = [&](std::uint32_t k) -> Slot& {
    return role.tokens[locations[k].token].body[locations[k].offset];
  };
  std::vector<char> is_awaited(locations.size());
  for (const auto& sources : program.dependencies)
    for (const auto source : sources) is_awaited[source] = 1;
  const auto is_compute = [&](std::uint32_t k) {
    return model.families[program.families[k]].kind == trace::NodeKind::compute;
  };
  for (std::size_t a = 0; a < model.axes.size(); ++a) {
    // Of nodes that wait for a gather too, as those of ZeRO 3's backward passes do, the work is that of what was
    // gathered.
    std::vector<char> after_scatter(locations.size()), after_gather(locations.size());
    for (std::uint32_t k = 0; k < locations.size(); ++k) {
      const Family& family = model.families[program.families[k]];
      if (reaches(family, a) && family.collective == CollectiveKind::all_gather) {
        slot_at(k).exponents[a] = -1;
        for (const auto before : program.dependencies[k])
          if (after_scatter[before] != 0 && after_gather[before] == 0 && is_compute(before))
            slot_at(before).exponents[a] = -1;
      }
      for (const auto before : program.dependencies[k]) {
        const Family& source = model.families[program.families[before]];
        if (!reaches(source, a)) continue;
        if (source.collective == CollectiveKind::reduce_scatter) after_scatter[k] = 1;
        if (source.collective == CollectiveKind::all_gather) after_gather[k] = 1;
      }
      // The update at the end of a step needs no gather if parameters stay divided.
      if (is_awaited[k] == 0 && after_scatter[k] != 0 && after_gather[k] == 0 && is_compute(k))
        slot_at(k).exponents[a] = -1;
    }
  }
}

void learn_exponents(Model& model, const Model& other) {
  const std::size_t axis = other_axis(model, other);
  if (model.roles.size() != other.roles.size())
    refuse_reference(fmt::format("{} roles in place of {}", other.roles.size(), model.roles.size()));
  const double logarithm = std::log(static_cast<double>(other.axes[axis].size) / model.axes[axis].size);
  for (std::size_t r = 0; r < model.roles.size(); ++r) {
    Role& role = model.roles[r];
    const Role& larger = other.roles[r];
    if (role.sequence != larger.sequence || role.tokens.size() != larger.tokens.size())
      refuse_reference(fmt::format("another program of role {}", r));
    for (std::size_t t = 0; t < role.tokens.size(); ++t) {
      if (role.tokens[t].body.size() != larger.tokens[t].body.size())
        refuse_reference(fmt::format("another program of role {}", r));
      for (std::size_t b = 0; b < role.tokens[t].body.size(); ++b) {
        const double before = size_of(mean_of(model.sketches[role.tokens[t].body[b].sketch]));
        const double after = size_of(mean_of(other.sketches[larger.tokens[t].body[b].sketch]));
        if (before <= 0 || after <= 0) continue;
        role.tokens[t].body[b].exponents[axis] = std::round(std::log(after / before) / logarithm * 20) / 20;
      }
    }
  }
}

}  // namespace orrery::synthesis
