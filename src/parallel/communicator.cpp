#include "orrery/parallel/communicator.hpp"

#include <exception>
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
};

}  // namespace

void Communicator::broadcast(std::string& text, Rank root) {
  std::vector<char> characters(text.begin(), text.end());
  broadcast(characters, root);
  text.assign(characters.begin(), characters.end());
}

void Communicator::agree(const std::function<void()>& body) {
  std::exception_ptr failure;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  std::int64_t lowest = failure ? rank_.value() : std::numeric_limits<std::int64_t>::max();
  minimum(std::span(&lowest, 1));
  if (lowest == rank_.value()) std::rethrow_exception(failure);
  if (lowest != std::numeric_limits<std::int64_t>::max()) throw FailedElsewhere();
}

std::unique_ptr<Communicator> make_serial() { return std::make_unique<Serial>(); }

}  // namespace orrery::parallel
