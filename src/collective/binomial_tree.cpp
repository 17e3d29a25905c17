#include <algorithm>
#include <bit>

#include "line.hpp"

namespace orrery::collective {
namespace {

// The parent of place c is c without its lowest set bit, 2^j; the root is place 0. Data go up in steps j = 0, 1, ...
// and down in the opposite order. In step j all c with lowest bit 2^j take part with their parents p:
//
//   up    next[p] = max(t + L, s[p]) + e + r      next[c] = t + L + e      t = s[c], or max(s[c], s[p] + D)
//   down  next[c] = max(t + L, s[c]) + e          next[p] = t + L + e      t = s[p], or max(s[p], s[c] + D)
//
// (the latter with rendezvous). A sender goes on when its message is there, so that it sends one at a time. All-reduce
// goes up and down. Broadcast goes down and reduce goes up; nobody finishes before all have started.

struct Edge {
  std::uint32_t child = 0;
  std::uint32_t parent = 0;
  Ps link = 0;
  Ps word = 0;  ///< with rendezvous the receiver's word over the same way
};

class BinomialTree final : public LineProgram {
 public:
  BinomialTree(const PhaseShape& shape, const LineContext& context, std::vector<Edge> edges)
      : size_(context.axis.size),
        kind_(shape.kind),
        rendezvous_(context.rendezvous),
        endpoint_delay_(context.endpoint_delay),
        reduction_(shape.reduces ? context.reduction(shape.size) : 0),
        edges_(std::move(edges)) {
    // In the last step down of a line of 2^k places all take part, each pair over the same distance.
    alike_ = kind_ != Kind::reduce && std::has_single_bit(size_) && context.is_transitive();
    Ps longest = 0;
    for (const Edge& edge : edges_) longest = std::max(longest, plus(edge.link, edge.word));
    (void)times(plus(longest, plus(endpoint_delay_, reduction_)),
                2 * static_cast<std::uint64_t>(std::bit_width(size_)));
    duration_ = last_finish(*this, 0, size_);
  }

  bool alike() const override { return alike_; }
  Ps duration(std::uint64_t) const override { return duration_; }
  std::size_t memory() const override { return sizeof(*this) + edges_.size() * sizeof(Edge); }

  void run(std::uint64_t, std::span<Ps> times, Scratch&) const override {
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* line = times.data() + at;
      Ps all_started = 0;
      for (std::size_t i = 0; i < size_; ++i) all_started = std::max(all_started, line[i] += endpoint_delay_);
      if (kind_ != Kind::broadcast)
        for (const Edge& edge : edges_) pass(line[edge.child], line[edge.parent], edge, reduction_);
      if (kind_ != Kind::reduce)
        for (std::size_t k = edges_.size(); k-- > 0;) pass(line[edges_[k].parent], line[edges_[k].child], edges_[k], 0);
      if (kind_ == Kind::all_reduce) continue;
      for (std::size_t i = 0; i < size_; ++i) line[i] = std::max(line[i], all_started + endpoint_delay_);
    }
  }

 private:
  void pass(Ps& sender, Ps& receiver, const Edge& edge, Ps reduction) const {
    const Ps there = (rendezvous_ ? std::max(sender, receiver + edge.word) : sender) + edge.link;
    receiver = std::max(there, receiver) + endpoint_delay_ + reduction;
    sender = there + endpoint_delay_;
  }

  std::uint32_t size_;
  Kind kind_;
  bool rendezvous_;
  Ps endpoint_delay_;
  Ps reduction_;
  std::vector<Edge> edges_;  ///< in the order of the way up
  bool alike_ = false;
  Ps duration_ = 0;
};

}  // namespace

std::unique_ptr<LineProgram> make_binomial_tree(const PhaseShape& shape, const LineContext& context) {
  ensure(shape.kind == Kind::all_reduce || shape.kind == Kind::broadcast || shape.kind == Kind::reduce,
         "a binomial tree where it has no rule");
  std::vector<Edge> edges;
  for (std::uint64_t bit = 1; bit < context.axis.size; bit *= 2)
    for (std::uint64_t child = bit; child < context.axis.size; child += 2 * bit) {
      const auto c = static_cast<std::uint32_t>(child);
      const auto p = static_cast<std::uint32_t>(child - bit);
      edges.push_back({c, p, context.link(c, p, shape.size), context.control(c, p)});
    }
  return std::make_unique<BinomialTree>(shape, context, std::move(edges));
}

}  // namespace orrery::collective
