#pragma once

#include <coroutine>
#include <utility>

namespace orrery::gpu {

/// A part of what a thread block does, as a coroutine that begins when it is awaited or started. It may be suspended
/// for simulated time. An exception of it ends the run: it comes out of the resumption.
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::coroutine_handle<> continuation = std::noop_coroutine();

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Final {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> here) noexcept {
          return here.promise().continuation;
        }
        void await_resume() noexcept {}
      };
      return Final{};
    }
    void return_void() {}
    void unhandled_exception() { throw; }
  };

  Task(Task&& other) noexcept : here_(std::exchange(other.here_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(here_, other.here_);
    return *this;
  }
  ~Task() {
    if (here_) here_.destroy();
  }

  /// Starts the task, which nobody awaits.
  void start() { here_.resume(); }
  bool is_over() const { return here_.done(); }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    here_.promise().continuation = caller;
    return here_;
  }
  void await_resume() const noexcept {}

 private:
  explicit Task(std::coroutine_handle<promise_type> here) : here_(here) {}

  std::coroutine_handle<promise_type> here_;
};

}  // namespace orrery::gpu
