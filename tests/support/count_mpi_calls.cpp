// Counts the MPI calls of a program into which it is preloaded, by MPI's profiling interface. At the end it prints to
// standard error how many calls there were, and how many of these sent a message.
#include <mpi.h>

#include <cstdio>
#include <string_view>

#include "mpi_functions.hpp"

namespace {
struct Count {
  unsigned long calls = 0, sends = 0;
  ~Count() {
    std::fprintf(stderr, "MPI calls: %lu\n", calls);
    std::fprintf(stderr, "MPI sends: %lu\n", sends);
  }
} count;
}  // namespace

#define COUNTED(name, parameters, arguments)                       \
  extern "C" int name parameters {                                 \
    ++count.calls;                                                 \
    count.sends += std::string_view(#name) == "MPI_Isend" ? 1 : 0; \
    return P##name arguments;                                      \
  }

ORRERY_MPI_FUNCTIONS(COUNTED)
