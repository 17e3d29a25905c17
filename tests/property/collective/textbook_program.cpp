#include "textbook_program.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace orrery::collective::test {

TextbookProgram::TextbookProgram(const GroupCase& group) : group_(group), steps_(group.size) {
  for (std::vector<Step>& steps : steps_) steps.push_back({{}, {}, group.endpoint_delay, {}});
  const std::string_view algorithm = group.algorithm.name;
  if (algorithm == "ring") group.kind == Kind::all_to_all ? ring_all_to_all() : ring();
  if (algorithm == "direct") direct();
  if (algorithm == "halvingDoubling" && group.kind != Kind::all_gather) halving();
  if (algorithm == "halvingDoubling" && group.kind != Kind::reduce_scatter) doubling();
  if (algorithm == "doubleBinaryTree") double_binary_tree();
  if (algorithm == "binomialTree") binomial_tree();
  if (algorithm == "inSwitch") in_switch();
}

std::size_t TextbookProgram::send(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t> blocks, bool adds) {
  const Ps delay = from < group_.size && to < group_.size ? group_.link(from, to, blocks.size() * group_.piece) : 0;
  messages_.push_back({from, to, std::move(blocks), adds, delay});
  steps_[from].back().sends.push_back(messages_.size() - 1);
  return messages_.size() - 1;
}

void TextbookProgram::wait(std::uint32_t node, std::vector<std::size_t> messages, Ps cost) {
  Step step{{}, {}, cost, {}};
  for (const std::size_t m : messages) (messages_[m].to == node ? step.awaits : step.holds).push_back(m);
  steps_[node].push_back(std::move(step));
}

Ps TextbookProgram::received(std::size_t blocks, bool adds) const {
  return group_.endpoint_delay + (adds && group_.reduces ? group_.reduction(blocks * group_.piece) : 0);
}

std::vector<std::uint32_t> TextbookProgram::all_blocks() const {
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t b = 0; b < group_.size; ++b) blocks.push_back(b);
  return blocks;
}

/// Every position sends to the next one: first each block is added up on its way to the position of its number, then it
/// goes round.
void TextbookProgram::ring() {
  const std::uint32_t n = group_.size;
  const auto half = [&](bool adds) {
    for (std::uint32_t k = 0; k + 1 < n; ++k) {
      std::vector<std::size_t> sent;
      for (std::uint32_t i = 0; i < n; ++i)
        sent.push_back(send(i, at(i, 1), {at(i, 2 * n - k - (adds ? 1 : 0))}, adds));
      for (std::uint32_t i = 0; i < n; ++i) wait(i, {sent[at(i, n - 1)]}, received(1, adds));
    }
  };
  if (group_.kind != Kind::all_gather) half(true);
  if (group_.kind != Kind::reduce_scatter) half(false);
}

/// Sends the blocks for the positions at distance d over d steps.
void TextbookProgram::ring_all_to_all() {
  const std::uint32_t n = group_.size;
  for (std::uint32_t d = 1; d < n; ++d)
    for (std::uint32_t step = 0; step < d; ++step) {
      std::vector<std::size_t> sent;
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t source = at(i, n - step);
        sent.push_back(send(i, at(i, 1), {source * n + at(source, d)}, false));
      }
      for (std::uint32_t i = 0; i < n; ++i) wait(i, {sent[at(i, n - 1)]}, received(1, false));
    }
}

void TextbookProgram::direct() {
  if (group_.kind != Kind::all_gather) direct_rounds(true);
  if (group_.kind == Kind::all_reduce || group_.kind == Kind::all_gather) direct_rounds(false);
}

/// Sends every block to the position of its number, or every position's own block to all, at most `window` distances at
/// a time.
void TextbookProgram::direct_rounds(bool scatters) {
  const std::uint32_t n = group_.size;
  const bool exchanges = group_.kind == Kind::all_to_all;
  const std::uint32_t window = group_.algorithm.window == 0 ? n - 1 : group_.algorithm.window;
  for (std::uint32_t first = 1; first < n; first += window) {
    std::vector<std::vector<std::size_t>> awaited(n);
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t d = first; d < std::min(n, first + window); ++d) {
        const std::uint32_t j = at(i, d);
        const std::uint32_t block = exchanges ? i * n + j : scatters ? j : i;
        awaited[j].push_back(send(i, j, {block}, scatters && !exchanges));
      }
    for (std::uint32_t i = 0; i < n; ++i) wait(i, awaited[i], received(1, scatters && !exchanges));
  }
}

/// Exchanges in step j with the partner whose number differs in bit j; each sends the blocks that agree with the
/// partner in the bits 0 .. j.
void TextbookProgram::halving() {
  for (std::uint32_t bit = 1; bit < group_.size; bit *= 2) {
    std::vector<std::size_t> sent;
    for (std::uint32_t i = 0; i < group_.size; ++i) {
      std::vector<std::uint32_t> blocks;
      for (const std::uint32_t b : all_blocks())
        if (((b ^ i ^ bit) & (2 * bit - 1)) == 0) blocks.push_back(b);
      sent.push_back(send(i, i ^ bit, blocks, true));
    }
    for (std::uint32_t i = 0; i < group_.size; ++i)
      wait(i, {sent[i ^ bit]}, received(messages_[sent[i]].blocks.size(), true));
  }
}

/// Does the same backwards: each sends the blocks that agree with itself in the bits 0 .. j.
void TextbookProgram::doubling() {
  for (std::uint32_t bit = group_.size / 2; bit > 0; bit /= 2) {
    std::vector<std::size_t> sent;
    for (std::uint32_t i = 0; i < group_.size; ++i) {
      std::vector<std::uint32_t> blocks;
      for (const std::uint32_t b : all_blocks())
        if (((b ^ i) & (2 * bit - 1)) == 0) blocks.push_back(b);
      sent.push_back(send(i, i ^ bit, blocks, false));
    }
    for (std::uint32_t i = 0; i < group_.size; ++i) wait(i, {sent[i ^ bit]}, received(0, false));
  }
}

/// Sends over an in-order tree of the nodes 1, 2, ... that hangs from node 0. Its node of height h has its lowest set
/// bit at h; subtrees that would reach beyond the last node are cut.
void TextbookProgram::double_binary_tree() {
  const std::uint32_t n = group_.size;
  std::vector<std::uint32_t> position(n);
  for (std::uint32_t p = 0; p < n; ++p) position[p] = group_.tree == 1 ? p : n % 2 == 0 ? n - 1 - p : (p + 1) % n;
  std::vector<std::vector<std::uint32_t>> children(n);  // [positions]
  const auto hang = [&](const auto& self, std::uint32_t parent, std::uint32_t from, std::uint32_t height) -> void {
    // The in-order tree over the positions from + 1 .. from + 2^height - 1, cut at n.
    if (height == 0 || from + 1 >= n) return;
    const std::uint32_t top = from + (1U << (height - 1));
    if (top >= n) {
      self(self, parent, from, height - 1);
      return;
    }
    children[parent].push_back(top);
    self(self, top, from, height - 1);
    self(self, top, top, height - 1);
  };
  hang(hang, 0, 0, 5);
  std::vector<std::size_t> message(n), back(n);
  const auto up = [&](const auto& self, std::uint32_t p) -> void {
    std::vector<std::size_t> awaited;
    for (const std::uint32_t c : children[p]) {
      self(self, c);
      awaited.push_back(message[c]);
    }
    Step& step = steps_[position[p]].back();
    step.awaits = awaited;
    step.cost = group_.endpoint_delay + static_cast<Ps>(awaited.size()) * (received(n, true) - group_.endpoint_delay);
    for (std::uint32_t parent = 0; parent < n; ++parent)
      if (std::ranges::find(children[parent], p) != children[parent].end())
        message[p] = send(position[p], position[parent], all_blocks(), true);
  };
  up(up, 0);
  const auto down = [&](const auto& self, std::uint32_t p) -> void {
    for (const std::uint32_t c : children[p]) {
      wait(position[c], {send(position[p], position[c], all_blocks(), false)}, group_.endpoint_delay);
      self(self, c);
    }
  };
  down(down, 0);
}

/// In each step on the way down every position that has the data sends them twice as near as in the step before. The
/// way up is the same backwards.
void TextbookProgram::binomial_tree() {
  const auto pass = [&](std::uint32_t from, std::uint32_t to, bool adds) {
    const std::size_t m = send(from, to, all_blocks(), adds);
    wait(from, {m}, group_.endpoint_delay);
    wait(to, {m}, received(group_.size, adds));
  };
  std::uint32_t widest = 1;
  while (2 * widest < group_.size) widest *= 2;
  if (group_.kind != Kind::broadcast)
    for (std::uint32_t bit = 1; bit <= widest; bit *= 2)
      for (std::uint32_t i = 0; i + bit < group_.size; i += 2 * bit) pass(i + bit, i, true);
  if (group_.kind != Kind::reduce)
    for (std::uint32_t bit = widest; bit > 0; bit /= 2)
      for (std::uint32_t i = 0; i + bit < group_.size; i += 2 * bit) pass(i, i + bit, false);
  all_wait_ = group_.kind != Kind::all_reduce;
}

/// Bytes flow through the switch: the first of them reach it after one hop, the last reach a position after another hop
/// and the time that the longer of what goes up and what comes down takes. A position that has nothing to send tells
/// the switch that it has begun.
void TextbookProgram::in_switch() {
  const std::uint32_t n = group_.size;
  const std::uint32_t node = n;
  steps_.emplace_back();
  const bool one_sends = group_.kind == Kind::broadcast || !group_.reduces;
  const bool scatters = group_.kind == Kind::reduce_scatter;
  std::vector<std::size_t> awaited;
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::vector<std::uint32_t> blocks;
    if (group_.kind == Kind::all_gather)
      blocks = {i};
    else if (!one_sends || i == 0)
      blocks = all_blocks();
    if (one_sends && scatters) std::erase(blocks, i);
    most = std::max(most, blocks.size());
    awaited.push_back(send(i, node, blocks, true));
    messages_.back().delay = group_.hop;
  }
  wait(node, awaited, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    std::vector<std::uint32_t> blocks = all_blocks();
    if (scatters) blocks = one_sends && i == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{i};
    if (group_.kind == Kind::all_gather) std::erase(blocks, i);
    if (group_.kind == Kind::broadcast && i == 0) blocks.clear();
    if (group_.kind == Kind::reduce && i != 0) blocks.clear();
    most = std::max(most, blocks.size());
    wait(i, {send(node, i, blocks, false)}, group_.endpoint_delay);
  }
  const Ps through = group_.link(0, 1, most * group_.piece) - group_.hop;
  for (Message& message : messages_)
    if (message.from == node) message.delay = through;
}

template <class Visit>
void TextbookProgram::walk(Visit visit) const {
  std::vector<std::size_t> next(steps_.size(), 0);
  std::vector<bool> sent(messages_.size(), false);
  for (bool any = true; any;) {
    any = false;
    for (std::uint32_t node = 0; node < steps_.size(); ++node) {
      while (next[node] < steps_[node].size()) {
        const Step& step = steps_[node][next[node]];
        if (!std::ranges::all_of(step.awaits, [&](std::size_t m) { return sent[m]; })) break;
        visit(node, step);
        for (const std::size_t m : step.sends) sent[m] = true;
        ++next[node];
        any = true;
      }
    }
  }
  for (std::uint32_t node = 0; node < steps_.size(); ++node)
    if (next[node] < steps_[node].size()) throw std::logic_error("a position waits for a message that nobody sends");
}

std::vector<Ps> TextbookProgram::finish(const std::vector<Ps>& starts) const {
  std::vector<Ps> ready = starts;
  ready.resize(steps_.size(), 0);
  std::vector<Ps> there(messages_.size(), 0);
  walk([&](std::uint32_t node, const Step& step) {
    for (const std::size_t m : step.awaits) ready[node] = std::max(ready[node], there[m]);
    for (const std::size_t m : step.holds) ready[node] = std::max(ready[node], there[m]);
    ready[node] += step.cost;
    for (const std::size_t m : step.sends) there[m] = ready[node] + messages_[m].delay;
  });
  ready.resize(group_.size);
  if (all_wait_)
    for (Ps& time : ready) time = std::max(time, *std::ranges::max_element(starts) + 2 * group_.endpoint_delay);
  return ready;
}

Holdings TextbookProgram::carry(const Holdings& initial, int& twice) const {
  Holdings holdings = initial;
  holdings.resize(steps_.size(), std::vector<Contributors>(initial[0].size(), 0));
  std::vector<std::vector<Contributors>> carried(messages_.size());
  walk([&](std::uint32_t node, const Step& step) {
    for (const std::size_t m : step.awaits)
      for (std::size_t b = 0; b < carried[m].size(); ++b) {
        Contributors& held = holdings[node][messages_[m].blocks[b]];
        if (messages_[m].adds && (held & carried[m][b]) != 0) ++twice;
        held = messages_[m].adds ? held | carried[m][b] : carried[m][b];
      }
    for (const std::size_t m : step.sends)
      for (const std::uint32_t b : messages_[m].blocks) carried[m].push_back(holdings[node][b]);
  });
  holdings.resize(group_.size);
  return holdings;
}

std::uint64_t TextbookProgram::bytes() const {
  std::uint64_t blocks = 0;
  for (const Message& message : messages_)
    if (message.from < group_.size) blocks += message.blocks.size();
  return blocks * group_.piece;
}

std::uint64_t TextbookProgram::most_bytes() const {
  std::vector<std::uint64_t> blocks(group_.size, 0);
  for (const Message& message : messages_)
    if (message.from < group_.size) blocks[message.from] += message.blocks.size();
  return *std::ranges::max_element(blocks) * group_.piece;
}

}  // namespace orrery::collective::test
