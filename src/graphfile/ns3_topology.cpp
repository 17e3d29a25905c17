#include "orrery/graphfile/ns3_topology.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

constexpr std::string_view row_expected = "node, node, rate, delay and error rate such as '0 32 200Gbps 0.0005ms 0'";
constexpr std::uint64_t most_nodes_of_ns3 = 1U << 24U;
constexpr double most_bits = 1e18;         // per second, as of the links of other graphs
constexpr double longest_delay_ns = 1e12;  // the same

std::vector<std::string> fields_of(std::string_view line) {
  std::istringstream stream{std::string(line)};
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Reads the lines of one file.
class Ns3Reader {
 public:
  Ns3Reader(std::string_view text, const std::filesystem::path& file) : file_(file), lines_(ns3_lines(text)) {}

  network::GivenGraph read(std::vector<std::string>& notes, const std::optional<Ns3LinkDown>& link_down);

 private:
  Place place(const Ns3Line& line) const { return {.file = file_.string(), .line = line.number}; }
  [[noreturn]] void refuse(const Ns3Line& line, const std::string& found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, place(line), found, expected);
  }
  std::uint32_t node_of(const Ns3Line& line, std::size_t field) const {
    return numbers_[parse_count(line.fields[field], 0, numbers_.size() - 1, place(line))];
  }
  /// Reads the line of switches, and numbers the hosts before them.
  void read_switches(std::uint64_t num_nodes, std::uint64_t num_switches);
  void read_link(const Ns3Line& line);
  void take_down(const Ns3LinkDown& down);

  std::filesystem::path file_;
  std::vector<Ns3Line> lines_;
  std::vector<std::uint32_t> numbers_;  // [nodes of the file] in the graph
  network::GivenGraph given_;
};

void Ns3Reader::read_switches(std::uint64_t num_nodes, std::uint64_t num_switches) {
  const Ns3Line line = num_switches > 0 ? lines_[1] : Ns3Line{};  // without switches their line is empty
  if (line.fields.size() != num_switches)
    refuse(line, fmt::format("found {} numbers of switches", line.fields.size()),
           fmt::format("the {} switches that the first line says", num_switches));
  std::vector<bool> is_switch(num_nodes);
  for (const std::string& field : line.fields) {
    const std::uint64_t node = parse_count(field, 0, num_nodes - 1, place(line));
    if (is_switch[node]) refuse(line, fmt::format("found switch {} again", node), "each switch once");
    is_switch[node] = true;
  }
  numbers_.resize(num_nodes);
  for (std::uint64_t node = 0; node < num_nodes; ++node)
    if (!is_switch[node]) numbers_[node] = given_.graph.add_host();
  for (std::uint64_t node = 0; node < num_nodes; ++node)
    if (is_switch[node]) numbers_[node] = given_.graph.add_switch({});
}

void Ns3Reader::read_link(const Ns3Line& line) {
  if (line.fields.size() != 5) refuse(line, fmt::format("found {} fields", line.fields.size()), row_expected);
  const double bits = parse_ns3_rate(line.fields[2], place(line));
  const double delay_ns = parse_nanoseconds(line.fields[3], place(line));
  if (delay_ns > longest_delay_ns)
    refuse(line, fmt::format("found a delay of {}", cited(line.fields[3])), "at most 1000 s");
  if (parse_number(line.fields[4], place(line)) != 0)
    refuse(line, fmt::format("found an error rate of {}", line.fields[4]), "0: links lose no packets");
  const auto a = node_of(line, 0), b = node_of(line, 1);
  if (a == b) refuse(line, "found a link from a node to itself", row_expected);
  given_.graph.add_link(
      {a, b, static_cast<std::uint64_t>(std::llround(bits)), Time::from_ps(std::llround(delay_ns * 1000))});
}

void Ns3Reader::take_down(const Ns3LinkDown& down) {
  const bool is_known = down.a < numbers_.size() && down.b < numbers_.size();
  for (std::uint32_t link = 0; is_known && link < given_.graph.links().size(); ++link) {
    const auto& ends = given_.graph.links()[link];
    const auto a = numbers_[down.a], b = numbers_[down.b];
    if ((ends.a != a || ends.b != b) && (ends.a != b || ends.b != a)) continue;
    given_.failures.push_back({link, down.time});
    return;
  }
  throw Error(ErrorCode::bad_input, {.file = file_.string()},
              fmt::format("found no link between nodes {} and {}, which LINK_DOWN names", down.a, down.b),
              "nodes that a link joins");
}

network::GivenGraph Ns3Reader::read(std::vector<std::string>& notes, const std::optional<Ns3LinkDown>& link_down) {
  const Ns3Line& first = lines_[0];
  std::vector<std::uint64_t> counts;
  const std::size_t num_counts = first.fields.size() == 6 ? 5 : 3;
  for (std::size_t i = 0; i < num_counts; ++i)
    counts.push_back(parse_count(first.fields[i], 0, most_nodes_of_ns3, place(first)));
  const bool is_simai = num_counts == 5;
  const std::uint64_t num_switches = is_simai ? counts[2] + counts[3] : counts[1];
  if (counts[0] < 2 || num_switches >= counts[0] || lines_.size() < 2)
    refuse(first, fmt::format("found {} nodes, of them {} switches", counts[0], num_switches),
           "hosts, and switches whose numbers are in the second line");
  read_switches(counts[0], num_switches);
  std::size_t next = num_switches > 0 ? 2 : 1;
  for (; next < lines_.size() && given_.graph.links().size() < counts.back(); ++next) read_link(lines_[next]);
  if (next < lines_.size())
    notes.push_back(
        fmt::format("{}: lines {} to {} come after the {} that the first line says, and are not read, as in "
                    "ns-3",
                    file_.string(), lines_[next].number, lines_.back().number, counted(counts.back(), "link")));
  if (given_.graph.links().size() != counts.back())
    refuse(lines_.back(), fmt::format("found {} links", given_.graph.links().size()),
           fmt::format("the {} links that the first line says", counts.back()));
  if (link_down) take_down(*link_down);
  return std::move(given_);
}

}  // namespace

std::vector<Ns3Line> ns3_lines(std::string_view text) {
  std::vector<Ns3Line> lines;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    if (auto fields = fields_of(text.substr(0, end)); !fields.empty()) lines.push_back({number, std::move(fields)});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

double parse_ns3_rate(std::string rate, const Place& place) {
  if (rate.ends_with("bps")) rate.replace(rate.size() - 3, 3, "b/s");
  const double bits = parse_bandwidth(rate, place).bytes_per_ns() * 8e9;
  if (bits < 1 || bits > most_bits)
    throw Error(ErrorCode::bad_input, place, fmt::format("found a rate of {}", cited(rate)), "1 to 10^18 b/s");
  return bits;
}

bool is_ns3_topology(std::string_view text) {
  const auto fields = fields_of(text.substr(0, text.find('\n')));
  return (fields.size() == 3 || fields.size() == 6) && !fields[0].empty() &&
         fields[0].find_first_not_of("0123456789") == std::string::npos;
}

network::GivenGraph read_ns3_topology(std::string_view text, const std::filesystem::path& file,
                                      std::vector<std::string>& notes, const std::optional<Ns3LinkDown>& link_down) {
  return Ns3Reader(text, file).read(notes, link_down);
}

}  // namespace orrery::graphfile
