#include "orrery/parallel/environment.hpp"

#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "mpi_call.hpp"
#include "mpi_communicator.hpp"

namespace orrery::parallel {
namespace {

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

bool started_by_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (std::getenv(variable)) return true;
  return false;
}

/// A launcher that does not speak this MPI's language starts N jobs of one rank; they would all write the same file.
void require_one_job(int size) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const int expected = number_in(variable);
    if (expected > 1 && size == 1)
      throw Error(ErrorCode::usage, {},
                  fmt::format("the launcher started {} processes ({}), but each sees an MPI job of one rank", expected,
                              variable),
                  "one job of all ranks",
                  "Use `srun --mpi=pmix`, or the mpirun of the MPI library that Orrery was built with.");
  }
}

/// While it lives, this process ends as soon as its launcher is killed. MPI does so itself once it is initialised; a
/// process whose launcher is killed during MPI_Init would wait for ever in Open MPI's PMIx_Init.
class EndWithLauncher {
 public:
  EndWithLauncher() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }
  ~EndWithLauncher() { ::prctl(PR_SET_PDEATHSIG, 0); }
  EndWithLauncher(const EndWithLauncher&) = delete;
  EndWithLauncher& operator=(const EndWithLauncher&) = delete;
};

}  // namespace

bool is_copy_by_launcher() {
  int rank = 0;
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    rank = std::max(rank, number_in(variable));
  if (rank == 0) return false;
  std::string parent;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", ::getppid())), parent);
  constexpr std::string_view launchers[] = {"mpirun",        "mpiexec", "orterun",    "orted",          "prterun",
                                            "mpiexec.hydra", "prted",   "slurmstepd", "hydra_pmi_proxy"};
  return std::ranges::find(launchers, parent) != std::end(launchers);
}

Environment::Environment() {
  if (!started_by_launcher()) {
    require_one_job(1);
    world_ = make_serial();
    return;
  }
  const EndWithLauncher end_with_launcher;
  int provided = 0;
  // Another thread watches over the run. It calls no function of MPI but MPI_Abort.
  mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  world_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  require_one_job(world_->size());
}

Environment::~Environment() {
  world_.reset();
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised && std::uncaught_exceptions() == 0) MPI_Finalize();
}

void Environment::abort(int exit_code) {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

std::unique_ptr<Communicator> duplicate_of(int handle) {
  return MpiCommunicator::duplicate(MPI_Comm_f2c(static_cast<MPI_Fint>(handle)));
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  std::string version(whole.substr(0, whole.find(',')));
  if (version.starts_with("Open MPI v")) version.erase(9, 1);
  return version;
}

}  // namespace orrery::parallel
