#pragma once

#include <filesystem>

#include "orrery/base/error.hpp"
#include "orrery/config/configuration.hpp"

namespace orrery::cli {

/// Returns make(). If it throws an error that names a key but no file, the error gets the place of the key in the
/// configuration, or `file` if the key is not given.
template <class Make>
auto with_place(const std::filesystem::path& file, const config::Configuration& configuration, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input || !error.place().file.empty()) throw;
    orrery::Place place = configuration.place_of(error.place().key);
    if (place.file.empty()) place.file = file.string();
    throw Error(error.code(), place, error.text());
  }
}

}  // namespace orrery::cli
