#include "orrery/collective/kind.hpp"

#include "orrery/base/error.hpp"

namespace orrery::collective {

Kind kind_of(trace::CollectiveKind kind) {
  using Trace = trace::CollectiveKind;
  switch (kind) {
    case Trace::all_reduce:
      return Kind::all_reduce;
    case Trace::reduce:
      return Kind::reduce;
    case Trace::all_gather:
      return Kind::all_gather;
    case Trace::gather:
      return Kind::gather;
    case Trace::scatter:
      return Kind::scatter;
    case Trace::broadcast:
      return Kind::broadcast;
    case Trace::all_to_all:
      return Kind::all_to_all;
    case Trace::reduce_scatter:
      return Kind::reduce_scatter;
    case Trace::barrier:
      return Kind::barrier;
    case Trace::expert_dispatch:
      return Kind::expert_dispatch;
    case Trace::expert_combine:
      return Kind::expert_combine;
  }
  ensure_failed("a kind of collective that does not exist", std::source_location::current());
}

Bytes whole_buffer(Kind kind, std::uint32_t members, Bytes size) {
  if (kind == Kind::barrier) return Bytes(0);
  const bool is_share = kind == Kind::all_gather || kind == Kind::gather;
  return size * (is_share ? members : 1);
}

}  // namespace orrery::collective
