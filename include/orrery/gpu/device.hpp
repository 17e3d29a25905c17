#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/gpu/profile.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// What GPUs send each other.
enum class RequestKind : std::uint8_t {
  store,         ///< data to the memory of another GPU
  ack,           ///< to the source of a store: its data can be seen
  load,          ///< asks for data
  answer,        ///< the data that a load asked for
  word,          ///< word of a channel
  switch_load,   ///< asks a switch for the sum of the data of a group; the switch asks each member
  switch_part,   ///< answer of a member to the switch, which makes one answer of all of them
  switch_store,  ///< data for the switch, which sends them to all members of a group
};
inline constexpr std::size_t num_request_kinds = static_cast<std::size_t>(RequestKind::switch_store) + 1;

/// Says whether requests of this kind are words of control, which may pass data (Arbitration).
constexpr bool is_control(RequestKind kind) {
  using enum RequestKind;
  return kind == ack || kind == load || kind == word || kind == switch_load;
}

/// A request on its way. Trivially copyable.
struct Request {
  RequestKind kind = RequestKind::store;
  bool is_behind_data = false;  ///< it passes no data though it is a word of control: it is of a copy engine
  bool wants_ack = false;  ///< acknowledgement of a store: Device::left is called when it has left its first link, too
  Buffer buffer = Buffer::scratch;
  bool has_packets = false;        ///< a store of packets, which readers wait for
  std::uint32_t from = 0, to = 0;  ///< GPUs
  std::uint32_t group = 0;         ///< index in Program::groups, for requests to a switch
  std::uint32_t block = 0;         ///< block of the GPU that asked first
  std::uint32_t burst = 0;         ///< burst of its operation
  std::uint32_t tag = 0;           ///< number of a load; for a word: the channel at `to`
  std::uint64_t offset = 0;        ///< offset in the buffer at `to`, for packets
  std::uint64_t bytes = 0;         ///< bytes of data
  std::uint64_t held = 0;          ///< bytes that count against Parameters::posted until it has left its first link
  std::uint64_t wire = 0;          ///< bytes that links carry
};

/// Returns what the owner of memory sends back for a request that has come, whether a kernel is on there or not: the
/// acknowledgement of a store, or data. None if there is no answer.
std::optional<Request> answer_to(const Request& request, const Parameters& parameters);
/// Returns the time from the end of the last link to the moment at which a request of this kind takes effect.
Time delay_of(RequestKind kind, const Parameters& parameters);

/// The simulation that a GPU is part of.
class Simulation {
 public:
  virtual Time now() const = 0;
  /// Resumes a coroutine of this GPU at `time`, now or later.
  virtual void resume_at(Time time, std::uint32_t gpu, std::coroutine_handle<> coroutine) = 0;
  /// Hands a request to its first link at `time`, now or later. Device::arrive of its destination is called
  /// delay_of after it has left its last link.
  virtual void send(Time time, const Request& request) = 0;
  /// Returns how long `wire` bytes hold the first link of the way to another GPU.
  virtual Time holds(std::uint32_t gpu, std::uint32_t to, std::uint64_t wire) = 0;
  /// Lets blocks of the GPU read or write `bytes` of its memory from now on. Returns when the last byte is through the
  /// ports of memory: now if they are not simulated.
  virtual Time move_memory(std::uint32_t /*gpu*/, std::uint64_t /*bytes*/) { return now(); }
  /// Takes note that all blocks of the GPU are over, and the kernel is over at `time`.
  virtual void finish(std::uint32_t gpu, Time time) = 0;
  /// Takes note that the blocks of the GPU that have begun and are not over hold so many SMs from now on.
  virtual void hold_sms(std::uint32_t /*gpu*/, std::uint32_t /*sms*/) {}

 protected:
  ~Simulation() = default;
};

/// The activities on which a block spends its time.
enum class Stall : std::uint8_t {
  launch,   ///< launch of the kernel, load of its plan, and wait for an SM
  issue,    ///< fixed costs of operations
  memory,   ///< loads from its own memory
  poll,     ///< polls of flags that are there
  words,    ///< words, semaphores and packets that are not there
  link,     ///< its stores wait for the first link
  load,     ///< loads from other GPUs
  acks,     ///< acknowledgements of its stores
  barrier,  ///< other blocks at a barrier
  proxy,    ///< the proxy (flush)
};
inline constexpr std::size_t num_stalls = static_cast<std::size_t>(Stall::proxy) + 1;
std::string_view name(Stall stall);

/// What one GPU has sent, by kind.
struct RequestCounts {
  std::array<std::uint64_t, num_request_kinds> requests = {};  ///< lines; of words one each
  std::array<std::uint64_t, num_request_kinds> wire = {};      ///< bytes on the first link
};

/// A GPU that executes its part of a program once: its SMs, words, packets, barriers, semaphores and proxy. It is a
/// state machine between calls of `begin`, `arrive` and `left`, and resumptions of its coroutines.
class Device {
 public:
  /// All arguments outlive it.
  Device(const Program& program, std::uint32_t gpu, const Parameters& parameters, Granularity granularity,
         Simulation& simulation);
  ~Device();

  /// Starts the kernel now.
  void begin();
  /// Takes in a request, and answers it.
  void arrive(const Request& request);
  /// Takes in a request that came before the kernel began and has been answered.
  void take(const Request& request);
  /// Takes note that a store of a block, with Request::held of `bytes`, has left its first link.
  void left(std::uint32_t block, std::uint64_t bytes);

  bool is_over() const;
  /// Returns whether it is over, and nothing that its blocks have sent will still be answered.
  bool is_quiet() const;
  /// Returns the reasons for which unfinished blocks wait, one line each.
  std::vector<std::string> waits() const;
  /// Returns the time of a block by reason. [num_stalls]
  const std::array<Time, num_stalls>& stalls(std::uint32_t block) const;
  /// Returns the same summed over blocks.
  std::array<Time, num_stalls> all_stalls() const;
  /// Returns the number of the block that was over last.
  std::uint32_t last_block() const;
  const RequestCounts& counts() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace orrery::gpu
