#include "orrery/parallel/raise_faults.hpp"

#include <optional>

#include "orrery/parallel/packing.hpp"

namespace orrery::parallel {
namespace {

template <class T>
void put(Packer& packer, const std::optional<T>& value) {
  packer.put(value.has_value());
  packer.put(value.value_or(T{}));
}

template <class T>
std::optional<T> get_optional(Unpacker& unpacker) {
  const bool there = unpacker.get<bool>();
  const T value = unpacker.get<T>();
  return there ? std::optional(value) : std::nullopt;
}

void put(Packer& packer, const Error& fault) {
  const Place& place = fault.place();
  packer.put(fault.code());
  packer.put_text(place.file);
  put(packer, place.line);
  put(packer, place.byte_offset);
  put(packer, place.npu);
  put(packer, place.node);
  packer.put_text(place.node_name);
  packer.put_text(place.key);
  packer.put_text(fault.text());
}

Error get_fault(Unpacker& unpacker) {
  const auto code = unpacker.get<ErrorCode>();
  Place place;
  place.file = unpacker.get_text();
  place.line = get_optional<std::uint64_t>(unpacker);
  place.byte_offset = get_optional<std::uint64_t>(unpacker);
  place.npu = get_optional<std::uint32_t>(unpacker);
  place.node = get_optional<std::uint64_t>(unpacker);
  place.node_name = unpacker.get_text();
  place.key = unpacker.get_text();
  return {code, place, unpacker.get_text()};
}

}  // namespace

bool any_faults(const Faults& mine, Communicator& world) {
  std::int64_t any = mine.empty() ? 0 : 1;
  world.maximum(std::span(&any, 1));
  return any != 0;
}

void raise_faults(const Faults& mine, Communicator& world) {
  Packer packer;
  mine.for_each([&](const Error& fault) { put(packer, fault); });
  const std::vector<std::byte> bytes = packer.take();
  const auto gathered = world.gather(std::span<const std::byte>(bytes), Rank(0));
  world.agree([&] {
    Faults all;
    for (Unpacker unpacker(gathered); !unpacker.empty();) all.add(get_fault(unpacker));
    all.raise();
  });
}

}  // namespace orrery::parallel
