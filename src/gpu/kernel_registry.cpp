#include <array>

#include "kernels.hpp"

namespace orrery::gpu {

// In src/gpu/kernels.
extern const Kernel put_kernel, get_kernel, packets_kernel, copy_kernel, copy_engine_kernel, engine_copies_kernel,
    scale_kernel, one_shot_kernel, one_shot_blocks_kernel, two_shot_kernel, one_stage_kernel, two_stage_kernel,
    all_pairs_put_kernel, in_switch_kernel, multicast_kernel, gather_put_kernel, gather_get_kernel, scatter_put_kernel,
    scatter_get_kernel, all_to_all_put_kernel, all_to_all_get_kernel, gather_engines_kernel;

std::span<const Kernel* const> Kernel::registry() {
  static constexpr std::array kernels = {&put_kernel,
                                         &get_kernel,
                                         &packets_kernel,
                                         &copy_kernel,
                                         &copy_engine_kernel,
                                         &engine_copies_kernel,
                                         &scale_kernel,
                                         &one_shot_kernel,
                                         &one_shot_blocks_kernel,
                                         &two_shot_kernel,
                                         &one_stage_kernel,
                                         &two_stage_kernel,
                                         &all_pairs_put_kernel,
                                         &in_switch_kernel,
                                         &multicast_kernel,
                                         &gather_put_kernel,
                                         &gather_get_kernel,
                                         &scatter_put_kernel,
                                         &scatter_get_kernel,
                                         &all_to_all_put_kernel,
                                         &all_to_all_get_kernel,
                                         &gather_engines_kernel};
  return kernels;
}

}  // namespace orrery::gpu
