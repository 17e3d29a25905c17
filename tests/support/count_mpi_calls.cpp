// Counts the MPI calls of a program into which it is preloaded, by MPI's profiling interface, and prints their number
// to standard error at the end.
#include <mpi.h>

#include <cstdio>

#include "mpi_functions.hpp"

namespace {
struct Count {
  unsigned long calls = 0;
  ~Count() { std::fprintf(stderr, "MPI calls: %lu\n", calls); }
} count;
}  // namespace

#define COUNTED(name, parameters, arguments) \
  extern "C" int name parameters {           \
    ++count.calls;                           \
    return P##name arguments;                \
  }

ORRERY_MPI_FUNCTIONS(COUNTED)
