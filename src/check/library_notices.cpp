#include "library_notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "orrery/base/text.hpp"

namespace orrery::check {
namespace {

constexpr double far_from_measured = 2;
constexpr double most_corrected = 3;  ///< ratio of corrected and computed times, or its inverse

std::string joined(const std::vector<std::string>& reasons) { return fmt::format("{}", fmt::join(reasons, "; ")); }

}  // namespace

LibraryNotices::LibraryNotices(const Subject& subject, Notices& notices)
    : subject_(subject),
      notices_(notices),
      has_library_(subject.configuration.collectives.library.library.has_value()) {
  if (has_library_) look_at_system();
}

void LibraryNotices::look_at_system() {
  const config::Configuration& configuration = subject_.configuration;
  const auto& options = configuration.collectives.library;
  const collective::Library& library = **options.library;
  const auto& processor = configuration.execution.compute.products.processor;
  if (processor && processor->name() != library.processor)
    notices_.add("library-of-another-processor", 0,
                 fmt::format("system.collectives.library.name is {}, whose shares were measured on other GPUs than "
                             "system.compute.processor: {}",
                             library.name, processor->name()));
  const std::uint32_t inside = std::min(options.node_dimensions, subject_.run.topology().num_dimensions());
  for (std::uint32_t d = 0; d < inside; ++d) {
    const topology::Dimension& dimension = subject_.run.topology().dimension(d);
    if (library.shares.nvls > 0 && dimension.size > 1 && !dimension.shape->has_switch_operations)
      notices_.add("library-without-switch", 0,
                   fmt::format("dimension {} ({}) has no switch that reduces, as nodes of {} have: all-reduces there "
                               "are rings",
                               d, topology::name(dimension.shape), library.name));
  }
}

void LibraryNotices::look_at(const communicator::CommunicatorSpec& spec, const collective::GroupLayout& layout,
                             collective::Kind kind, Bytes size, NpuId first_member) {
  if (!has_library_) return;
  const auto figures = subject_.run.engine.figures(layout, kind, size);
  if (figures.phases.empty() || !figures.phases.front().library) return;
  const auto& [time, range, correction, ratio] = *figures.phases.front().library;
  const std::string what = fmt::format("{} of {} ({})", name(kind), trace::describe(*spec.group),
                                       counted(figures.phases.front().size, "member"));
  if (range.farthest > far_from_measured)
    notices_.add("library-extrapolated", first_member.value(),
                 fmt::format("system.collectives.library: the {} is extrapolated, with an error of about {:.0f} %: {}",
                             what, 100 * range.error, joined(range.reasons)));
  const auto& measured = subject_.configuration.collectives.library.measured;
  const auto files = measured.find(kind);
  if (files == measured.end()) return;
  if (correction.file == nullptr)
    notices_.add("library-not-corrected", first_member.value(),
                 fmt::format("system.collectives.library.{}: no file is of a group like that of the {}, which stays as "
                             "the library has it. Measure such a group, or say which ranks are one node: {{file: {}, "
                             "node: RANKS}}",
                             name(kind), what, files->second.front().file.string()));
  else if (correction.is_near)
    notices_.add("library-corrected-by-others", first_member.value(),
                 fmt::format("system.collectives.library.{}: {} has {}, and corrects the {} too", name(kind),
                             correction.file->file.string(), counted(correction.file->series.ranks, "rank"), what));
  if (correction.file != nullptr && (ratio > most_corrected || ratio < 1 / most_corrected))
    notices_.add(
        "library-corrected-by-much", first_member.value(),
        fmt::format("system.collectives.library.{}: {} multiplies the time of the {} by {:.2g}: its machine is "
                    "likely to be another one than the described network. Say which one it is: {{file: {}, "
                    "bandwidths: [...]}}",
                    name(kind), correction.file->file.string(), what, ratio, correction.file->file.string()));
}

}  // namespace orrery::check
