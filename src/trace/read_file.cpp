#include "read_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

/// Makes the contents of each trace as soon as it is complete.
class ContentsSink final : public TraceSink {
 public:
  ContentsSink(const TraceFile& file, NpuId npu, ReadContext& context, SharedParts& parts, FileContents& contents,
               Faults& faults)
      : file_(file), npu_(npu), context_(context), parts_(parts), contents_(contents), faults_(faults) {}

  ParsedTrace& begin() override { return start({}); }

  ParsedTrace* begin(NpuId npu) override {
    if (!contents_.named.insert(npu).second)
      throw Error(ErrorCode::bad_input, place_of(npu), "the file holds two traces of this NPU",
                  "one trace for each NPU");
    return is_needed(npu) ? &start(npu) : nullptr;
  }

  const ReadOptions& options() const override { return context_.options; }

  void finish() {
    if (!parsed_) return;
    faults_.attempt([&] { check_precision(); });
    FileContents::Trace& trace = contents_.traces.back();
    trace.contents = make_contents(*parsed_, context_.groups, context_.options, context_.tensors, faults_);
    parsed_.reset();
    if (!faults_.empty()) return;
    if (const std::size_t count = contents_.traces.size(); count > 1) {
      const auto& before = contents_.traces[count - 2].contents.tags;
      if (*before == *trace.contents.tags) trace.contents.tags = before;
    }
    trace.parts = parts_.keep(std::exchange(trace.contents.graph, {}), std::exchange(trace.contents.labels, {}));
  }

 private:
  Place place_of(NpuId npu) const {
    Place place = file_.place();
    place.npu = npu.value();
    return place;
  }

  /// Traces say in which precision they compute if it is not bf16.
  void check_precision() {
    const std::string &named = parsed_->precision, &required = context_.options.precision;
    if (named.empty() || named == required) return;
    context_.precisions.insert(named);
    if (required.empty()) return;
    throw Error(ErrorCode::bad_input, file_.place(),
                fmt::format("the trace computes in {}, but the run in {}", shown(named), required),
                fmt::format("workload.precision: {}", shown(named)));
  }

  bool is_needed(NpuId npu) const {
    const ReadOptions& options = context_.options;
    if (options.alone) return contents_.traces.empty();
    if (npu.value() >= options.num_npus)
      throw Error(ErrorCode::bad_input, file_.place(),
                  fmt::format("the file holds a trace of NPU {}, but the system has {}", npu.value(),
                              counted(options.num_npus, "NPU")),
                  fmt::format("NPUs 0 to {}", options.num_npus - 1));
    return npu == npu_ || !options.hosts || options.hosts(npu);
  }

  ParsedTrace& start(std::optional<NpuId> npu) {
    finish();
    context_.names.start_file();
    Source source = file_.source();
    if (npu) source.npu = npu->value();
    contents_.traces.push_back({npu, {}, {}});
    return parsed_.emplace(std::move(source), context_.names);
  }

  const TraceFile& file_;
  NpuId npu_;
  ReadContext& context_;
  SharedParts& parts_;
  FileContents& contents_;
  Faults& faults_;
  std::optional<ParsedTrace> parsed_;
};

}  // namespace

FileContents read_file(const std::filesystem::path& path, NpuId npu, ReadContext& context, SharedParts& parts,
                       Faults& faults, std::span<const Reader> formats) {
  FileContents contents;
  faults.attempt([&] {
    TraceFile file(path, {path.string(), npu.value()}, context.while_reading);
    const Reader& reader = find_reader(file, formats);
    contents.format = reader.name;
    ContentsSink sink(file, npu, context, parts, contents, faults);
    reader.read(file, sink);
    sink.finish();
    contents.digest = file.digest();
  });
  return contents;
}

}  // namespace orrery::trace
