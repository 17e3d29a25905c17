#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz_input.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::fuzz {

/// Reads the bytes as a file of this name that spells out a collective of the kind whose name comes first in them; an
/// all-reduce if there is none. What was read has to fit together.
inline void read_collective(std::string_view bytes, const std::string& file) {
  using collective::Kind;
  Kind kind = Kind::all_reduce;
  std::size_t first = std::string_view::npos;
  for (const auto& [name, known] : {std::pair<std::string_view, Kind>{"\"allgather\"", Kind::all_gather},
                                    {"\"reduce_scatter\"", Kind::reduce_scatter},
                                    {"\"reducescatter\"", Kind::reduce_scatter},
                                    {"\"alltoall\"", Kind::all_to_all},
                                    {"\"broadcast\"", Kind::broadcast},
                                    {"\"reduce\"", Kind::reduce},
                                    {"\"gather\"", Kind::gather},
                                    {"\"scatter\"", Kind::scatter}})
    if (const std::size_t at = bytes.find(name); at < first) {
      first = at;
      kind = known;
    }
  const auto path = write_input(bytes, file);
  (void)accepts([&] {
    const auto read = collective::read_custom_collective(path, kind, {.key = "the key"});
    for (const std::uint64_t whole : {1ULL, 1ULL << 20U, 1ULL << 40U}) {
      if (Bytes(whole) < read->least() || read->most() < Bytes(whole)) continue;
      const auto& of_size = read->for_whole(Bytes(whole));
      for (std::uint32_t i = 0; i < of_size.operations().size(); ++i) {
        (void)of_size.bytes(i, Bytes(whole));
        for (const std::uint32_t next : of_size.successors(i))
          if (of_size[next].position != of_size[i].position) fail("an operation waits for one of another position");
      }
    }
  });
}

}  // namespace orrery::fuzz
