#include "orrery/base/job_context.hpp"

#include <fmt/format.h>

#include <system_error>

#include "orrery/base/error.hpp"

namespace orrery {

void StopRequest::set_time_limit(double seconds, Clock::time_point start) {
  if (seconds <= 0) return;
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(0.99 * seconds));
  limit_ = end.time_since_epoch().count();
}

bool StopRequest::is_requested() {
  if (Clock::now().time_since_epoch().count() >= limit_.load(std::memory_order_relaxed)) is_out_of_time_ = true;
  return reason_.load() != nullptr || is_out_of_time_;
}

const char* StopRequest::reason() const {
  if (const char* const reason = reason_.load()) return reason;
  return is_out_of_time_ ? "the wall-time limit" : "";
}

void StopRequest::end_if_requested(std::string_view before) {
  if (!is_requested()) return;
  throw Error(ErrorCode::interrupted, {}, fmt::format("stopped by {} before {}", reason(), before), {},
              "No results are written, and none replaced. Give the same command again.");
}

void PartialFiles::add(const std::filesystem::path& file) {
  const std::scoped_lock lock(mutex_);
  names_.insert(file);
}

void PartialFiles::drop(const std::filesystem::path& file) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = names_.find(file); found != names_.end()) names_.erase(found);
}

void PartialFiles::remove_all() {
  const std::scoped_lock lock(mutex_);
  std::error_code ignored;
  for (const std::filesystem::path& name : names_) std::filesystem::remove(name, ignored);
}

void JobContext::enter(JobPhase phase) {
  const std::scoped_lock lock(mutex_);
  phase_ = phase;
  heartbeat.beat();
}

void JobContext::set_checkpoint(std::string file) {
  const std::scoped_lock lock(mutex_);
  checkpoint_ = std::move(file);
}

std::pair<std::unique_lock<std::mutex>, std::string> JobContext::lock() {
  std::unique_lock lock(mutex_);
  return {std::move(lock), checkpoint_};
}

}  // namespace orrery
