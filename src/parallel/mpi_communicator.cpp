#include "mpi_communicator.hpp"

#include <algorithm>
#include <numeric>

#include "mpi_call.hpp"
#include "orrery/base/job_context.hpp"

namespace orrery::parallel {
namespace {

// MPI counts are int: what is larger travels in pieces of this many bytes.
constexpr std::size_t piece = std::size_t{1} << 30;

constexpr int payload_tag = 1, creation_tag = 3;

template <class F>
void in_pieces(std::size_t bytes, F&& each) {
  for (std::size_t done = 0; done < bytes; done += piece) each(done, static_cast<int>(std::min(piece, bytes - done)));
}

}  // namespace

std::unique_ptr<MpiCommunicator> MpiCommunicator::duplicate(MPI_Comm original) {
  MPI_Comm handle = MPI_COMM_NULL;
  mpi(MPI_Comm_dup(original, &handle));
  return own(handle);
}

std::unique_ptr<Communicator> MpiCommunicator::first(int count) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm handle = MPI_COMM_NULL;
  int range[1][3] = {{0, count - 1, 1}};
  mpi(MPI_Comm_group(handle_, &all));
  mpi(MPI_Group_range_incl(all, 1, range, &some));
  mpi(MPI_Comm_create_group(handle_, some, creation_tag, &handle));
  mpi(MPI_Group_free(&some));
  mpi(MPI_Group_free(&all));
  return own(handle);
}

std::unique_ptr<MpiCommunicator> MpiCommunicator::own(MPI_Comm handle) {
  mpi(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN));
  int rank = 0, size = 0;
  mpi(MPI_Comm_rank(handle, &rank));
  mpi(MPI_Comm_size(handle, &size));
  return std::unique_ptr<MpiCommunicator>(new MpiCommunicator(handle, Rank(rank), size));
}

MpiCommunicator::~MpiCommunicator() {
  // Freeing is collective: while an exception unwinds only some ranks would come here.
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&handle_);
}

void MpiCommunicator::barrier() {
  const WaitForRanks wait;
  mpi(MPI_Barrier(handle_));
}

void MpiCommunicator::sum(std::span<std::int64_t> values) {
  const WaitForRanks wait;
  mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_SUM, handle_));
}

void MpiCommunicator::minimum(std::span<std::int64_t> values) {
  const WaitForRanks wait;
  mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_MIN, handle_));
}

void MpiCommunicator::maximum(std::span<std::int64_t> values) {
  const WaitForRanks wait;
  mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_MAX, handle_));
}

void MpiCommunicator::broadcast_bytes(std::vector<std::byte>& bytes, Rank root) {
  const WaitForRanks wait;
  std::uint64_t size = bytes.size();
  mpi(MPI_Bcast(&size, 1, MPI_UINT64_T, root.value(), handle_));
  bytes.resize(size);
  in_pieces(size, [&](std::size_t first, int count) {
    mpi(MPI_Bcast(bytes.data() + first, count, MPI_BYTE, root.value(), handle_));
  });
}

std::vector<std::byte> MpiCommunicator::gather_bytes(std::span<const std::byte> mine, Rank root,
                                                     std::vector<std::size_t>& sizes) {
  const WaitForRanks wait;
  const std::uint64_t size = mine.size();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(this->size()));
  mpi(MPI_Gather(&size, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, root.value(), handle_));
  if (rank() != root) {
    in_pieces(size, [&](std::size_t first, int count) {
      mpi(MPI_Send(mine.data() + first, count, MPI_BYTE, root.value(), payload_tag, handle_));
    });
    sizes.clear();
    return {};
  }
  sizes.assign(all.begin(), all.end());
  std::vector<std::byte> result(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  std::size_t offset = 0;
  for (int r = 0; r < this->size(); ++r) {
    const auto bytes = sizes[static_cast<std::size_t>(r)];
    if (r == root.value())
      std::copy(mine.begin(), mine.end(), result.begin() + static_cast<std::ptrdiff_t>(offset));
    else
      in_pieces(bytes, [&](std::size_t first, int count) {
        mpi(MPI_Recv(result.data() + offset + first, count, MPI_BYTE, r, payload_tag, handle_, MPI_STATUS_IGNORE));
      });
    offset += bytes;
  }
  return result;
}

std::vector<std::vector<std::byte>> MpiCommunicator::exchange_bytes(
    const std::vector<std::vector<std::byte>>& outgoing) {
  const WaitForRanks wait;
  const auto ranks = static_cast<std::size_t>(size());
  ensure(outgoing.size() == ranks, "exchange needs one message per rank");
  std::vector<std::uint64_t> send_sizes(ranks), receive_sizes(ranks);
  std::transform(outgoing.begin(), outgoing.end(), send_sizes.begin(), [](const auto& bytes) { return bytes.size(); });
  mpi(MPI_Alltoall(send_sizes.data(), 1, MPI_UINT64_T, receive_sizes.data(), 1, MPI_UINT64_T, handle_));
  std::vector<std::vector<std::byte>> incoming(ranks);
  std::vector<MPI_Request> requests;
  for (std::size_t r = 0; r < ranks; ++r) {
    incoming[r].resize(receive_sizes[r]);
    in_pieces(receive_sizes[r], [&](std::size_t first, int count) {
      mpi(MPI_Irecv(incoming[r].data() + first, count, MPI_BYTE, static_cast<int>(r), payload_tag, handle_,
                    &requests.emplace_back()));
    });
  }
  for (std::size_t r = 0; r < ranks; ++r)
    in_pieces(send_sizes[r], [&](std::size_t first, int count) {
      mpi(MPI_Isend(outgoing[r].data() + first, count, MPI_BYTE, static_cast<int>(r), payload_tag, handle_,
                    &requests.emplace_back()));
    });
  mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  return incoming;
}

}  // namespace orrery::parallel
