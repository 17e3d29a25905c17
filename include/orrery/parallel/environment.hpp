#pragma once

#include <memory>
#include <string>

#include "orrery/parallel/communicator.hpp"

namespace orrery::parallel {

/// MPI for as long as this lives. Started by a launcher (mpirun, srun), the job's ranks; started alone, one rank
/// without any call of MPI, whose initialisation costs half a second.
class Environment {
 public:
  /// Throws Error (usage) if the launcher started several jobs of one rank instead of one job of several.
  Environment();
  /// Finalises MPI. While an exception is handled it does not (that would hang): `abort` ends the job then.
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  Communicator& world() { return *world_; }

  /// Ends all ranks with `exit_code`. Not collective, does not return.
  [[noreturn]] static void abort(int exit_code);

 private:
  std::unique_ptr<Communicator> world_;
};

/// Returns the ranks of a communicator of a program that has initialised MPI itself, as a duplicate. `handle` is what
/// MPI_Comm_c2f returns, so that this header needs none of MPI. Collective. The caller destroys it before MPI_Finalize.
std::unique_ptr<Communicator> duplicate_of(int handle);

/// Returns whether a launcher started this process itself, and it is not the first of its processes. A subcommand that
/// makes no use of several ranks then has nothing to do. Makes no call of MPI.
bool is_copy_by_launcher();

/// Returns "Open MPI 4.1.4". Makes no other call of MPI.
std::string library_version();

}  // namespace orrery::parallel
