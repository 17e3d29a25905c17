#pragma once

#include <string_view>

#include "orrery/base/ids.hpp"
#include "orrery/trace/store.hpp"
#include "parsed_trace.hpp"
#include "trace_file.hpp"

namespace orrery::trace {

/// Takes the traces that a reader finds in a file, one NPU's after the other. Only one of them is in memory: it is
/// complete, and what `begin` returned no longer valid, when the next one begins or the reader returns.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// Begins the only trace of a file that does not say whose it is.
  virtual ParsedTrace& begin() = 0;
  /// Begins the trace of an NPU that the file names. Returns null if the trace is not needed: the reader skips it.
  virtual ParsedTrace* begin(NpuId npu) = 0;
  /// Says how files are read, for readers to which that matters.
  virtual const ReadOptions& options() const;
};

/// A format of execution traces. Each stands in a source of its own, and registry.cpp lists them all.
///
/// - If a file holds one NPU's trace without saying whose, `read` begins one trace without a number.
/// - If a file holds the trace of one NPU and says whose, or those of several, `read` begins each with the number of
///   the NPU. Every rank reads such a file once, for the NPUs that it hosts.
/// - If several files belong together, the configuration names one of them; `read` finds the others by TraceFile::path
///   and opens each as a TraceFile of its own.
struct Reader {
  std::string_view name;  ///< as messages and documents give it: lower case, digits, dots and hyphens
  std::string_view help;  ///< one line
  /// Says whether a file that begins with these bytes, unpacked, is of this format (TraceFile::beginning). The name of
  /// the file does not count.
  bool (*recognises)(std::string_view beginning);
  /// Reads a file from its beginning to its end, in pieces. Throws Error (bad_input) with the place for what is not of
  /// the format. Cost O(bytes).
  void (*read)(TraceFile& file, TraceSink& sink);
};

}  // namespace orrery::trace
