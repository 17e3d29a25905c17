#pragma once

#include <mpi.h>

#include <string>

#include "orrery/base/error.hpp"

namespace orrery::parallel {

/// Throws what MPI says of a call that failed.
inline void mpi(int code) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ErrorCode::internal, "MPI: " + std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace orrery::parallel
