#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "hdf5_file.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::results {

/// The file of results as all ranks see it. Rank 0 writes it; all ranks throw if rank 0 fails.
class Output {
 public:
  /// Creates the file beside `path`; an empty one stands for a file in memory. Collective.
  Output(const std::filesystem::path& path, parallel::Communicator& world);

  parallel::Communicator& world() { return world_; }
  /// Returns the file; on rank 0 only.
  File& file() { return open_->file; }
  /// Runs `body` with the file on rank 0. Collective.
  template <class Body>
  void on_root(Body body) {
    world_.agree([&] {
      if (world_.is_root()) body(file());
    });
  }
  /// Writes what is left, syncs the file and moves it to its place, unless it is in memory. Without `force`, keeps a
  /// file that has come there meanwhile, unless check_output lets it be replaced. Returns the name of the file; on rank
  /// 0 only. Collective.
  std::filesystem::path commit(bool force);

 private:
  struct Open {
    explicit Open(const std::filesystem::path& name)
        : path(name),
          partial(name.empty() ? std::nullopt : std::optional<PartialFile>(std::in_place, name)),
          file(partial ? partial->partial() : "", name) {}

    std::filesystem::path path;
    std::optional<PartialFile> partial;  // outlives `file`; none: in memory
    File file;
  };

  parallel::Communicator& world_;
  std::unique_ptr<Open> open_;                 // on rank 0
  std::optional<PartialFileOfJob> of_rank_0_;  // on the other ranks
};

}  // namespace orrery::results
