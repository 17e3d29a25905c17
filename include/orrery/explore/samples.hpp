#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/explore/space.hpp"

namespace orrery::explore {

/// Numbers from 0 to below 1 by which samples are drawn. They follow from the seed, the number of the draw and the
/// position of the parameter, and so do not depend on who draws them.
class Sequence {
 public:
  virtual ~Sequence() = default;
  /// Returns the numbers of a draw: [dimensions]. O(dimensions), a Latin hypercube O(dimensions * samples) once for
  /// each `samples` draws that follow each other.
  virtual std::vector<double> draw(std::uint64_t number) = 0;
};

/// Makes the sequence of a strategy that draws samples, for so many dimensions:
/// - random: each number is independent of all others.
/// - latin_hypercube: each `samples` draws have one number in each of the `samples` equal parts of [0, 1), in each
///   dimension (McKay, Beckman, Conover, Technometrics 21(2), 1979).
/// - sobol: a Sobol sequence with direction numbers of Joe and Kuo (SIAM J. Sci. Comput. 30(5), 2008), from Boost, with
///   nested uniform scrambling (Owen, "Randomly permuted (t,m,s)-nets and (t,s)-sequences", 1995).
std::unique_ptr<Sequence> make_sequence(Strategy strategy, const Sampling& sampling, std::size_t dimensions);

/// Draws samples of a space. Values of parameters without intervals are as likely as each other.
class Sampler {
 public:
  /// The space must outlive the sampler; numbers of intervals are added to its values.
  explicit Sampler(Space& space);
  ~Sampler();

  /// Adds `study.sampling.samples` legal points to `points`, numbered on from those that are there. A draw that a
  /// constraint cuts is counted, and another one follows; so does one that gives a point again. Throws Error
  /// (bad_input) with the counts of the constraints after 1000 such draws in a row.
  void draw(Points& points, Funnel& funnel);
  /// Does the same in a round of refinement, 1, 2, ...: around the points of `points` at these positions, in a region
  /// that is 1 / factor^round of each parameter's range.
  void refine(std::uint32_t round, std::span<const std::size_t> around, Points& points, Funnel& funnel);

 private:
  Choice choice_at(const std::vector<double>& at);
  std::vector<double> place_of(std::span<const std::uint32_t> choice) const;
  template <class Place>
  void add_samples(std::uint64_t first, Place place, Points& points, Funnel& funnel);

  Space& space_;
  std::unique_ptr<Sequence> sequence_;
  std::uint64_t next_ = 0;  ///< draw
};

}  // namespace orrery::explore
