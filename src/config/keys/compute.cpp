#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/results/columns_file.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

bool has_cache(const Configuration& c) { return c.execution.compute.cache.size > Bytes(0); }
bool has_expanded_memory(const Configuration& c) { return c.execution.compute.expanded.share > 0; }
bool is_roofline_or_recorded(const Configuration& c) {
  const auto model = c.execution.compute.model;
  return model == compute::ModelName("roofline") || model == compute::ModelName("recorded");
}
bool same_model(const Configuration& a, const Configuration& b) {
  return a.execution.compute.model == b.execution.compute.model;
}
bool has_roofline(const Configuration& c) { return c.execution.compute.model == compute::ModelName("roofline"); }
bool uses_operations(const Configuration& c, const Reading&) { return c.execution.compute.model->uses_operations; }

void require_roofline(const Configuration& c, const Place& place, const Reading&) {
  if (!c.execution.compute.model->uses_operations)
    throw Error(ErrorCode::bad_input, place, "found without the roofline, which alone uses it",
                "system.compute.roofline: true with it");
}

/// Throws unless the cache is faster than the local memory, as far as both are known.
void require_faster_cache(const Configuration& c, const Place& place, const Reading&) {
  const auto& compute = c.execution.compute;
  if (has_cache(c) && compute.local_memory.bytes_per_ns() > 0 &&
      compute.cache.bandwidth.bytes_per_ns() <= compute.local_memory.bytes_per_ns())
    throw Error(ErrorCode::bad_input, place,
                fmt::format("found {} GB/s, no more than the {} GB/s of the local memory",
                            compute.cache.bandwidth.bytes_per_ns(), compute.local_memory.bytes_per_ns()),
                "a cache that is faster");
}

/// Reads one rate for all precisions, or a mapping with one rate for each.
void read_peak(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  if (value.kind != Value::Kind::mapping || value.entries.empty()) {
    target.execution.compute.peak_flops = as_flops(value, path);
    return;
  }
  Section section(&value, path, value, reading.faults);
  for (const auto& [text, precision, help] : precisions())
    if (const Value* const peak = section.find(text))
      reading.faults.attempt([&] { target.peaks[precision] = as_flops(*peak, section.path(text)); });
  section.refuse_unknown();
}

void write_peak(const Configuration& c, std::string_view path, Writer& writer) {
  const double peak = c.execution.compute.peak_flops;
  if (c.peaks.empty() && peak > 0) writer.put(path, flops_to_text(peak));
  for (const auto& [precision, flops] : c.peaks)
    writer.put(fmt::format("{}.{}", path, text_of(precisions(), precision)), flops_to_text(flops));
}

bool same_peak(const Configuration& a, const Configuration& b) {
  return a.peaks == b.peaks && a.execution.compute.peak_flops == b.execution.compute.peak_flops;
}

bool has_array(const Configuration& c) { return c.execution.compute.model == compute::ModelName("systolic"); }
bool has_buffers(const Configuration& c) { return has_array(c) && c.execution.compute.systolic.buffers.any(); }
bool has_products(const Configuration& c) { return c.execution.compute.model == compute::ModelName("products"); }
bool has_table(const Configuration& c) { return c.execution.compute.model == compute::ModelName("table"); }

/// What the NPUs are, if that is given. It has no effect with models that do not ask for it.
constexpr Handling<Configuration> processor() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.execution.compute.products.processor = word<processors>().read(value, path, reading);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (const auto& name = c.execution.compute.products.processor) writer.put(path, std::string(name->name()));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.compute.products.processor == b.execution.compute.products.processor;
          }};
}

/// The kernel of fused attention, if it is given.
constexpr Handling<Configuration> attention_kernel() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.execution.compute.products.attention.kernel = word<attention_kernels>().read(value, path, reading);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (const auto& name = c.execution.compute.products.attention.kernel)
              writer.put(path, std::string(name->name()));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.compute.products.attention.kernel == b.execution.compute.products.attention.kernel;
          }};
}

/// The name of a file; empty if there is none.
constexpr Handling<Configuration> table_of_kernels() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            auto& table = target.execution.compute.table;
            table.file = as_path(value, path);
            table.kernels = results::is_hdf5(table.file) ? results::columns_as_csv(table.file)
                                                         : read_text(table.file, value.place(path));
            target.inputs.emplace_back("kernels.csv", table.kernels);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (has_table(c)) writer.put(path, in_quotes(normal_path(c.execution.compute.table.file)));
          },
          [](const Configuration& a, const Configuration& b) {
            const auto name = [](const Configuration& c) {
              return c.execution.compute.table.file.empty() ? "" : normal_path(c.execution.compute.table.file);
            };
            return name(a) == name(b);
          }};
}

/// Returns how a key is read whose value another key holds too: as that one, and never written.
template <const auto& type, auto access>
constexpr Handling<Configuration> alias() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    *access(target) = type.read(value, path, reading);
  }};
}
constexpr auto noise = share();
constexpr auto noise_seed = count(0);

constexpr Row<Configuration> compute_rows[] = {
    {"system.compute.roofline",
     "compute the durations of compute nodes by the roofline; otherwise use the recorded ones",
     "true",
     Default::value("false"),
     boolean(),
     {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
        target.execution.compute.model =
            compute::ModelName(boolean().read(value, path, reading) ? "roofline" : "recorded");
      },
      [](const Configuration& c, std::string_view path, Writer& writer) {
        if (is_roofline_or_recorded(c)) writer.put(path, has_roofline(c) ? "true" : "false");
      },
      same_model}},
    {"system.compute.model",
     "compute model, which says how long compute nodes take; `roofline: true` is short for roofline",
     "roofline",
     Default::described("by `roofline`"),
     word<compute_models>(),
     {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
        target.execution.compute.model = as_word(value, path, compute_models());
      },
      [](const Configuration& c, std::string_view path, Writer& writer) {
        if (!is_roofline_or_recorded(c)) writer.put(path, std::string(c.execution.compute.model.name()));
      },
      same_model},
     see("model.md, 2"),
     excludes("system.compute.roofline")},

    // Adds what the roofline is made of.
    {"system.compute.peak",
     "peak compute rate, for all precisions or for each; that of workload.parallel.precision counts, "
     "or of workload.precision for traces",
     "{bf16: 989 TFLOPS, fp8: 1979 TFLOPS}",
     Default::none(),
     compute_rate(),
     {read_peak, write_peak, same_peak},
     needed_if(uses_operations, "the roofline is on")},
    {"system.compute.efficiency",
     "share of the peak that compute nodes reach at most; MFU and HFU refer to the whole peak", "0.7",
     Default::built_in(), efficiency(), [](auto& c) { return &c.execution.compute.efficiency; },
     see("workloads.md, *Against measurements*"),
     check([](const Configuration& c, const Place& place, const Reading& reading) {
       if (c.execution.compute.efficiency < 1) require_roofline(c, place, reading);
     }),
     written_if([](const Configuration& c) { return c.execution.compute.model->uses_operations; })},
    {"system.compute.local-memory.bandwidth",
     "bandwidth of the local memory; without it reductions in collectives take no time", "3350 GB/s", Default::none(),
     bandwidth(), [](auto& c) { return &c.execution.compute.local_memory; },
     needed_if(uses_operations, "the roofline is on")},
    {"system.compute.local-memory.latency",
     "latency of the local memory, part of the duration of each compute node under the roofline", "80 ns",
     Default::built_in(), nanoseconds(), [](auto& c) { return &c.execution.compute.local_memory_latency_ns; }},
    {"system.compute.local-memory.size", "size of the local memory, which tensors may not exceed", "80 GiB",
     Default::described("no limit"), size(1, "80 GB", "Leave it out for a memory that holds anything."),
     [](auto& c) { return &c.execution.local_memory.size; }, see("memory.md, *Capacity*"),
     flag("local-memory-size", Heading::model, "SIZE", {Taker::run, Taker::check})},
    {"system.compute.local-memory.reserved",
     "part of that size that drivers and libraries take, and that fragments leave unused", "4 GB", Default::built_in(),
     size(0, "4 GB"), [](auto& c) { return &c.execution.local_memory.reserved; }, see("memory.md, *Capacity*"),
     check([](const Configuration& c, const Place& place, const Reading&) {
       const Bytes size = c.execution.local_memory.size;
       if (size > Bytes(0) && c.execution.local_memory.reserved >= size)
         throw Error(ErrorCode::bad_input, place,
                     fmt::format("found {} B of {} B", c.execution.local_memory.reserved.count(), size.count()),
                     "less than system.compute.local-memory.size");
     }),
     written_unless_default()},

    // Adds what the model `products` works with.
    {"system.compute.processor",
     "kind of the NPUs: with `model: products`, its measured kernels give the rates of products", "h100",
     Default::described("h100, with a warning where it matters"), word<processors>(), processor(), see("compute.md")},
    {"system.compute.attention", "share of the bf16 peak that fused attention reaches, with `model: products`", "0.5",
     Default::described("the processor's"), efficiency(),
     [](auto& c) { return &c.execution.compute.products.attention_share; }, see("compute.md"),
     written_if(
         [](const Configuration& c) { return has_products(c) && c.execution.compute.products.attention_share > 0; })},
    {"system.compute.attention-kernel",
     "kernel of fused attention, whose rates by size, direction and processor stand in place of one share, with "
     "`model: products`; `attention` goes before it",
     "flash-attention-2", Default::described("one share for all: `attention`"), word<attention_kernels>(),
     attention_kernel(), see("compute.md, *Attention*")},
    {"system.compute.attention-factor", "factor of the rates of `attention-kernel`", "1.05", Default::built_in(),
     factor(), [](auto& c) { return &c.execution.compute.products.attention.factor; }, see("compute.md, *Attention*"),
     written_unless_default()},
    {"system.compute.power-cap",
     "watts that an NPU may draw: below those of its data sheet its clock falls, and products and attention take "
     "longer, with `model: products`",
     "500", Default::described("the processor's"), number("more than 0"),
     [](auto& c) { return &c.execution.compute.products.power_cap; }, see("compute.md, *Power*"),
     check([](const Configuration& c, const Place& place, const Reading&) {
       if (!(c.execution.compute.products.power_cap > 0))
         throw Error(ErrorCode::bad_input, place, fmt::format("found {}", c.execution.compute.products.power_cap),
                     "watts, more than 0");
     }),
     written_unless_default()},
    {"system.compute.elementwise",
     "share of the memory's bandwidth that operations without products reach, with `model: products`", "0.4",
     Default::built_in(), efficiency(), [](auto& c) { return &c.execution.compute.products.elementwise_share; },
     see("compute.md"), written_if(has_products)},
    {"system.compute.fp8", "share of fp8's peak that products reach, relative to bf16's, with `model: products`", "0.9",
     Default::built_in(), efficiency(), [](auto& c) { return &c.execution.compute.products.fp8_share; },
     see("compute.md"), written_if(has_products)},
    {"system.compute.nvfp4", "share of nvfp4's peak that products reach, relative to bf16's, with `model: products`",
     "0.8", Default::built_in(), efficiency(), [](auto& c) { return &c.execution.compute.products.nvfp4_share; },
     see("compute.md"), written_unless_default()},
    {"system.compute.kernel", "time of each memory-bound kernel besides its bytes, with `model: products`", "4 us",
     Default::built_in(), duration(), [](auto& c) { return &c.execution.compute.products.kernel; }, see("compute.md"),
     written_if(has_products)},
    {"system.compute.table", "CSV or HDF5 of measured kernels, with `model: table`", "kernels.csv", Default::none(),
     file(), table_of_kernels(), see("compute.md"),
     needed_if([](const Configuration& c, const Reading&) { return has_table(c); }, "the model is table")},

    // Adds the array of the model `systolic`.
    {"system.compute.array.rows", "rows of the systolic array", "128", Default::needed_in_mapping(), count(),
     [](auto& c) { return &c.execution.compute.systolic.rows; }, see("compute.md"), written_if(has_array)},
    {"system.compute.array.columns", "its columns", "128", Default::needed_in_mapping(), count(),
     [](auto& c) { return &c.execution.compute.systolic.columns; }, written_if(has_array)},
    {"system.compute.array.cycle", "time of a cycle", "1.06 ns", Default::needed_in_mapping(), nanoseconds(),
     [](auto& c) { return &c.execution.compute.systolic.cycle_ns; }, written_if(has_array)},
    {"system.compute.array.dataflow", "operand that stays in the array", "output-stationary", Default::built_in(),
     word<dataflows>(), [](auto& c) { return &c.execution.compute.systolic.dataflow; }, written_if(has_array)},

    // Adds the buffers of the array.
    {"system.compute.array.input-buffer",
     "buffer of the input, the left operand of a product; `0 B`: buffers are always large enough", "8 MiB",
     Default::built_in(), size(0, "8 MiB"), [](auto& c) { return &c.execution.compute.systolic.buffers.input; },
     see("compute.md, *Buffers*"), written_if(has_buffers)},
    {"system.compute.array.filter-buffer",
     "buffer of the filter, the right operand; all three buffers are given, or none", "8 MiB", Default::built_in(),
     size(0, "8 MiB"), [](auto& c) { return &c.execution.compute.systolic.buffers.filter; }, written_if(has_buffers)},
    {"system.compute.array.output-buffer", "buffer of the results", "4 MiB", Default::built_in(), size(0, "4 MiB"),
     [](auto& c) { return &c.execution.compute.systolic.buffers.output; }, written_if(has_buffers)},
    {"system.compute.array.bandwidth", "bandwidth between each buffer and memory", "400 GB/s", Default::none(),
     bandwidth(), [](auto& c) { return &c.execution.compute.systolic.buffers.bandwidth; }, written_if(has_buffers)},
    {"system.compute.array.value", "size of an operand's value and of a result in the buffers", "1 B",
     Default::built_in(), size(1, "2 B"), [](auto& c) { return &c.execution.compute.systolic.buffers.value; },
     written_if(has_buffers)},
    {"system.compute.cache.size",
     "size of the cache; a node whose bytes fit into it moves them at the cache's bandwidth", "50 MiB",
     Default::needed_in_mapping(), size(0, "50 MiB"), [](auto& c) { return &c.execution.compute.cache.size; },
     see("memory.md"), check(require_roofline), written_if(has_cache)},
    {"system.compute.cache.bandwidth", "bandwidth of the cache, more than that of the local memory", "12 TB/s",
     Default::needed_in_mapping(), bandwidth(), [](auto& c) { return &c.execution.compute.cache.bandwidth; },
     check(require_faster_cache), written_if(has_cache)},
    {"system.compute.cache.latency", "latency of the cache", "5 ns", Default::built_in(), nanoseconds(),
     [](auto& c) { return &c.execution.compute.cache.latency_ns; }, written_if(has_cache)},
    {"system.compute.expanded-memory.share",
     "share of the bytes of all other nodes, and of the tensors, that lies in a memory beside the local "
     "one, as over CXL",
     "0.25", Default::needed_in_mapping(), share(), [](auto& c) { return &c.execution.compute.expanded.share; },
     check(require_roofline), written_if(has_expanded_memory)},
    {"system.compute.expanded-memory.bandwidth", "bandwidth of the expanded memory", "64 GB/s",
     Default::needed_in_mapping(), bandwidth(), [](auto& c) { return &c.execution.compute.expanded.bandwidth; },
     written_if(has_expanded_memory)},
    {"system.compute.expanded-memory.latency", "latency of the expanded memory", "1 us", Default::built_in(),
     nanoseconds(), [](auto& c) { return &c.execution.compute.expanded.latency_ns; }, written_if(has_expanded_memory)},
    {"system.compute.streams",
     "compute nodes that an NPU executes at a time, but for those of `workload.streams: trace`", "2",
     Default::built_in(), count(), [](auto& c) { return &c.execution.compute_streams; }},
    {"system.compute.noise", "earlier name of `perturbation.noise`", "0.05", Default::none(), noise,
     alias<noise, [](auto& c) { return &c.execution.noise.amplitude; }>()},
    {"system.compute.noise-seed", "earlier name of `perturbation.noise-seed`", "7", Default::none(), noise_seed,
     alias<noise_seed, [](auto& c) { return &c.execution.noise.seed; }>()},
};

constexpr Row<Configuration> communication_rows[] = {
    {"system.communication.streams",
     "communication nodes that an NPU executes at a time, but for those of `workload.streams: trace`", "2",
     Default::built_in(), count(), [](auto& c) { return &c.execution.comm_streams; }},
    {"system.communication.order",
     "ready node that takes a communication stream that falls free; of equals the lowest id", "fifo",
     Default::built_in(), word<communication_orders>(), [](auto& c) { return &c.execution.comm_order; }},
    {"system.communication.rendezvous", "let a sender wait until its receiver is ready, inside collectives too", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.execution.rendezvous; }},
    {"system.communication.durations", "source of the durations of collectives and messages of traces", "recorded",
     Default::built_in(), word<communication_durations>(), [](auto& c) { return &c.execution.recorded_communication; },
     see("model.md"), flag("communication-durations", Heading::model, "WORD", {Taker::run, Taker::check})},
};

}  // namespace

const Keys<Configuration>& compute_keys() {
  static const Keys<Configuration> all("system.compute", compute_rows);
  return all;
}

const Keys<Configuration>& communication_keys() {
  static const Keys<Configuration> all("system.communication", communication_rows);
  return all;
}

/// Refuses keys of one compute model beside another one, and keys of a library without one.
void Validation::validate_uses() {
  constexpr std::string_view of_products[] = {"system.compute.attention", "system.compute.elementwise",
                                              "system.compute.fp8", "system.compute.kernel"};
  const auto require_use = [this](std::string_view key, bool is_used, std::string_view user) {
    if (is_used || !c_.places.contains(key)) return;
    refuse(key, "found without what alone uses it", fmt::format("{} with it", user));
  };
  for (const std::string_view key : of_products)
    require_use(key, c_.execution.compute.model == compute::ModelName("products"), "system.compute.model: products");
  require_use("system.compute.table", c_.execution.compute.model == compute::ModelName("table"),
              "system.compute.model: table");
  for (const std::string_view key : {"system.compute.array.rows", "system.compute.array.columns",
                                     "system.compute.array.cycle", "system.compute.array.dataflow"})
    require_use(key, c_.execution.compute.model == compute::ModelName("systolic"), "system.compute.model: systolic");
  for (const auto& [key, place] : c_.places)
    if (key.starts_with("system.collectives.library.") && key != "system.collectives.library.name")
      require_use(key, c_.collectives.library.library.has_value(), "system.collectives.library.name");
}

}  // namespace orrery::config
