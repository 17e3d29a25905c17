// Checks that a program into which it is preloaded leaves nothing open in MPI: every request is completed, every
// message is received, and every communicator freed. Rank 0 prints to standard error, when MPI ends, the numbers of all
// ranks: "MPI: N sent, N received, N requests, N completed, N communicators open".
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace {

enum Number { sent, received, started, completed, communicators, num_numbers };
std::array<std::int64_t, num_numbers> numbers{};

/// Adds what a call has sent or received to `number`, and that it has started a request. Returns the call's code.
int start(int code, Number number) {
  numbers[number] += code == MPI_SUCCESS;
  numbers[started] += code == MPI_SUCCESS;
  return code;
}

int count(int code, Number number, std::int64_t change = 1) {
  if (code == MPI_SUCCESS) numbers[number] += change;
  return code;
}

std::int64_t open_requests(int size, const MPI_Request* requests) {
  std::int64_t open = 0;
  for (int i = 0; i < size; ++i) open += requests[i] != MPI_REQUEST_NULL;
  return open;
}

}  // namespace

extern "C" int MPI_Isend(const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g) {
  return start(PMPI_Isend(a, b, c, d, e, f, g), sent);
}
extern "C" int MPI_Irecv(void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g) {
  return start(PMPI_Irecv(a, b, c, d, e, f, g), received);
}
extern "C" int MPI_Iallreduce(const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f, MPI_Request* g) {
  return count(PMPI_Iallreduce(a, b, c, d, e, f, g), started);
}
extern "C" int MPI_Send(const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f) {
  return count(PMPI_Send(a, b, c, d, e, f), sent);
}
extern "C" int MPI_Recv(void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status* g) {
  return count(PMPI_Recv(a, b, c, d, e, f, g), received);
}
extern "C" int MPI_Mrecv(void* a, int b, MPI_Datatype c, MPI_Message* d, MPI_Status* e) {
  return count(PMPI_Mrecv(a, b, c, d, e), received);
}
extern "C" int MPI_Testall(int a, MPI_Request* b, int* c, MPI_Status* d) {
  const std::int64_t open = open_requests(a, b);
  const int code = PMPI_Testall(a, b, c, d);
  return count(code, completed, *c != 0 ? open : 0);
}
extern "C" int MPI_Testsome(int a, MPI_Request* b, int* c, int* d, MPI_Status* e) {
  const int code = PMPI_Testsome(a, b, c, d, e);
  return count(code, completed, *c == MPI_UNDEFINED ? 0 : *c);
}
extern "C" int MPI_Waitall(int a, MPI_Request* b, MPI_Status* c) {
  const std::int64_t open = open_requests(a, b);
  return count(PMPI_Waitall(a, b, c), completed, open);
}
extern "C" int MPI_Comm_dup(MPI_Comm a, MPI_Comm* b) { return count(PMPI_Comm_dup(a, b), communicators); }
extern "C" int MPI_Comm_free(MPI_Comm* a) { return count(PMPI_Comm_free(a), communicators, -1); }

extern "C" int MPI_Finalize() {
  std::array<std::int64_t, num_numbers> all{};
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(numbers.data(), all.data(), num_numbers, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::fprintf(stderr, "MPI: %ld sent, %ld received, %ld requests, %ld completed, %ld communicators open\n",
                 static_cast<long>(all[sent]), static_cast<long>(all[received]), static_cast<long>(all[started]),
                 static_cast<long>(all[completed]), static_cast<long>(all[communicators]));
  return PMPI_Finalize();
}
