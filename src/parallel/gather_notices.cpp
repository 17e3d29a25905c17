#include "orrery/parallel/gather_notices.hpp"

#include "orrery/parallel/packing.hpp"

namespace orrery::parallel {

Notices gather_notices(const Notices& mine, Communicator& world) {
  Packer packer;
  for (const auto& [kind, entry] : mine.entries()) {
    packer.put_text(kind);
    packer.put(entry.npu);
    packer.put_text(entry.text);
    packer.put(entry.count);
  }
  const std::vector<std::byte> bytes = packer.take();
  const auto gathered = world.gather(std::span<const std::byte>(bytes), Rank(0));
  Notices all;
  for (Unpacker unpacker(gathered); !unpacker.empty();) {
    const auto kind = unpacker.get_text();
    const auto npu = unpacker.get<std::uint32_t>();
    const auto text = unpacker.get_text();
    all.add(kind, npu, text, unpacker.get<std::uint64_t>());
  }
  return all;
}

}  // namespace orrery::parallel
