#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "orrery/base/version.hpp"

namespace orrery {
namespace {

/// Returns the build ID among the notes of a segment; empty if there is none.
std::string build_id_of(const char* notes, std::size_t size) {
  constexpr std::string_view owner("GNU\0", 4);
  const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  ElfW(Nhdr) note;
  while (size >= sizeof note) {
    std::memcpy(&note, notes, sizeof note);
    const char* const name = notes + sizeof note;
    const std::size_t length = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (length > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == owner) {
      std::string text;
      for (const char byte : std::string_view(name + padded(note.n_namesz), note.n_descsz))
        text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      return text;
    }
    notes += length;
    size -= length;
  }
  return {};
}

/// Reads the notes of the program, which is the first object, and ends there.
int visit(dl_phdr_info* object, std::size_t, void* text) {
  std::string& found = *static_cast<std::string*>(text);
  for (int i = 0; i < object->dlpi_phnum && found.empty(); ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      found = build_id_of(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string found;
  dl_iterate_phdr(visit, &found);
  return found;
}

std::string program() { return fmt::format("{} (revision {}, build {})", version(), revision(), build_id()); }

}  // namespace orrery
