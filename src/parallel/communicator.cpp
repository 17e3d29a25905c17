#include "orrery/parallel/communicator.hpp"

#include <exception>
#include <filesystem>
#include <limits>

#include "orrery/base/error.hpp"

namespace orrery::parallel {
namespace {

class Serial final : public Communicator {
 public:
  Serial() : Communicator(Rank(0), 1) {}

  void barrier() override {}
  void sum(std::span<std::int64_t>) override {}
  void minimum(std::span<std::int64_t>) override {}
  void maximum(std::span<std::int64_t>) override {}
  void broadcast_bytes(std::vector<std::byte>&, Rank) override {}
  std::vector<std::byte> gather_bytes(std::span<const std::byte> mine, Rank, std::vector<std::size_t>& sizes) override {
    sizes = {mine.size()};
    return {mine.begin(), mine.end()};
  }
  std::vector<std::vector<std::byte>> exchange_bytes(const std::vector<std::vector<std::byte>>& outgoing) override {
    return outgoing;
  }
  std::unique_ptr<Communicator> first(int count) override {
    ensure(count == 1, "a communicator of one rank has one rank");
    return std::make_unique<Serial>();
  }
};

}  // namespace

void Communicator::broadcast(std::string& text, Rank root) {
  std::vector<char> characters(text.begin(), text.end());
  broadcast(characters, root);
  text.assign(characters.begin(), characters.end());
}

void Communicator::agree(const std::function<void()>& body) {
  constexpr auto nobody = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure;
  std::int64_t code = 0;
  try {
    body();
  } catch (const Error& error) {
    failure = std::current_exception();
    code = static_cast<std::int64_t>(error.code());
  } catch (const std::filesystem::filesystem_error&) {
    failure = std::current_exception();
    code = static_cast<std::int64_t>(ErrorCode::bad_input);
  } catch (...) {
    failure = std::current_exception();
    code = static_cast<std::int64_t>(ErrorCode::internal);
  }
  // The lowest rank that failed, and its exit code, in one minimum.
  std::int64_t lowest = failure ? rank_.value() * std::int64_t{256} + code : nobody;
  minimum(std::span(&lowest, 1));
  if (lowest == nobody) return;
  failure_is_agreed_ = true;
  if (lowest / 256 == rank_.value()) std::rethrow_exception(failure);
  throw FailedElsewhere{static_cast<int>(lowest % 256)};
}

std::unique_ptr<Communicator> make_serial() { return std::make_unique<Serial>(); }

}  // namespace orrery::parallel
