#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/checkpoint/piece.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::checkpoint {

/// Returns the name of the generation before: "run.chk.previous" for "run.chk".
std::filesystem::path previous(const std::filesystem::path& path);

/// Says whether a regular file begins as a checkpoint does. For one rank.
bool is_checkpoint(const std::filesystem::path& path);

/// What is at the place of a checkpoint before it is written.
enum class Older : std::uint8_t {
  none,     ///< nothing: if something is there after all, it stays, and writing fails
  whole,    ///< a checkpoint that this run has written or has read whole: it becomes the generation before
  replaced  ///< a file that may be damaged, or that --force gives up: it is replaced, and the generation before stays
};

/// Writes a checkpoint of all ranks through rank 0: a head, which is that of rank 0, and the pieces. At any moment at
/// least one of `path` and previous(path) has a whole file, if one of them had. Returns on all ranks what went wrong;
/// empty if all went well. After a failure `path` is as it was. `older` is that of rank 0. Collective. Rank 0 holds
/// 256 MiB of pieces at a time, or one piece if that is larger.
std::string write(const std::filesystem::path& path, Older older, std::span<const std::byte> head,
                  std::vector<Piece> mine, parallel::Communicator& world);

/// A checkpoint that has been found whole.
struct Found {
  std::filesystem::path file;   ///< the one that was asked for, or the generation before
  std::string why_not_newest;   ///< fault of the one that was asked for; empty if there is none
  std::vector<std::byte> head;  ///< as it was written
};

/// Finds the newest whole generation of a checkpoint: it checks every byte by its checksum. Throws Error (bad_input) if
/// there is none. For one rank. O(bytes of the file).
Found find(const std::filesystem::path& path);

/// Reads the pieces of one simulation from a file that `find` has found, on rank 0, and returns those of this rank.
/// `host_of` says to which rank a piece belongs; only rank 0 calls it. Collective.
std::vector<Piece> read(const std::filesystem::path& file, std::uint32_t simulation,
                        const std::function<Rank(LpId)>& host_of, parallel::Communicator& world);

}  // namespace orrery::checkpoint
