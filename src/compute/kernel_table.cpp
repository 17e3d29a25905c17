#include "kernel_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::compute {
namespace {

constexpr std::size_t num_neighbours = 4;
constexpr std::array<std::string_view, 3> size_names = {"m", "k", "n"};
constexpr std::array<std::string_view, 8> column_names = {"operator", "pass", "precision", "m",
                                                          "k",        "n",    "bytes",     "microseconds"};

constexpr std::array<std::string_view, 3> class_names = {"product", "attention", "elementwise"};  // by Kind

std::string_view class_of(Operation::Kind kind) { return class_names[static_cast<std::size_t>(kind)]; }

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const auto comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
    while (!field.empty() && (field.back() == ' ' || field.back() == '\t' || field.back() == '\r'))
      field.remove_suffix(1);
    fields.push_back(field);
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

double positive(std::string_view text, std::string_view column, Place place) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value)) {
    place.key = column;
    throw Error(ErrorCode::bad_input, place, fmt::format("found '{}'", cited(text)), "a positive number");
  }
  return value;
}

/// Returns the logarithms of sizes. Products of one shape that run together count as one with more rows.
std::array<double, 3> logarithms(double m, double k, double n) { return {std::log(m), std::log(k), std::log(n)}; }

}  // namespace

KernelTable KernelTable::parse(std::string_view text, const std::string& name, std::string_view precision) {
  KernelTable table;
  table.name_ = name;
  std::set<std::string, std::less<>> others;  // precisions
  std::map<std::string_view, std::size_t> columns;
  std::uint64_t line_number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (line.empty() || line == "\r" || line.front() == '#') continue;
    const auto fields = split(line);
    const Place place{.file = name, .line = line_number};
    if (columns.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i)
        if (std::ranges::find(column_names, fields[i]) == column_names.end() || !columns.emplace(fields[i], i).second)
          throw Error(ErrorCode::bad_input, place, fmt::format("found the column '{}'", cited(fields[i])),
                      fmt::format("{}, each once", fmt::join(column_names, ", ")));
      for (const std::string_view needed : {"operator", "microseconds"})
        if (!columns.contains(needed))
          throw Error(ErrorCode::bad_input, place, fmt::format("the first line names no column '{}'", needed),
                      "operator, microseconds, and m, k, n or bytes; pass if there are backward kernels");
      continue;
    }
    if (fields.size() != columns.size())
      throw Error(ErrorCode::bad_input, place, fmt::format("found {}", counted(fields.size(), "field")),
                  fmt::format("{}, as the first line has", counted(columns.size(), "field")));
    const auto of_precision = columns.find("precision");
    const std::string_view own = of_precision == columns.end() ? "" : fields[of_precision->second];
    if (own.empty() || own == precision)
      table.add(fields, columns, place);
    else
      others.emplace(own);
  }
  if (table.kernels_.empty() && !others.empty())
    throw Error(ErrorCode::bad_input, {.file = name}, fmt::format("found kernels of {} only", fmt::join(others, ", ")),
                fmt::format("kernels of {}, the precision of the workload", precision));
  if (table.kernels_.empty())
    throw Error(ErrorCode::bad_input, {.file = name}, "found no kernel", "a line for each measured kernel");
  return table;
}

void KernelTable::add(std::span<const std::string_view> fields, const std::map<std::string_view, std::size_t>& columns,
                      const Place& place) {
  const auto text = [&](std::string_view column) {
    const auto at = columns.find(column);
    return at == columns.end() ? std::string_view() : fields[at->second];
  };
  std::string name(text("operator"));
  const std::string_view pass = text("pass");
  if (pass != "" && pass != "forward" && pass != "backward")
    throw Error(ErrorCode::bad_input, place, fmt::format("found the pass '{}'", cited(pass)), "forward or backward");
  if (pass == "backward") name += " backward";
  const double seconds = positive(text("microseconds"), "microseconds", place) * 1e-6;
  Kernel kernel{};
  double work = 0;
  if (!text("bytes").empty()) {
    work = positive(text("bytes"), "bytes", place);
    kernel.sizes = {std::log(work), 0, 0};
  } else {
    std::array<double, 3> sizes{};
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = positive(text(size_names[i]), size_names[i], place);
    work = sizes[0] * sizes[1] * sizes[2];
    kernel.sizes = logarithms(sizes[0], sizes[1], sizes[2]);
  }
  kernel.rate = work / seconds;
  kernels_[std::move(name)].push_back(kernel);
}

const std::vector<KernelTable::Kernel>& KernelTable::kernels_of(const Operation& operation) const {
  const bool is_backward = operation.is_backward && operation.kind != Operation::Kind::product;
  const std::string_view pass = is_backward ? " backward" : "";
  for (const std::string_view name : {operation.name, class_of(operation.kind)})
    if (const auto found = kernels_.find(fmt::format("{}{}", name, pass)); found != kernels_.end())
      return found->second;
  throw Error(ErrorCode::bad_input, {.file = name_},
              fmt::format("no kernel for the operator {}{}", operation.name, pass),
              fmt::format("kernels of '{}', or of '{}' in general", operation.name, class_of(operation.kind)));
}

std::vector<KernelTable::Part> KernelTable::parts(const Operation& operation) const {
  const auto& kernels = kernels_of(operation);
  if (operation.kind == Operation::Kind::elementwise) {
    const double bytes = static_cast<double>(operation.bytes);
    return {{operation.name, {std::log(bytes), 0, 0}, bytes, &kernels}};
  }
  const auto& [m, k, n, copies] = operation.shape;
  const auto rows = static_cast<double>(m), inner = static_cast<double>(k), columns = static_cast<double>(n);
  const auto times = static_cast<double>(copies);
  const double work = rows * inner * columns * times;
  if (operation.kind == Operation::Kind::attention)
    return {{operation.name, logarithms(rows * times, inner, columns), work, &kernels}};
  if (!operation.is_backward) return {{operation.name, logarithms(rows, inner, columns), work, &kernels}};
  return {{operation.name, logarithms(rows, columns, inner), work, &kernels},
          {operation.name, logarithms(inner, rows, columns), work, &kernels}};
}

double KernelTable::rate(const Part& part) {
  std::vector<std::pair<double, double>> near;  // squared distance and rate
  for (const Kernel& kernel : *part.kernels) {
    double distance = 0;
    for (std::size_t i = 0; i < kernel.sizes.size(); ++i) distance += std::pow(kernel.sizes[i] - part.sizes[i], 2);
    near.emplace_back(distance, kernel.rate);
  }
  const std::size_t count = std::min(num_neighbours, near.size());
  std::ranges::partial_sort(near, near.begin() + static_cast<std::ptrdiff_t>(count));
  if (near.front().first < 1e-12) return near.front().second;
  double weights = 0, sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    weights += 1 / near[i].first;
    sum += std::log(near[i].second) / near[i].first;
  }
  return std::exp(sum / weights);
}

double KernelTable::seconds(const Operation& operation) const {
  double sum = 0;
  for (const Part& part : parts(operation)) sum += part.work / rate(part);
  return sum;
}

std::optional<std::string> KernelTable::doubt(const Operation& operation) const {
  if (operation.kind == Operation::Kind::elementwise && operation.bytes == 0) return {};
  for (const Part& part : parts(operation))
    for (std::size_t i = 0; i < part.sizes.size(); ++i) {
      const auto size = [i](const Kernel& kernel) { return kernel.sizes[i]; };
      const auto [least, most] = std::ranges::minmax_element(*part.kernels, {}, size);
      constexpr double tolerance = 1e-9;
      if (part.sizes[i] >= least->sizes[i] - tolerance && part.sizes[i] <= most->sizes[i] + tolerance) continue;
      const bool has_bytes = operation.kind == Operation::Kind::elementwise;
      return fmt::format("{}: {} {:.0f} lies outside of the {:.0f} to {:.0f} that were measured", operation.name,
                         has_bytes ? "bytes" : size_names[i], std::exp(part.sizes[i]), std::exp(least->sizes[i]),
                         std::exp(most->sizes[i]));
    }
  return {};
}

std::vector<std::string> KernelTable::unused(std::span<const Operation> operations) const {
  std::vector<std::string> names;
  for (const auto& [name, kernels] : kernels_) {
    const std::string_view of_operator = std::string_view(name).substr(0, name.find(' '));
    const auto is_used = [&](const Operation& operation) {
      return operation.name == of_operator || class_of(operation.kind) == of_operator;
    };
    const bool is_class = std::ranges::find(class_names, of_operator) != class_names.end();
    if (!is_class && std::ranges::none_of(operations, is_used)) names.emplace_back(of_operator);
  }
  return names;
}

}  // namespace orrery::compute
