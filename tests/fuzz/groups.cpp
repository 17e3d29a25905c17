// Communicator files of 16 NPUs: any text lists groups or is refused.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "orrery/trace/store.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto path = fuzz::write_input(fuzz::text_of(data, size), "groups.json");
  constexpr std::uint32_t num_npus = 16;
  (void)fuzz::accepts([&] {
    const trace::NamedGroups groups = trace::read_group_file(path, num_npus);
    for (const auto& [name, members] : groups) {
      if (name.empty() || members.empty()) fuzz::fail("a group without a name or members");
      for (const NpuId member : members)
        if (member.value() >= num_npus) fuzz::fail("a member that does not exist");
    }
  });
  return 0;
}
