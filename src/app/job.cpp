#include "orrery/app/job.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/parallel/environment.hpp"
#include "stop_guard.hpp"

namespace orrery::app {
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

int run_job(const std::function<void(parallel::Communicator&)>& body) {
  const StopGuard guard;  // it outlives MPI
  parallel::Environment environment;
  auto& world = environment.world();
  int code = 0;
  bool in_order = true;
  try {
    body(world);
  } catch (const parallel::FailedElsewhere& failure) {
    code = failure.exit_code;
  } catch (...) {
    code = report_failure(world.size() > 1 ? fmt::format("rank {} of {}", world.rank().value(), world.size())
                                           : std::string());
    in_order = !is_out_of_memory(std::current_exception());  // to end MPI needs memory too
  }
  if (code != 0 && !(in_order && world.failure_is_agreed())) {
    spdlog::shutdown();
    ::alarm(seconds_to_abort);  // MPI may need memory that is not there
    parallel::Environment::abort(code);
  }
  return code;
}

}  // namespace orrery::app
