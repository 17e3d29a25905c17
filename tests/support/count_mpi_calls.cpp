// Counts the MPI calls of a program into which it is preloaded, by MPI's profiling interface, and prints their number
// to standard error at the end. Every function that the program calls must be in this list; a test checks that.
#include <mpi.h>

#include <cstdio>

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

// clang-format off
COUNTED(MPI_Abort, (MPI_Comm a, int b), (a, b))
COUNTED(MPI_Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
COUNTED(MPI_Alltoall, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g), (a, b, c, d, e, f, g))
COUNTED(MPI_Barrier, (MPI_Comm a), (a))
COUNTED(MPI_Bcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e))
COUNTED(MPI_Comm_dup, (MPI_Comm a, MPI_Comm* b), (a, b))
COUNTED(MPI_Comm_free, (MPI_Comm* a), (a))
COUNTED(MPI_Comm_rank, (MPI_Comm a, int* b), (a, b))
COUNTED(MPI_Comm_set_errhandler, (MPI_Comm a, MPI_Errhandler b), (a, b))
COUNTED(MPI_Comm_size, (MPI_Comm a, int* b), (a, b))
COUNTED(MPI_Error_class, (int a, int* b), (a, b))
COUNTED(MPI_Error_string, (int a, char* b, int* c), (a, b, c))
COUNTED(MPI_Finalize, (), ())
COUNTED(MPI_Finalized, (int* a), (a))
COUNTED(MPI_Gather, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, int g, MPI_Comm h), (a, b, c, d, e, f, g, h))
COUNTED(MPI_Get_count, (const MPI_Status* a, MPI_Datatype b, int* c), (a, b, c))
COUNTED(MPI_Get_library_version, (char* a, int* b), (a, b))
COUNTED(MPI_Iallreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g))
COUNTED(MPI_Improbe, (int a, int b, MPI_Comm c, int* d, MPI_Message* e, MPI_Status* f), (a, b, c, d, e, f))
COUNTED(MPI_Init_thread, (int* a, char*** b, int c, int* d), (a, b, c, d))
COUNTED(MPI_Initialized, (int* a), (a))
COUNTED(MPI_Irecv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g))
COUNTED(MPI_Isend, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g))
COUNTED(MPI_Mrecv, (void* a, int b, MPI_Datatype c, MPI_Message* d, MPI_Status* e), (a, b, c, d, e))
COUNTED(MPI_Recv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status* g), (a, b, c, d, e, f, g))
COUNTED(MPI_Send, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), (a, b, c, d, e, f))
COUNTED(MPI_Testall, (int a, MPI_Request* b, int* c, MPI_Status* d), (a, b, c, d))
COUNTED(MPI_Testsome, (int a, MPI_Request* b, int* c, int* d, MPI_Status* e), (a, b, c, d, e))
COUNTED(MPI_Waitall, (int a, MPI_Request* b, MPI_Status* c), (a, b, c))
