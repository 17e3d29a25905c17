#include "orrery/base/event_place.hpp"

#include <algorithm>
#include <boost/pool/singleton_pool.hpp>
#include <memory>
#include <new>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery {

/// The memory of all blocks. One thread uses histories.
struct EventPlace::Blocks {
  // A branch is mostly short. A history that goes on gets larger blocks, and one that was shortened a whole one.
  static constexpr std::uint32_t small = 2, medium = 14, large = 62;

  template <std::uint32_t capacity>
  using Pool = boost::singleton_pool<Blocks, sizeof(Block) + capacity * sizeof(Step),
                                     boost::default_user_allocator_new_delete, boost::details::pool::null_mutex, 256>;

  static inline std::uint64_t count = 0;

  /// Makes an empty block behind the first `size` steps of another one, which it then holds in the caller's place.
  static Block* make(Block* before, std::uint32_t size, NpuId root, std::uint32_t capacity) {
    void* const place = capacity == small    ? Pool<small>::malloc()
                        : capacity == medium ? Pool<medium>::malloc()
                        : capacity == large  ? Pool<large>::malloc()
                                             : ::operator new(sizeof(Block) + capacity * sizeof(Step));
    if (place == nullptr) throw std::bad_alloc();
    ++count;
    const std::uint32_t length = before == nullptr ? 0 : before->length_before + size;
    return std::construct_at(static_cast<Block*>(place), Block{before, size, length, root, 1, 0, capacity});
  }
  static void free(Block* block) {
    --count;
    switch (block->capacity) {
      case small:
        return Pool<small>::free(block);
      case medium:
        return Pool<medium>::free(block);
      case large:
        return Pool<large>::free(block);
      default:
        ::operator delete(block);
    }
  }
};

/// Goes back over the steps of a history, from the last one.
class EventPlace::Walk {
 public:
  explicit Walk(const EventPlace& place) : block_(place.block_), size_(place.size_) {}

  bool is_over() const { return block_ == nullptr; }
  const Step& step() const { return block_->steps()[size_ - 1]; }
  void go_back() {
    if (--size_ > 0) return;
    size_ = block_->size_before;
    block_ = block_->before;
  }
  friend bool operator==(const Walk&, const Walk&) = default;

 private:
  Block* block_;
  std::uint32_t size_;
};

std::uint64_t EventPlace::num_blocks() { return Blocks::count; }

/// Frees a block that is no longer used, and what only it has used.
void EventPlace::free(Block* block) {
  do {
    Block* const before = block->before;
    Blocks::free(block);
    block = before;
  } while (block != nullptr && --block->uses == 0);
}

/// Writes a step behind this history's last one. Returns false if another history has done so, or if the block is full.
bool EventPlace::append(const Step& step) const {
  if (block_->size != size_ || size_ == block_->capacity) return false;
  block_->steps()[block_->size++] = step;
  return true;
}

/// Returns this history with one more step, in a new block.
EventPlace EventPlace::branch(const Step& step) && {
  std::uint32_t capacity = Blocks::small;
  if (block_->size == size_) capacity = block_->capacity == Blocks::small ? Blocks::medium : Blocks::large;
  const NpuId root = block_->root;
  EventPlace longer(Blocks::make(block_, size_, root, capacity), 0);
  block_ = nullptr;  // held by the new block
  longer.append(step);
  longer.size_ = 1;
  return longer;
}

EventPlace EventPlace::first_of(NpuId npu) {
  EventPlace first(Blocks::make(nullptr, 0, npu, Blocks::medium), 0);
  first.append({before_all(), 0});
  first.size_ = 1;
  return first;
}

EventPlace EventPlace::next(Time now, std::uint32_t number) const& { return EventPlace(*this).next(now, number); }

EventPlace EventPlace::next(Time now, std::uint32_t number) && {
  if (block_ == nullptr) {
    EventPlace first(Blocks::make(nullptr, 0, NpuId(0), Blocks::medium), 0);
    first.append({now, number});
    first.size_ = 1;
    return first;
  }
  // Every most_steps steps what lies farther back is dropped, so that memory does not grow with the run.
  if (length() >= 2 * most_steps) return shortened().next(now, number);
  if (!append({now, number})) return std::move(*this).branch({now, number});
  ++size_;
  return std::move(*this);
}

EventPlace EventPlace::beside() const {
  ensure(block_ != nullptr, "what comes beside no event");
  const Step step{last().since, last().number + 1};
  EventPlace before = cause();
  if (before.is_known()) return std::move(before).next(step.since, step.number);
  EventPlace first(Blocks::make(nullptr, 0, block_->root, Blocks::small), 0);
  first.append(step);
  first.size_ = 1;
  return first;
}

EventPlace EventPlace::cause() const {
  if (block_ == nullptr) return {};
  EventPlace cause = size_ > 1 ? EventPlace(block_, size_ - 1) : EventPlace(block_->before, block_->size_before);
  if (cause.block_ != nullptr) ++cause.block_->uses;
  return cause;
}

/// Returns a copy of the last steps that shares nothing with this history.
EventPlace EventPlace::shortened() const {
  EventPlace copy(Blocks::make(nullptr, 0, block_->root, most_steps), 0);
  copy.size_ = copy.block_->size = std::min(length(), most_steps);
  Walk walk(*this);
  for (std::uint32_t left = copy.size_; left > 0; --left, walk.go_back()) copy.block_->steps()[left - 1] = walk.step();
  return copy;
}

std::strong_ordering operator<=>(const EventPlace& one, const EventPlace& other) {
  if (!one.is_known() || !other.is_known()) return one.is_known() <=> other.is_known();
  EventPlace::Walk a(one), b(other);
  auto by_number = std::strong_ordering::equal;  // of the step farthest back in which the numbers differ
  for (std::uint32_t step = 0; a != b && !a.is_over() && !b.is_over() && step < EventPlace::most_steps; ++step) {
    if (a.step().since != b.step().since) return a.step().since <=> b.step().since;
    if (a.step().number != b.step().number) by_number = a.step().number <=> b.step().number;
    a.go_back();
    b.go_back();
  }
  if (one.block_->root != other.block_->root) return one.block_->root <=> other.block_->root;
  return by_number;
}

void EventPlace::serialize(Archive& archive) {
  struct Entry {
    Time since;
    std::uint64_t number;
  };
  std::vector<Entry> steps;
  NpuId root;
  if (!archive.reads() && is_known()) {
    root = block_->root;
    for (Walk walk(*this); !walk.is_over() && steps.size() < most_steps; walk.go_back())
      steps.push_back({walk.step().since, walk.step().number});
  }
  archive(root, steps);
  if (!archive.reads()) return;
  *this = {};
  if (steps.empty()) return;
  EventPlace read(Blocks::make(nullptr, 0, root, std::max(static_cast<std::uint32_t>(steps.size()), Blocks::large)), 0);
  for (; !steps.empty(); steps.pop_back(), ++read.size_)
    read.append({steps.back().since, static_cast<std::uint32_t>(steps.back().number)});
  *this = std::move(read);
}

}  // namespace orrery
