#include "orrery/cli/job.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "logged_job.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/parallel/environment.hpp"

namespace orrery::cli {
namespace {

constexpr unsigned seconds_to_abort = 5;

bool is_out_of_memory(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

int report_failure(std::string_view rank) {
  std::fflush(stdout);  // what has been printed stands above the error, also where both go to one file
  constexpr auto internal = static_cast<int>(ErrorCode::internal);
  constexpr std::string_view whose_fault = "This is a fault of Orrery or of the machine, please report it.";
  const std::string where = rank.empty() ? "" : fmt::format("{} on {}: ", rank, host_name());
  try {
    throw;
  } catch (const Error& error) {
    spdlog::error("{}{}", error.code() == ErrorCode::internal ? where : "", error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    spdlog::error(
        "{} on {} ran out of memory. Use more ranks on more machines, or raise the limit of memory "
        "(docs/user-guide.md, Out of memory).",
        rank.empty() ? "this process" : rank, host_name());
    return internal;
  } catch (const std::filesystem::filesystem_error& error) {
    spdlog::error("{}: the file system cannot say what is there ({})", error.path1().string(), error.code().message());
    return static_cast<int>(ErrorCode::bad_input);
  } catch (const std::exception& error) {
    spdlog::error("{}{}. {}", where, error.what(), whose_fault);
    return internal;
  } catch (...) {
    spdlog::error("{}an exception of unknown kind. {}", where, whose_fault);
    return internal;
  }
}

namespace {

/// Runs the body of a job, under a guard that outlives this function.
JobEnd carry_out(parallel::Communicator& world, run::StopGuard& guard, const JobBody& body) {
  JobEnd end;
  bool may_end_mpi = true;
  try {
    body(world, guard);
  } catch (const parallel::FailedElsewhere& failure) {
    end.code = failure.exit_code;
  } catch (...) {
    end.code = report_failure(world.size() > 1 ? fmt::format("rank {} of {}", world.rank().value(), world.size())
                                               : std::string());
    may_end_mpi = !is_out_of_memory(std::current_exception());  // to end MPI needs memory too
  }
  end.in_order = end.code == 0 || (may_end_mpi && world.failure_is_agreed());
  return end;
}

}  // namespace

JobEnd run_job_on(parallel::Communicator& world, const JobBody& body) {
  LoggedJob job;
  run::StopGuard guard(job.context());
  return carry_out(world, guard, body);
}

int run_job(const JobBody& body) {
  LoggedJob job;
  run::StopGuard guard(job.context());  // it outlives MPI
  parallel::Environment environment;
  const JobEnd end = carry_out(environment.world(), guard, body);
  if (!end.in_order) {
    spdlog::shutdown();
    ::alarm(seconds_to_abort);  // MPI may need memory that is not there
    parallel::Environment::abort(end.code);
  }
  return end.code;
}

}  // namespace orrery::cli
