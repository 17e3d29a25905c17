#include <string>
#include <vector>

#include "columns.hpp"
#include "format.hpp"
#include "gather.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace format {

const std::array<KernelQuantity, 15> kernel_quantities{{
    {"events", {"1", "events", "events that the rank handled"}, &KernelRecord::events, nullptr},
    {"data_messages", {"1", "data messages", "messages sent that carry events"}, &KernelRecord::data_messages, nullptr},
    {"null_messages",
     {"1", "null messages", "messages sent that carry only a promise"},
     &KernelRecord::null_messages,
     nullptr},
    {"null_messages_received",
     {"1", "null messages received", "messages received that carry only a promise"},
     &KernelRecord::null_messages_received,
     nullptr},
    {"promise_requests",
     {"1", "promise requests", "promises that the rank asked for when it was blocked"},
     &KernelRecord::promise_requests,
     nullptr},
    {"events_sent", {"1", "events sent", "events sent to other ranks"}, &KernelRecord::events_sent, nullptr},
    {"posts_sent",
     {"1", "posts sent", "arrivals at collectives, and replies to them, sent to other ranks"},
     &KernelRecord::posts_sent,
     nullptr},
    {"message_bytes", {"byte", "message bytes", "bytes of all messages sent"}, &KernelRecord::message_bytes, nullptr},
    {"reductions",
     {"1", "reductions", "reductions over all ranks, which find the earliest event that can still occur"},
     &KernelRecord::reductions,
     nullptr},
    {"waits", {"1", "waits", "times that the rank had no event that it could handle"}, &KernelRecord::waits, nullptr},
    {"blocked_time",
     {"s", "blocked time", "wall-clock time in which the rank had no event that it could handle"},
     nullptr,
     &KernelRecord::blocked_time},
    {"busy_time",
     {"s", "busy time", "time of the processor that the rank took while it was not blocked"},
     nullptr,
     &KernelRecord::busy_time},
    {"peak_pending_events",
     {"1", "peak pending events", "largest number of events that waited to be handled"},
     &KernelRecord::peak_pending_events,
     nullptr},
    {"peak_memory",
     {"byte", "peak memory", "largest resident memory of the process"},
     &KernelRecord::peak_memory_bytes,
     nullptr},
    {"critical_path",
     {"1", "critical path", "events on the longest chain of dependent events that ends on the rank"},
     &KernelRecord::critical_path,
     nullptr},
}};

}  // namespace format

std::vector<KernelRecord> write_kernel(Output& output, const InputTexts& kernel_texts, const KernelRecord& mine,
                                       const std::string& host) {
  const auto hosts = gather_texts(output.world(), std::span(&host, 1));
  const auto all = output.world().gather<KernelRecord>(std::span(&mine, 1), Rank(0));
  const std::span<const KernelRecord> ranks = all;
  output.on_root([&](File& file) {
    file.group("/kernel", "one row per MPI rank: how the simulation ran; nothing here is a result of the simulation");
    if (!kernel_texts.empty()) write_inputs(file, "/kernel/inputs", kernel_texts);
    file.scale("/kernel/rank", ranks.size(), {"1", "rank", "MPI rank"});
    file.strings("/kernel/host", hosts, {"", "host", "computer on which the rank ran"});
    file.attach("/kernel/host", "/kernel/rank");
    for (const auto& quantity : format::kernel_quantities) {
      const std::string path = std::string("/kernel/") + quantity.name;
      if (quantity.count)
        file.column<std::uint64_t>(
            path, column_of<std::uint64_t>(ranks, [&](const KernelRecord& r) { return r.*quantity.count; }),
            quantity.label);
      else
        file.column<double>(path, column_of<double>(ranks, [&](const KernelRecord& r) { return r.*quantity.seconds; }),
                            quantity.label);
      file.attach(path, "/kernel/rank");
    }
  });
  return all;
}

}  // namespace orrery::results
