#pragma once

/// Lists every MPI function that the program calls, as EACH(name, parameters, arguments). A library that is preloaded
/// defines EACH to wrap all of them by MPI's profiling interface. test_mpi_calls.py checks that none is missing.
// clang-format off
#define ORRERY_MPI_FUNCTIONS(EACH) \
  EACH(MPI_Abort, (MPI_Comm a, int b), (a, b)) \
  EACH(MPI_Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f)) \
  EACH(MPI_Alltoall, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g), (a, b, c, d, e, f, g)) \
  EACH(MPI_Barrier, (MPI_Comm a), (a)) \
  EACH(MPI_Bcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e)) \
  EACH(MPI_Comm_create_group, (MPI_Comm a, MPI_Group b, int c, MPI_Comm* d), (a, b, c, d)) \
  EACH(MPI_Comm_dup, (MPI_Comm a, MPI_Comm* b), (a, b)) \
  EACH(MPI_Comm_free, (MPI_Comm* a), (a)) \
  EACH(MPI_Comm_group, (MPI_Comm a, MPI_Group* b), (a, b)) \
  EACH(MPI_Comm_rank, (MPI_Comm a, int* b), (a, b)) \
  EACH(MPI_Comm_set_errhandler, (MPI_Comm a, MPI_Errhandler b), (a, b)) \
  EACH(MPI_Comm_size, (MPI_Comm a, int* b), (a, b)) \
  EACH(MPI_Error_class, (int a, int* b), (a, b)) \
  EACH(MPI_Error_string, (int a, char* b, int* c), (a, b, c)) \
  EACH(MPI_Finalize, (), ()) \
  EACH(MPI_Finalized, (int* a), (a)) \
  EACH(MPI_Gather, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, int g, MPI_Comm h), (a, b, c, d, e, f, g, h)) \
  EACH(MPI_Get_count, (const MPI_Status* a, MPI_Datatype b, int* c), (a, b, c)) \
  EACH(MPI_Get_library_version, (char* a, int* b), (a, b)) \
  EACH(MPI_Group_free, (MPI_Group* a), (a)) \
  EACH(MPI_Group_range_incl, (MPI_Group a, int b, int c[][3], MPI_Group* d), (a, b, c, d)) \
  EACH(MPI_Iallreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g)) \
  EACH(MPI_Improbe, (int a, int b, MPI_Comm c, int* d, MPI_Message* e, MPI_Status* f), (a, b, c, d, e, f)) \
  EACH(MPI_Init_thread, (int* a, char*** b, int c, int* d), (a, b, c, d)) \
  EACH(MPI_Initialized, (int* a), (a)) \
  EACH(MPI_Irecv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g)) \
  EACH(MPI_Isend, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g)) \
  EACH(MPI_Mrecv, (void* a, int b, MPI_Datatype c, MPI_Message* d, MPI_Status* e), (a, b, c, d, e)) \
  EACH(MPI_Recv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status* g), (a, b, c, d, e, f, g)) \
  EACH(MPI_Send, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), (a, b, c, d, e, f)) \
  EACH(MPI_Testall, (int a, MPI_Request* b, int* c, MPI_Status* d), (a, b, c, d)) \
  EACH(MPI_Testsome, (int a, MPI_Request* b, int* c, int* d, MPI_Status* e), (a, b, c, d, e)) \
  EACH(MPI_Waitall, (int a, MPI_Request* b, MPI_Status* c), (a, b, c))
// clang-format on
