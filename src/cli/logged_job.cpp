#include "logged_job.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <csignal>

namespace orrery::cli {
namespace {

// A signal handler has no other data.
std::atomic<StopRequest*> stopped_by_signals = nullptr;
static_assert(std::atomic<StopRequest*>::is_always_lock_free);

const char* name_of(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    case SIGXCPU:
      return "SIGXCPU";
    default:
      return "SIGUSR1";
  }
}

extern "C" void request_stop(int signal) {
  if (StopRequest* const stop = stopped_by_signals.load()) stop->request(name_of(signal));
  std::signal(signal, SIG_DFL);
}

}  // namespace

void honour_signals() {
  JobContext* const job = JobContext::current();
  if (job == nullptr) return;
  stopped_by_signals = &job->stop;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGXCPU, SIGUSR1})
    if (std::signal(signal, request_stop) == SIG_IGN) std::signal(signal, SIG_IGN);  // as nohup and shells ask for
  std::signal(SIGPIPE, SIG_IGN);  // results and checkpoints outlive the reader of messages
}

LoggedJob::LoggedJob() {
  context_.log.set_sink([](Log::Level level, const std::string& text) {
    switch (level) {
      case Log::Level::info:
        return spdlog::info("{}", text);
      case Log::Level::warning:
        return spdlog::warn("{}", text);
      case Log::Level::error:
        return spdlog::error("{}", text);
    }
  });
}

LoggedJob::~LoggedJob() {
  if (stopped_by_signals == &context_.stop) stopped_by_signals = nullptr;
}

}  // namespace orrery::cli
