#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/explore/space.hpp"
#include "orrery/study/options.hpp"

namespace orrery::study {

/// Some of the legal points of a study, each as likely as the others. They follow from the order in which points are
/// added alone.
class Specimens {
 public:
  explicit Specimens(std::size_t most) : most_(most) {}

  void add(const explore::Choice& choice);
  const std::vector<explore::Choice>& choices() const { return choices_; }

 private:
  std::size_t most_;
  std::uint64_t num_added_ = 0;
  std::vector<explore::Choice> choices_;
};

/// Returns the combinations of a study, with what the base says. Throws Error (bad_input) for a base that is not there
/// or cannot be read, and for names that neither the base nor results have.
explore::Space space_of(const explore::Study& study, const ExploreCommand& command);

/// Throws Error (bad_input) if a key, a value, a unit or a file is wrong in every legal configuration, at the place in
/// the study. `visit_all` calls a function for all legal points until it returns false.
void require_readable(const explore::Space& space, const ExploreCommand& command, const Specimens& specimens,
                      const std::function<void(const std::function<bool(const explore::Point&)>&)>& visit_all);

/// Throws Error (bad_input) if a constraint or an objective names a metric whose price none of the specimens has.
void require_prices(const explore::Space& space, const ExploreCommand& command, const Specimens& specimens);

}  // namespace orrery::study
