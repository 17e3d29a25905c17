#include "scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::serving {
namespace {

constexpr std::uint64_t own_key = std::uint64_t{1} << 63U;
constexpr unsigned bits_of_index = 24;

}  // namespace

Scheduler::Scheduler(const Requests& requests, const SchedulerOptions& options, Role role, std::uint32_t number,
                     std::uint32_t num_blocks, bool records_items, std::uint32_t stages, bool pulls_layers)
    : requests_(requests),
      options_(options),
      role_(role),
      number_(number),
      records_items_(records_items),
      stages_(stages),
      pulls_layers_(pulls_layers),
      pool_(num_blocks, options.prefix_cache) {
  record_.number = number;
  record_.blocks = num_blocks;
}

/// Only the request itself finds blocks that hold output tokens, or those of a prompt without ids.
std::uint64_t Scheduler::key_of(const LiveRequest& live, std::uint32_t index) const {
  if (const auto shared = requests_.key(live.id, index, options_.block)) return *shared;
  return own_key | std::uint64_t{live.id} << bits_of_index | index;
}

Slot Scheduler::add_slot() {
  if (unused_.empty()) {
    live_.emplace_back();
    return static_cast<Slot>(live_.size() - 1);
  }
  const Slot slot = unused_.back();
  unused_.pop_back();
  auto blocks = std::move(live_[slot].blocks);
  blocks.clear();
  live_[slot] = {};
  live_[slot].blocks = std::move(blocks);
  return slot;
}

void Scheduler::deliver(std::uint32_t request, std::uint32_t home, Time first_token, bool is_measured) {
  const Slot slot = add_slot();
  LiveRequest& live = live_[slot];
  const Request& asked = requests_[request];
  live.id = request;
  live.gaps.count = is_measured;
  live.prompt = asked.prompt;
  live.goal = role_ == Role::prefill ? 1 : asked.output;
  live.record.id = request;
  if (role_ == Role::decode) {
    live.home = home;
    live.known = 1;
    live.remote = live.prompt;
    live.gaps.last_token = first_token;
    live.record.decode_instance = static_cast<std::int32_t>(number_);
  } else {
    live.record.instance = static_cast<std::int32_t>(number_);
  }
  waiting_.push_back(slot);
}

bool Scheduler::schedule(Time now, bool is_step_under_way, Step& step) {
  pulls_.clear();
  for (;;) {
    step.shape.clear();
    step.sampled.clear();
    step.preempted.clear();
    step.items.clear();
    step.after = 0;
    std::uint32_t budget = options_.max_tokens;
    schedule_running(budget, step);
    if (step.preempted.empty()) schedule_waiting(now, budget, step);
    if (!step.is_empty()) break;
    // All who ran gave way, and no step will end and wake the scheduler: begin again.
    if (!step.preempted.empty() && !is_step_under_way) continue;
    step.preempted.clear();
    return false;
  }
  step.used_blocks = pool_.used();
  return true;
}

void Scheduler::schedule_running(std::uint32_t& budget, Step& step) {
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    const Slot slot = running_[i];
    LiveRequest& live = live_[slot];
    if (live.sampling.in_flight > 0 && live.known + live.sampling.in_flight >= live.goal) continue;
    if (live.sampling.in_flight > 0 && step.number < live.sampling.step + stages_) continue;
    std::uint32_t count = live.tokens() + live.sampling.in_flight - live.computed;
    if (options_.long_prefill > 0) count = std::min(count, options_.long_prefill);
    count = std::min(count, budget);
    if (count == 0) continue;
    const std::uint32_t wanted = blocks_for(std::uint64_t{live.computed} + count);
    const std::uint32_t need = wanted > live.num_blocks ? wanted - live.num_blocks : 0;
    if (need > pool_.free() && !make_room(need, slot, step)) break;
    take_tokens(slot, count, need, step);
    budget -= count;
  }
}

/// Preempts requests, the last admitted first, until so many blocks are free. Returns false if `slot` itself gave way.
bool Scheduler::make_room(std::uint32_t need, Slot slot, Step& step) {
  while (need > pool_.free()) {
    std::size_t last = running_.size();
    // A prefill that is done is needed for its transfer.
    do {
      ensure(last > 0, "a request that can give way");
      --last;
    } while (role_ == Role::prefill && live_[running_[last]].sampling.in_flight > 0);
    const Slot victim = running_[last];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(last));
    preempt(victim, step);
    if (victim == slot) return false;
  }
  return true;
}

/// First come the requests whose KV has been transferred, which hold their blocks, then the others from the head.
void Scheduler::schedule_waiting(Time now, std::uint32_t& budget, Step& step) {
  for (const bool has_come : {true, false}) {
    if (has_come && pulling_.empty()) continue;
    for (Slot slot = waiting_.front(); slot != WaitingQueue::end;) {
      const Slot next = waiting_.after(slot);
      const Status status = live_[slot].status;
      if ((status == Status::pulled) == has_come && status != Status::pulling) {
        if (budget == 0 || running_.size() >= options_.max_seqs) return;
        if (!admit(slot, now, budget, step)) return;
      }
      slot = next;
    }
  }
}

/// Returns in found the blocks of the longest beginning that the index has, without the last token.
void Scheduler::look_up(const LiveRequest& live, std::vector<Block>& found) const {
  found.clear();
  if (!pool_.caches()) return;
  const std::uint32_t most = (live.tokens() - 1) / options_.block;
  Block block = 0;
  for (std::uint32_t i = 0; i < most && pool_.find(key_of(live, i), block); ++i) found.push_back(block);
}

/// Returns false if there is no room for the request.
bool Scheduler::admit(Slot slot, Time now, std::uint32_t& budget, Step& step) {
  LiveRequest& live = live_[slot];
  found_.clear();
  if (live.computed == 0) look_up(live, found_);
  const auto num_found = static_cast<std::uint32_t>(found_.size());
  const std::uint32_t computed = live.computed + num_found * options_.block;
  const std::uint32_t missing = live.computed == 0 && live.remote > computed ? live.remote - computed : 0;
  // Layers come while the prompt is computed, so that even a request that lacks nothing waits for its first token.
  const bool is_pulled = missing > 0 || (pulls_layers_ && live.remote > 0 && live.computed == 0);
  std::uint32_t count = live.tokens() - computed;
  if (is_pulled) count = 0;
  if (options_.long_prefill > 0) count = std::min(count, options_.long_prefill);
  count = std::min(count, budget);
  const std::uint32_t held = live.num_blocks + num_found;
  const auto lacking = [&](std::uint64_t tokens) {
    const std::uint32_t wanted = blocks_for(tokens);
    return wanted > held ? wanted - held : 0;
  };
  // A transfer takes the block of the first new token too, so that what has come can always continue.
  const std::uint32_t need = lacking(std::uint64_t{computed} + missing + std::max(count, 1U));
  const std::uint32_t full = options_.reserve_full ? std::max(need, lacking(live.tokens())) : need;
  const std::uint32_t idle = num_found == 0 ? 0 : pool_.idle(found_);
  const std::uint32_t keep = running_.empty() ? 0 : options_.watermark;
  if (live.status != Status::pulled && std::uint64_t{full} + idle + keep > pool_.free()) return false;
  if (!is_pulled) waiting_.remove(slot);
  if (live.remote > 0 && !is_pulled && live.computed == 0) {
    live.remote = 0;
    pulls_.push_back({live.id, live.home, 0});
  }
  pool_.take_found(found_);
  live.blocks.insert(live.blocks.end(), found_.begin(), found_.end());
  live.num_blocks += num_found;
  live.entered = std::max(live.entered, num_found);
  live.record.prefix_hit += std::uint64_t{num_found} * options_.block;
  live.computed = computed;
  if (is_pulled) {
    pulling_[live.id] = slot;
    begin_pull(live, missing, need);
    return true;
  }
  if (live.status == Status::pulled) pulling_.erase(live.id);
  if (live.record.scheduled < Time::zero()) live.record.scheduled = now;
  live.status = Status::running;
  running_.push_back(slot);
  take_tokens(slot, count, need, step);
  budget -= count;
  return true;
}

/// Takes the blocks of a transfer at once. The request keeps its place among those that wait.
void Scheduler::begin_pull(LiveRequest& live, std::uint32_t missing, std::uint32_t need) {
  take_blocks(live, need);
  live.status = Status::pulling;
  live.record.transferred += missing;
  pulls_.push_back({live.id, live.home, missing});
}

void Scheduler::take_blocks(LiveRequest& live, std::uint32_t count) {
  if (pool_.caches())
    pool_.take_new(count, live.blocks);
  else
    pool_.take(count);
  live.num_blocks += count;
}

void Scheduler::take_tokens(Slot slot, std::uint32_t count, std::uint32_t need, Step& step) {
  LiveRequest& live = live_[slot];
  if (need > 0) take_blocks(live, need);
  const std::uint32_t before = live.computed;
  if (live.sampling.in_flight > 0 && live.computed >= live.tokens())
    step.after = std::max(step.after, live.sampling.step + 1);
  live.computed += count;
  enter(live, std::min(live.computed, live.tokens()));
  if (live.computed == live.tokens() + live.sampling.in_flight) {
    ++live.sampling.in_flight;
    live.sampling.step = step.number;
    step.sampled.push_back({slot, live.epoch});
  }
  step.shape.add(count, before);
  if (before < live.prompt) record_.prefill_tokens += count;
  if (records_items_) step.items.push_back({live.id, count, before});
}

/// Enters the full blocks of the first `upto` tokens into the index.
void Scheduler::enter(LiveRequest& live, std::uint64_t upto) {
  if (!pool_.caches()) return;
  while ((live.entered + 1) * std::uint64_t{options_.block} <= upto) {
    pool_.enter(key_of(live, live.entered), live.blocks[live.entered]);
    ++live.entered;
  }
}

void Scheduler::release(LiveRequest& live) {
  if (pool_.caches())
    pool_.release(live.blocks);
  else
    pool_.give(live.num_blocks);
  live.blocks.clear();
  live.num_blocks = live.entered = 0;
}

void Scheduler::preempt(Slot slot, Step& step) {
  LiveRequest& live = live_[slot];
  release(live);
  live.record.lost += live.computed;
  record_.lost += live.computed;
  ++live.record.preemptions;
  ++record_.preemptions;
  live.computed = live.remote = 0;
  live.status = Status::waiting;
  ++live.epoch;
  step.preempted.push_back(live.id);
  waiting_.push_front(slot);
}

void Scheduler::finish(const Step& step, Time now) {
  left_.clear();
  for (const auto& [slot, epoch] : step.sampled) {
    LiveRequest& live = live_[slot];
    --live.sampling.in_flight;
    ++live.known;
    ++record_.output_tokens;
    if (live.known == 1)
      live.record.first = now;
    else if (live.gaps.count)
      gaps_.add(now - live.gaps.last_token);
    live.gaps.last_token = now;
    if (epoch == live.epoch && live.status == Status::running)
      enter(live, live.sampling.in_flight == 0 ? std::min(live.computed, live.tokens())
                                               : live.computed - live.sampling.in_flight);
    if (live.known >= live.goal) leave(slot, now);
  }
}

void Scheduler::leave(Slot slot, Time now) {
  LiveRequest& live = live_[slot];
  if (live.status == Status::running)
    running_.erase(std::ranges::find(running_, slot));
  else
    waiting_.remove(slot);
  left_.push_back(live.id);
  if (goes_on_elsewhere(live.id)) {
    kept_.emplace(live.id, std::pair(live.num_blocks, live.blocks));
  } else {
    live.record.last = now;
    release(live);
  }
  finished_.push_back(live.record);
  unused_.push_back(slot);
}

void Scheduler::take_transfer(std::uint32_t request, Time first_token) {
  LiveRequest& live = live_[pulling_.at(request)];
  if (pulls_layers_) live.gaps.last_token = first_token;
  live.computed = live.prompt;
  live.remote = 0;
  live.status = Status::pulled;
  enter(live, live.prompt);
}

void Scheduler::release_kept(std::uint32_t request) {
  const auto kept = kept_.find(request);
  ensure(kept != kept_.end(), "blocks that are kept for a transfer");
  if (pool_.caches())
    pool_.release(kept->second.second);
  else
    pool_.give(kept->second.first);
  kept_.erase(kept);
}

std::string Scheduler::describe_waiting() const {
  constexpr int most = 5;
  std::string text;
  int count = 0;
  for (Slot slot = waiting_.front(); slot != WaitingQueue::end && count < most; slot = waiting_.after(slot), ++count)
    text +=
        fmt::format("{}request {} with {} blocks", text.empty() ? "" : ", ", live_[slot].id, live_[slot].num_blocks);
  return fmt::format("{} wait ({}{}), {} run, {} of {} blocks are free", waiting_.size(), text,
                     waiting_.size() > most ? ", ..." : "", running_.size(), pool_.free(), pool_.total());
}

}  // namespace orrery::serving
