#pragma once

#include "orrery/base/job_context.hpp"

namespace orrery::cli {

/// Makes SIGTERM, SIGINT, SIGHUP, SIGXCPU (the limit of CPU time) and SIGUSR1 (a batch system's warning before the time
/// limit) requests to stop the current job. A second signal of the same kind has its default effect and ends the
/// process. A signal that was ignored before, as nohup does, remains ignored. Writing to a closed pipe no longer ends
/// the process.
void honour_signals();

/// A job of the program: the current one of this thread while it lives. Its messages go to standard error.
class LoggedJob {
 public:
  LoggedJob();
  /// Signals have no effect on other jobs from now on.
  ~LoggedJob();
  LoggedJob(const LoggedJob&) = delete;
  LoggedJob& operator=(const LoggedJob&) = delete;

  JobContext& context() { return context_; }

 private:
  JobContext context_;
  JobContext::Scope scope_{context_};
};

}  // namespace orrery::cli
