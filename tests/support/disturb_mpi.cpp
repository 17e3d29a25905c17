// Disturbs one rank at one of its MPI calls, in a program into which it is preloaded, by MPI's profiling interface.
// Environment:
//   DISTURB_RANK    the rank
//   DISTURB_CALL    the number of the call before which it is disturbed, from 1
//   DISTURB_HOW     "kill": it gets SIGKILL; "stop": it gets SIGSTOP and nobody wakes it; "pause": it gets SIGSTOP and
//                   is woken half a second later; "late": it sleeps for half a second
//   DISTURB_REPORT  the rank RANK writes at its end to DISTURB_REPORT.RANK how many calls it has made
#include <mpi.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi_functions.hpp"

namespace {

const char* rank_of_process() {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? "0" : rank;
}

struct Count {
  long calls = 0;
  ~Count() {
    const char* const report = std::getenv("DISTURB_REPORT");
    if (report == nullptr) return;
    char path[4096];
    std::snprintf(path, sizeof path, "%s.%s", report, rank_of_process());
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", calls);
    std::fclose(file);
  }
} count;

void sleep_stopped() {
  char command[100];
  std::snprintf(command, sizeof command, "sleep 0.5; kill -CONT %d", static_cast<int>(::getpid()));
  char shell[] = "/bin/sh";
  char option[] = "-c";
  char* const arguments[] = {shell, option, command, nullptr};
  char* const no_environment[] = {nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, shell, nullptr, nullptr, arguments, no_environment) == 0) ::raise(SIGSTOP);
}

void count_call() {
  static const char* const rank = std::getenv("DISTURB_RANK");
  static const char* const call = std::getenv("DISTURB_CALL");
  static const char* const how = std::getenv("DISTURB_HOW");
  ++count.calls;
  if (rank == nullptr || call == nullptr || how == nullptr || count.calls != std::atol(call)) return;
  if (std::strcmp(rank, rank_of_process()) != 0) return;
  if (std::strcmp(how, "kill") == 0) ::raise(SIGKILL);
  if (std::strcmp(how, "stop") == 0) ::raise(SIGSTOP);
  if (std::strcmp(how, "pause") == 0) sleep_stopped();
  if (std::strcmp(how, "late") == 0) ::usleep(500'000);
}

}  // namespace

#define DISTURBED(name, parameters, arguments) \
  extern "C" int name parameters {             \
    count_call();                              \
    return P##name arguments;                  \
  }

ORRERY_MPI_FUNCTIONS(DISTURBED)
