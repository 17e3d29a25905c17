#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/compute/operation.hpp"

namespace orrery::compute {

/// Measured kernels of a processor.
class KernelTable {
 public:
  /// Takes the kernels of a CSV: the first line names the columns, in any order, and each other line is a kernel
  /// (docs/compute.md has the columns). Kernels of another precision are left out. Throws Error (bad_input) with the
  /// name of the file and the line.
  static KernelTable parse(std::string_view text, const std::string& name, std::string_view precision);

  /// Returns the seconds of an operation: those of the kernel with its shape, otherwise its work over the rate of the
  /// four nearest kernels, weighted by the inverse square of the distance in the logarithms of the sizes. Throws Error
  /// (bad_input) if there are no kernels for the operation. Cost O(kernels of the operator).
  double seconds(const Operation& operation) const;
  /// Says in which size an operation lies outside of the measured kernels; none if it lies inside, or has none.
  std::optional<std::string> doubt(const Operation& operation) const;
  /// Returns the operators that have kernels and that none of these operations is.
  std::vector<std::string> unused(std::span<const Operation> operations) const;

 private:
  using Sizes = std::array<double, 3>;  ///< logarithms of rows, inner size and columns, or of bytes
  struct Kernel {
    Sizes sizes;
    double rate;  ///< work per second: multiplications, or bytes
  };
  struct Part {
    std::string_view what;
    Sizes sizes;
    double work;
    const std::vector<Kernel>* kernels;
  };

  void add(std::span<const std::string_view> fields, const std::map<std::string_view, std::size_t>& columns,
           const Place& place);
  /// Returns the kernels that an operation consists of: the backward pass of a product is two.
  std::vector<Part> parts(const Operation& operation) const;
  const std::vector<Kernel>& kernels_of(const Operation& operation) const;
  static double rate(const Part& part);

  std::string name_;
  std::map<std::string, std::vector<Kernel>, std::less<>> kernels_;  ///< kernels by operator and pass
};

}  // namespace orrery::compute
