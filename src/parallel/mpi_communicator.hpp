#pragma once

#include <mpi.h>

#include <memory>

#include "orrery/parallel/communicator.hpp"

namespace orrery::parallel {

/// The ranks of an MPI communicator that this object owns.
class MpiCommunicator final : public Communicator {
 public:
  /// Returns a duplicate of `original`. Collective.
  static std::unique_ptr<MpiCommunicator> duplicate(MPI_Comm original);
  ~MpiCommunicator() override;

  MPI_Comm handle() const { return handle_; }

  void barrier() override;
  void sum(std::span<std::int64_t> values) override;
  void minimum(std::span<std::int64_t> values) override;
  void maximum(std::span<std::int64_t> values) override;
  void broadcast_bytes(std::vector<std::byte>& bytes, Rank root) override;
  std::vector<std::byte> gather_bytes(std::span<const std::byte> mine, Rank root,
                                      std::vector<std::size_t>& sizes) override;
  std::vector<std::vector<std::byte>> exchange_bytes(const std::vector<std::vector<std::byte>>& outgoing) override;
  std::unique_ptr<Communicator> first(int count) override;

 private:
  static std::unique_ptr<MpiCommunicator> own(MPI_Comm handle);

  MpiCommunicator(MPI_Comm handle, Rank rank, int size) : Communicator(rank, size), handle_(handle) {}

  MPI_Comm handle_;
};

}  // namespace orrery::parallel
