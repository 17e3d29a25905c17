#include "orrery/parallel/transport.hpp"

#include <mpi.h>

#include <algorithm>

#include "mpi_call.hpp"
#include "mpi_communicator.hpp"

namespace orrery::parallel {
namespace {

constexpr int message_tag = 2;

/// The reductions of a single rank.
class Alone final : public Transport {
 public:
  void send(Rank, std::span<const std::byte>) override { ensure(false, "a rank sends to itself"); }
  int poll(const Receiver&) override { return 0; }
  void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) override {
    minima_.assign(minima.begin(), minima.end());
    sums_.assign(sums.begin(), sums.end());
  }
  std::optional<Reduced> finish_reduction() override { return Reduced{minima_, sums_}; }

 private:
  std::vector<std::int64_t> minima_, sums_;
};

/// Sums over all ranks, one after the other. They have a communicator of their own, because they come in another order
/// among the other calls on each rank.
class Beats {
 public:
  explicit Beats(const MpiCommunicator& world) : world_(world) {
    mpi(MPI_Comm_dup(world.handle(), &handle_));
    mpi(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN));
  }
  void free() { MPI_Comm_free(&handle_); }

  std::optional<std::int64_t> beat(std::int64_t count) {
    if (under_way_ == MPI_REQUEST_NULL) {
      begin(count);
      return std::nullopt;
    }
    int done = 0;
    mpi(MPI_Testall(1, &under_way_, &done, MPI_STATUSES_IGNORE));
    return done ? std::optional(sum_) : std::nullopt;
  }

  // A sum begins after the one before is complete. So some ranks may have begun one sum more than others.
  void end() {
    std::int64_t most = 0;
    mpi(MPI_Allreduce(&num_begun_, &most, 1, MPI_INT64_T, MPI_MAX, world_.handle()));
    mpi(MPI_Waitall(1, &under_way_, MPI_STATUSES_IGNORE));
    if (num_begun_ == most) return;
    begin(0);
    mpi(MPI_Waitall(1, &under_way_, MPI_STATUSES_IGNORE));
  }

 private:
  void begin(std::int64_t count) {
    count_ = count;
    mpi(MPI_Iallreduce(&count_, &sum_, 1, MPI_INT64_T, MPI_SUM, handle_, &under_way_));
    ++num_begun_;
  }

  const MpiCommunicator& world_;
  MPI_Comm handle_ = MPI_COMM_NULL;
  MPI_Request under_way_ = MPI_REQUEST_NULL;
  std::int64_t count_ = 0, sum_ = 0, num_begun_ = 0;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const MpiCommunicator& world) : world_(world), beats_(world) {
    mpi(MPI_Comm_dup(world.handle(), &handle_));
    mpi(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN));
  }
  ~MpiTransport() override {
    // An exception that not all ranks know of ends the job at once.
    if (std::uncaught_exceptions() != 0 && !world_.failure_is_agreed()) return;
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    MPI_Comm_free(&handle_);
    beats_.free();
  }

  void send(Rank to, std::span<const std::byte> message) override {
    reclaim();
    std::vector<std::byte> buffer;
    if (!free_.empty()) {
      buffer = std::move(free_.back());
      free_.pop_back();
    }
    buffer.assign(message.begin(), message.end());
    under_way_ += message.size() + overhead;
    buffers_.push_back(std::move(buffer));
    ensure(message.size() <= max_message, "a message larger than 2 GiB");
    mpi(MPI_Isend(buffers_.back().data(), static_cast<int>(message.size()), MPI_BYTE, to.value(), message_tag, handle_,
                  &requests_.emplace_back(MPI_REQUEST_NULL)));
  }

  std::uint64_t bytes_under_way(std::uint64_t most) override {
    if (under_way_ <= most) return 0;
    reclaim();
    return under_way_ <= most ? 0 : under_way_;
  }

  int poll(const Receiver& receiver) override {
    int messages = 0;
    for (;; ++messages) {
      int found = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      mpi(MPI_Improbe(MPI_ANY_SOURCE, message_tag, handle_, &found, &message, &status));
      if (!found) return messages;
      int bytes = 0;
      mpi(MPI_Get_count(&status, MPI_BYTE, &bytes));
      if (incoming_.size() < static_cast<std::size_t>(bytes)) incoming_.resize(static_cast<std::size_t>(bytes));
      mpi(MPI_Mrecv(incoming_.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
      receiver(Rank(status.MPI_SOURCE), std::span(incoming_).first(static_cast<std::size_t>(bytes)));
    }
  }

  void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) override {
    given_minima_.assign(minima.begin(), minima.end());
    given_sums_.assign(sums.begin(), sums.end());
    minima_.resize(minima.size());
    sums_.resize(sums.size());
    mpi(MPI_Iallreduce(given_minima_.data(), minima_.data(), static_cast<int>(minima.size()), MPI_INT64_T, MPI_MIN,
                       handle_, &reductions_[0]));
    mpi(MPI_Iallreduce(given_sums_.data(), sums_.data(), static_cast<int>(sums.size()), MPI_INT64_T, MPI_SUM, handle_,
                       &reductions_[1]));
  }

  std::optional<Reduced> finish_reduction() override {
    int done = 0;
    mpi(MPI_Testall(2, reductions_, &done, MPI_STATUSES_IGNORE));
    if (!done) return std::nullopt;
    return Reduced{minima_, sums_};
  }

  std::optional<std::int64_t> beat(std::int64_t count) override { return beats_.beat(count); }
  void end_beats() override { beats_.end(); }

 private:
  static constexpr std::size_t max_message = (std::size_t{1} << 31) - 1;

  static constexpr std::size_t overhead = 512;    // of a message, about: its request, what MPI keeps, its buffer
  static constexpr std::size_t most_free = 1024;  // buffers in the pool

  /// Buffers of completed sends go back to the pool.
  void reclaim() {
    if (requests_.empty()) return;
    completed_.resize(requests_.size());
    int count = 0;
    mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(),
                     MPI_STATUSES_IGNORE));
    if (count <= 0) return;
    std::sort(completed_.begin(), completed_.begin() + count, std::greater<>());
    for (int i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]);
      under_way_ -= buffers_[k].size() + overhead;
      if (free_.size() < most_free) free_.push_back(std::move(buffers_[k]));
      if (k + 1 != buffers_.size()) {
        buffers_[k] = std::move(buffers_.back());
        requests_[k] = requests_.back();
      }
      buffers_.pop_back();
      requests_.pop_back();
    }
  }

  const MpiCommunicator& world_;
  MPI_Comm handle_ = MPI_COMM_NULL;
  std::vector<std::vector<std::byte>> buffers_, free_;  // of sends in progress; ready to be used again
  std::vector<MPI_Request> requests_;
  std::uint64_t under_way_ = 0;  // bytes of buffers_, with what each costs beside
  std::vector<int> completed_;
  std::vector<std::byte> incoming_;
  std::vector<std::int64_t> given_minima_, given_sums_, minima_, sums_;
  MPI_Request reductions_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  Beats beats_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(Communicator& world) {
  if (world.size() == 1) return std::make_unique<Alone>();
  auto* communicator = dynamic_cast<MpiCommunicator*>(&world);
  ensure(communicator != nullptr, "several ranks without MPI");
  return std::make_unique<MpiTransport>(*communicator);
}

}  // namespace orrery::parallel
