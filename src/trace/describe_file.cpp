#include <fmt/format.h>

#include <set>

#include "content.hpp"
#include "orrery/trace/store.hpp"
#include "reader.hpp"
#include "registry.hpp"

namespace orrery::trace {
namespace {

/// Ends the reading of a file of which enough is known.
struct Enough {};

/// Notes whose traces a file holds, and needs none of them.
class OwnersSink final : public TraceSink {
 public:
  OwnersSink(const ReadOptions& options, bool only_first) : options_(options), only_first_(only_first) {}

  ParsedTrace& begin() override { throw Enough(); }

  ParsedTrace* begin(NpuId npu) override {
    owners_.insert(npu);
    if (only_first_) throw Enough();
    return nullptr;
  }

  const ReadOptions& options() const override { return options_; }
  const std::set<NpuId>& owners() const { return owners_; }

 private:
  const ReadOptions& options_;
  bool only_first_;
  std::set<NpuId> owners_;
};

}  // namespace

FileDescription describe_file(const std::filesystem::path& path, ReadOptions options, bool only_first) {
  options.alone = true;
  TraceFile file(path, {.file = path.string(), .npu = {}});
  const Reader& reader = find_reader(file, readers());
  OwnersSink sink(options, only_first);
  try {
    reader.read(file, sink);
  } catch (const Enough&) {
  }
  return {reader.name, {sink.owners().begin(), sink.owners().end()}};
}

std::optional<std::string_view> format_of(const std::filesystem::path& path) {
  const TraceFile file(path, {.file = path.string(), .npu = {}});
  for (const Reader& reader : readers())
    if (reader.recognises(file.beginning())) return reader.name;
  return std::nullopt;
}

std::optional<std::string> describe_other(const std::filesystem::path& path) {
  if (const auto format = format_of(path))
    return fmt::format("a trace ({}): it belongs to workload.traces of a configuration", *format);
  const TraceFile file(path, {.file = path.string(), .npu = {}});
  return describe_foreign(file.beginning());
}

std::string read_unpacked(const std::filesystem::path& path) {
  constexpr std::size_t chunk = std::size_t{1} << 18;
  TraceFile file(path, {.file = path.string(), .npu = {}});
  std::string text;
  for (std::size_t got = chunk; got == chunk;) {
    const std::size_t before = text.size();
    text.resize(before + chunk);
    got = file.read({reinterpret_cast<std::uint8_t*>(text.data() + before), chunk});
    text.resize(before + got);
  }
  return text;
}

}  // namespace orrery::trace
