#pragma once

#include <string>
#include <string_view>

#include "fuzz_input.hpp"
#include "orrery/config/read.hpp"

namespace orrery::fuzz {

/// Writes the bytes to a file of this name and reads a configuration that names it; `configuration` is its text, in
/// which % stands for the folder of the file. The configuration may be refused. If it is accepted, what is written of
/// it is read again.
inline void read_with_file(std::string_view bytes, const std::string& name, std::string configuration) {
  const auto path = write_input(bytes, name);
  for (std::size_t at = 0; (at = configuration.find('%', at)) != std::string::npos;)
    configuration.replace(at, 1, path.parent_path().string());
  std::string written;
  if (!accepts([&] { written = config::parse(configuration, "config.yaml", {}, true).to_yaml(); })) return;
  try {
    (void)config::parse(written, "written.yaml", {}, true);
  } catch (const Error& error) {
    fail("what was written is refused: " + std::string(error.what()) + "\n" + written);
  }
}

}  // namespace orrery::fuzz
