#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"
#include "orrery/results/columns_file.hpp"

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

void write_peak(const Configuration& c, Writer& writer) {
  const double peak = c.execution.compute.peak_flops;
  if (c.peaks.empty() && peak > 0) writer.put("system.compute.peak", flops_to_text(peak));
  for (const auto& [precision, flops] : c.peaks)
    writer.put(fmt::format("system.compute.peak.{}", text_of(precisions(), precision)), flops_to_text(flops));
}

bool same_peak(const Configuration& a, const Configuration& b) {
  return a.peaks == b.peaks && a.execution.compute.peak_flops == b.execution.compute.peak_flops;
}

void add_model(Keys<Configuration>& keys) {
  keys.add({.path = "system.compute.roofline",
            .help = "compute the durations of compute nodes by the roofline; else take the recorded ones",
            .example = "true",
            .otherwise = Default::value("false")},
           boolean().info,
           {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
              target.execution.compute.model =
                  compute::ModelName(boolean().read(value, path, reading) ? "roofline" : "recorded");
            },
            [](const Configuration& c, Writer& writer) {
              if (is_roofline_or_recorded(c)) writer.put("system.compute.roofline", has_roofline(c) ? "true" : "false");
            },
            same_model});
  keys.add({.path = "system.compute.model",
            .help = "compute model, which says how long compute nodes take; `roofline: true` is short for roofline",
            .example = "roofline",
            .otherwise = Default::described("by `roofline`"),
            .see = "model.md, 2"},
           word(compute_models()).info,
           {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
              target.execution.compute.model = word(compute_models()).read(value, path, reading);
            },
            [](const Configuration& c, Writer& writer) {
              if (!is_roofline_or_recorded(c))
                writer.put("system.compute.model", std::string(c.execution.compute.model.name()));
            },
            same_model})
      .excludes("system.compute.roofline");
}

bool has_products(const Configuration& c) { return c.execution.compute.model == compute::ModelName("products"); }
bool has_table(const Configuration& c) { return c.execution.compute.model == compute::ModelName("table"); }

/// What the NPUs are, if that is given. It has no effect with models that do not ask for it.
Handling<Configuration> processor() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.execution.compute.products.processor = word(processors()).read(value, path, reading);
          },
          [](const Configuration& c, Writer& writer) {
            if (const auto& name = c.execution.compute.products.processor)
              writer.put("system.compute.processor", std::string(name->name()));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.compute.products.processor == b.execution.compute.products.processor;
          }};
}

/// Adds what the model `products` works with.
void add_products(Keys<Configuration>& keys) {
  keys.add({.path = "system.compute.processor",
            .help = "what the NPUs are: with `model: products`, its measured kernels say what products reach",
            .example = "h100",
            .otherwise = Default::described("h100, with a warning where it matters"),
            .see = "compute.md"},
           word(processors()).info, processor());
  keys.add(
          {.path = "system.compute.attention",
           .help = "share of the bf16 peak that fused attention reaches, with `model: products`",
           .example = "0.5",
           .otherwise = Default::described("the processor's"),
           .see = "compute.md"},
          efficiency(), [](auto& c) -> auto& { return c.execution.compute.products.attention_share; })
      .written_if(
          [](const Configuration& c) { return has_products(c) && c.execution.compute.products.attention_share > 0; });
  keys.add(
          {.path = "system.compute.elementwise",
           .help = "share of the memory's bandwidth that operations without products reach, with `model: products`",
           .example = "0.4",
           .otherwise = Default::built_in(),
           .see = "compute.md"},
          efficiency(), [](auto& c) -> auto& { return c.execution.compute.products.elementwise_share; })
      .written_if(has_products);
  keys.add(
          {.path = "system.compute.fp8",
           .help = "share of fp8's peak that products reach, relative to bf16's, with `model: products`",
           .example = "0.9",
           .otherwise = Default::built_in(),
           .see = "compute.md"},
          efficiency(), [](auto& c) -> auto& { return c.execution.compute.products.fp8_share; })
      .written_if(has_products);
  keys.add(
          {.path = "system.compute.kernel",
           .help = "time of each memory-bound kernel besides its bytes, with `model: products`",
           .example = "4 us",
           .otherwise = Default::built_in(),
           .see = "compute.md"},
          duration(), [](auto& c) -> auto& { return c.execution.compute.products.kernel; })
      .written_if(has_products);
}

/// Adds the array of the model `systolic`.
void add_array(Keys<Configuration>& keys) {
  const auto has_array = [](const Configuration& c) {
    return c.execution.compute.model == compute::ModelName("systolic");
  };
  keys.add(
          {.path = "system.compute.array.rows",
           .help = "rows of the systolic array",
           .example = "128",
           .otherwise = Default::needed_in_mapping(),
           .see = "compute.md"},
          count(), [](auto& c) -> auto& { return c.execution.compute.systolic.rows; })
      .written_if(has_array);
  keys.add(
          {.path = "system.compute.array.columns",
           .help = "its columns",
           .example = "128",
           .otherwise = Default::needed_in_mapping()},
          count(), [](auto& c) -> auto& { return c.execution.compute.systolic.columns; })
      .written_if(has_array);
  keys.add(
          {.path = "system.compute.array.cycle",
           .help = "time of a cycle",
           .example = "1.06 ns",
           .otherwise = Default::needed_in_mapping()},
          nanoseconds(), [](auto& c) -> auto& { return c.execution.compute.systolic.cycle_ns; })
      .written_if(has_array);
  keys.add(
          {.path = "system.compute.array.dataflow",
           .help = "what stays in the array",
           .example = "output-stationary",
           .otherwise = Default::built_in()},
          word(dataflows()), [](auto& c) -> auto& { return c.execution.compute.systolic.dataflow; })
      .written_if(has_array);
}

/// Adds the buffers of the array.
void add_array_buffers(Keys<Configuration>& keys) {
  const auto has_buffers = [](const Configuration& c) {
    return c.execution.compute.model == compute::ModelName("systolic") && c.execution.compute.systolic.buffers.any();
  };
  keys.add(
          {.path = "system.compute.array.input-buffer",
           .help = "buffer of the input, the left operand of a product; `0 B`: buffers are always large enough",
           .example = "8 MiB",
           .otherwise = Default::built_in(),
           .see = "compute.md, *Buffers*"},
          size(0, "8 MiB"), [](auto& c) -> auto& { return c.execution.compute.systolic.buffers.input; })
      .written_if(has_buffers);
  keys.add(
          {.path = "system.compute.array.filter-buffer",
           .help = "buffer of the filter, the right operand; all three buffers are given, or none",
           .example = "8 MiB",
           .otherwise = Default::built_in()},
          size(0, "8 MiB"), [](auto& c) -> auto& { return c.execution.compute.systolic.buffers.filter; })
      .written_if(has_buffers);
  keys.add(
          {.path = "system.compute.array.output-buffer",
           .help = "buffer of the results",
           .example = "4 MiB",
           .otherwise = Default::built_in()},
          size(0, "4 MiB"), [](auto& c) -> auto& { return c.execution.compute.systolic.buffers.output; })
      .written_if(has_buffers);
  keys.add(
          {.path = "system.compute.array.bandwidth",
           .help = "bandwidth between each buffer and memory",
           .example = "400 GB/s",
           .otherwise = Default::none()},
          bandwidth(), [](auto& c) -> auto& { return c.execution.compute.systolic.buffers.bandwidth; })
      .written_if(has_buffers);
  keys.add(
          {.path = "system.compute.array.value",
           .help = "size of an operand's value and of a result in the buffers",
           .example = "1 B",
           .otherwise = Default::built_in()},
          size(1, "2 B"), [](auto& c) -> auto& { return c.execution.compute.systolic.buffers.value; })
      .written_if(has_buffers);
}

/// The name of a file; empty if there is none.
Handling<Configuration> table_of_kernels() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            auto& table = target.execution.compute.table;
            table.file = as_path(value, path);
            table.kernels = results::is_hdf5(table.file) ? results::columns_as_csv(table.file)
                                                         : read_text(table.file, value.place(path));
            target.inputs.emplace_back("kernels.csv", table.kernels);
          },
          [](const Configuration& c, Writer& writer) {
            if (has_table(c))
              writer.put("system.compute.table", in_quotes(normal_path(c.execution.compute.table.file)));
          },
          [](const Configuration& a, const Configuration& b) {
            const auto name = [](const Configuration& c) {
              return c.execution.compute.table.file.empty() ? "" : normal_path(c.execution.compute.table.file);
            };
            return name(a) == name(b);
          }};
}

void add_table(Keys<Configuration>& keys) {
  keys.add({.path = "system.compute.table",
            .help = "CSV or HDF5 of measured kernels, with `model: table`",
            .example = "kernels.csv",
            .otherwise = Default::none(),
            .see = "compute.md"},
           file().info, table_of_kernels())
      .needed_if([](const Configuration& c, const Reading&) { return has_table(c); }, "the model is table");
}

/// Adds what the roofline is made of.
void add_roofline(Keys<Configuration>& keys) {
  keys.add({.path = "system.compute.peak",
            .help = "peak compute rate, for all precisions or for each; that of workload.parallel.precision counts, "
                    "bf16 for traces",
            .example = "{bf16: 989 TFLOPS, fp8: 1979 TFLOPS}",
            .otherwise = Default::none()},
           compute_rate().info, {read_peak, write_peak, same_peak})
      .needed_if(uses_operations, "the roofline is on");
  keys.add(
          {.path = "system.compute.efficiency",
           .help = "share of the peak that compute nodes reach at most; MFU and HFU refer to the whole peak",
           .example = "0.7",
           .otherwise = Default::built_in(),
           .see = "workloads.md, *Against measurements*"},
          efficiency(), [](auto& c) -> auto& { return c.execution.compute.efficiency; })
      .check([](const Configuration& c, const Place& place, const Reading& reading) {
        if (c.execution.compute.efficiency < 1) require_roofline(c, place, reading);
      })
      .written_if([](const Configuration& c) { return c.execution.compute.model->uses_operations; });
  keys.add(
          {.path = "system.compute.local-memory.bandwidth",
           .help = "bandwidth of the local memory; without it reductions in collectives take no time",
           .example = "3350 GB/s",
           .otherwise = Default::none()},
          bandwidth(), [](auto& c) -> auto& { return c.execution.compute.local_memory; })
      .needed_if(uses_operations, "the roofline is on");
  keys.add(
      {.path = "system.compute.local-memory.latency",
       .help = "latency of the local memory, part of the duration of each compute node under the roofline",
       .example = "80 ns",
       .otherwise = Default::built_in()},
      nanoseconds(), [](auto& c) -> auto& { return c.execution.compute.local_memory_latency_ns; });
  keys.add(
      {.path = "system.compute.local-memory.size",
       .help = "size of the local memory, which tensors may not exceed",
       .example = "80 GiB",
       .otherwise = Default::described("no limit"),
       .see = "memory.md, *Capacity*",
       .flag = Flag{.name = "local-memory-size",
                    .heading = Heading::model,
                    .argument = "SIZE",
                    .commands = {Taker::run, Taker::check}}},
      size(1, "80 GB", "Leave it out for a memory that holds anything."),
      [](auto& c) -> auto& { return c.execution.local_memory_size; });
}

void add_levels(Keys<Configuration>& keys) {
  keys.add(
          {.path = "system.compute.cache.size",
           .help = "size of the cache; a node whose bytes fit into it moves them at the cache's bandwidth",
           .example = "50 MiB",
           .otherwise = Default::needed_in_mapping(),
           .see = "memory.md"},
          size(0, "50 MiB"), [](auto& c) -> auto& { return c.execution.compute.cache.size; })
      .check(require_roofline)
      .written_if(has_cache);
  keys.add(
          {.path = "system.compute.cache.bandwidth",
           .help = "bandwidth of the cache, more than that of the local memory",
           .example = "12 TB/s",
           .otherwise = Default::needed_in_mapping()},
          bandwidth(), [](auto& c) -> auto& { return c.execution.compute.cache.bandwidth; })
      .check(require_faster_cache)
      .written_if(has_cache);
  keys.add(
          {.path = "system.compute.cache.latency",
           .help = "latency of the cache",
           .example = "5 ns",
           .otherwise = Default::built_in()},
          nanoseconds(), [](auto& c) -> auto& { return c.execution.compute.cache.latency_ns; })
      .written_if(has_cache);
  keys.add(
          {.path = "system.compute.expanded-memory.share",
           .help = "share of the bytes of all other nodes, and of the tensors, that lies in a memory beside the local "
                   "one, as over CXL",
           .example = "0.25",
           .otherwise = Default::needed_in_mapping()},
          share(), [](auto& c) -> auto& { return c.execution.compute.expanded.share; })
      .check(require_roofline)
      .written_if(has_expanded_memory);
  keys.add(
          {.path = "system.compute.expanded-memory.bandwidth",
           .help = "bandwidth of the memory beside the local one",
           .example = "64 GB/s",
           .otherwise = Default::needed_in_mapping()},
          bandwidth(), [](auto& c) -> auto& { return c.execution.compute.expanded.bandwidth; })
      .written_if(has_expanded_memory);
  keys.add(
          {.path = "system.compute.expanded-memory.latency",
           .help = "latency of the memory beside the local one",
           .example = "1 us",
           .otherwise = Default::built_in()},
          nanoseconds(), [](auto& c) -> auto& { return c.execution.compute.expanded.latency_ns; })
      .written_if(has_expanded_memory);
}

/// Returns how a key is read whose value `key` holds too: as that one, and never written.
template <class T, class Access>
Handling<Configuration> alias(const Type<T>& type, Access access) {
  return {[=](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            access(target) = type.read(value, path, reading);
          },
          [](const Configuration&, Writer&) {}, [](const Configuration&, const Configuration&) { return true; }};
}

}  // namespace

const Keys<Configuration>& compute_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.compute");
    add_model(keys);
    add_roofline(keys);
    add_products(keys);
    add_table(keys);
    add_array(keys);
    add_array_buffers(keys);
    add_levels(keys);
    keys.add(
        {.path = "system.compute.streams",
         .help = "compute nodes that an NPU executes at a time, but for those of `workload.streams: trace`",
         .example = "2",
         .otherwise = Default::built_in()},
        count(), [](auto& c) -> auto& { return c.execution.compute_streams; });
    keys.add({.path = "system.compute.noise",
              .help = "earlier name of `perturbation.noise`",
              .example = "0.05",
              .otherwise = Default::none()},
             share().info,
             alias(
                 share(), [](auto& c) -> auto& { return c.execution.noise.amplitude; }));
    keys.add({.path = "system.compute.noise-seed",
              .help = "earlier name of `perturbation.noise-seed`",
              .example = "7",
              .otherwise = Default::none()},
             count(0).info,
             alias(
                 count(0), [](auto& c) -> auto& { return c.execution.noise.seed; }));
    return keys;
  }();
  return all;
}

const Keys<Configuration>& communication_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.communication");
    keys.add(
        {.path = "system.communication.streams",
         .help = "communication nodes that an NPU executes at a time, but for those of `workload.streams: trace`",
         .example = "2",
         .otherwise = Default::built_in()},
        count(), [](auto& c) -> auto& { return c.execution.comm_streams; });
    keys.add(
        {.path = "system.communication.order",
         .help = "ready node that takes a communication stream that falls free; of equals the lowest id",
         .example = "fifo",
         .otherwise = Default::built_in()},
        word(communication_orders()), [](auto& c) -> auto& { return c.execution.comm_order; });
    keys.add(
        {.path = "system.communication.rendezvous",
         .help = "let a sender wait until its receiver is ready, inside collectives too",
         .example = "true",
         .otherwise = Default::built_in()},
        boolean(), [](auto& c) -> auto& { return c.execution.rendezvous; });
    keys.add(
        {.path = "system.communication.durations",
         .help = "what says how long collectives and messages of traces take",
         .example = "recorded",
         .otherwise = Default::built_in(),
         .see = "model.md",
         .flag = Flag{.name = "communication-durations",
                      .heading = Heading::model,
                      .argument = "WORD",
                      .commands = {Taker::run, Taker::check}}},
        word(communication_durations()), [](auto& c) -> auto& { return c.execution.recorded_communication; });
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
