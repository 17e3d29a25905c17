#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "orrery/base/registry.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// How a kernel is launched.
struct KernelShape {
  std::uint32_t gpus = 8;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1024;
  Bytes bytes = {};  ///< bytes of the collective: docs/gpu.md says of which buffer
};

/// A kernel that is written by hand, such as those whose times others have published (docs/gpu.md, Kernels).
struct Kernel {
  std::string_view name;
  std::string_view help;  ///< one line
  KernelShape usual;      ///< as it was measured; its bytes are 0
  /// Makes the program. Cost O(GPUs^2 blocks).
  Program (*make)(const KernelShape& shape) = nullptr;
  /// Returns the fault of a shape; empty if there is none.
  std::string_view (*validation_error)(const KernelShape& shape) = nullptr;

  /// Returns all kernels: the table of src/gpu/kernel_registry.cpp.
  static std::span<const Kernel* const> registry();
};
using KernelName = Registered<Kernel>;

}  // namespace orrery::gpu
