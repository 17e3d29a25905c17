#pragma once

#include <mpi.h>

#include <new>
#include <string>

#include "orrery/base/error.hpp"

namespace orrery::parallel {

/// Throws what MPI says of a call that failed, std::bad_alloc if it has no memory.
inline void mpi(int code) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  if (error_class == MPI_ERR_NO_MEM) throw std::bad_alloc();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ErrorCode::internal, "MPI: " + std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace orrery::parallel
