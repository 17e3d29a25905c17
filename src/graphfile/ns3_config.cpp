#include "orrery/graphfile/ns3_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

constexpr std::uint64_t most_count = 1U << 30U;
constexpr std::int64_t start_of_ns3_ns = 2'000'000'000;  // to which LINK_DOWN is relative

/// What a congestion control adds to packets, in bytes.
struct ControlBytes {
  std::uint32_t in_data = 0, in_acknowledgements = 0;
};
ControlBytes bytes_of(network::ControlName control) {
  if (control->uses_telemetry) return {42, 28};
  return {control.name() == "timely" ? 8U : 0U, 0};
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

/// Reads the lines of one file.
class Ns3ConfigReader {
 public:
  Ns3ConfigReader(const std::filesystem::path& file, network::PacketRules& rules) : file_(file), rules_(rules) {}

  Ns3Config read(std::string_view text) {
    for (const Ns3Line& line : ns3_lines(text)) read_line(line);
    finish();
    return std::move(result_);
  }

 private:
  using Rates = std::map<std::uint64_t, double>;  // values by rate, in bits per second
  using Action = std::function<void(Ns3ConfigReader&, const Ns3Line&)>;

  static const std::map<std::string_view, Action>& actions();
  static void add_rules(std::map<std::string_view, Action>& all);
  static void add_rates(std::map<std::string_view, Action>& all);
  static void add_refusals(std::map<std::string_view, Action>& all);

  Place place(const Ns3Line& line) const {
    return {.file = file_.string(), .line = line.number, .key = line.fields[0]};
  }
  [[noreturn]] void refuse(const Ns3Line& line, const std::string& found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, place(line), found, expected);
  }
  const std::string& text(const Ns3Line& line, std::size_t field = 1) const {
    if (field >= line.fields.size()) refuse(line, "found no value", "a value behind the name");
    return line.fields[field];
  }
  std::uint64_t count(const Ns3Line& line, std::uint64_t most = most_count) const {
    return parse_count(text(line), 0, most, place(line));
  }
  double number(const Ns3Line& line, std::size_t field = 1) const {
    return parse_number(text(line, field), place(line));
  }
  bool flag(const Ns3Line& line) const { return count(line, 1) == 1; }
  Time microseconds(const Ns3Line& line) const {
    const double us = number(line);
    if (us > 1e9) refuse(line, fmt::format("found {} us", us), "at most 1000 s");
    return Time::from_ps(std::llround(us * 1e6));
  }
  std::uint64_t rate(const Ns3Line& line) const {
    return static_cast<std::uint64_t>(std::llround(parse_ns3_rate(text(line), place(line))));
  }
  Rates rates(const Ns3Line& line) const;
  void read_line(const Ns3Line& line);
  void read_control(const Ns3Line& line);
  void finish();
  void set_marks();

  std::filesystem::path file_;
  network::PacketRules& rules_;
  Ns3Config result_;
  std::optional<std::uint64_t> increase_, dctcp_increase_;
  std::optional<bool> has_window_, is_largest_;
  std::optional<bool> marks_;
  std::optional<Rates> least_, most_, probability_;
  std::optional<std::pair<Ns3Line, std::string>> not_for_hpcc_;  // a line that only HPCC honours, and what is expected
};

/// Reads "count rate value rate value ...".
Ns3ConfigReader::Rates Ns3ConfigReader::rates(const Ns3Line& line) const {
  const std::uint64_t num_rates = count(line, 1000);
  if (line.fields.size() != 2 + 2 * num_rates)
    refuse(line, fmt::format("found {} values after the count {}", line.fields.size() - 2, num_rates),
           "a rate and a value for each");
  Rates found;
  for (std::size_t i = 0; i < num_rates; ++i)
    found[parse_count(line.fields[2 + 2 * i], 1, 1'000'000'000'000'000'000, place(line))] = number(line, 3 + 2 * i);
  return found;
}

void Ns3ConfigReader::read_control(const Ns3Line& line) {
  static const std::map<std::uint64_t, std::string_view> modes = {
      {1, "dcqcn"}, {3, "hpcc"}, {7, "timely"}, {8, "dctcp"}, {12, "none"}};
  const auto found = modes.find(count(line));
  if (found == modes.end())
    refuse(line, fmt::format("found {}", line.fields[1]),
           "1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP) or 12 (no congestion control)");
  // The preset's sizes have what its own control adds.
  const ControlBytes before = bytes_of(rules_.control);
  rules_.control = network::ControlName(found->second);
  const ControlBytes now = bytes_of(rules_.control);
  rules_.header += now.in_data - before.in_data;
  rules_.acknowledgement += now.in_acknowledgements - before.in_acknowledgements;
}

void Ns3ConfigReader::add_rules(std::map<std::string_view, Action>& all) {
  using R = Ns3ConfigReader;
  using L = Ns3Line;
  all["CC_MODE"] = &R::read_control;
  all["PACKET_PAYLOAD_SIZE"] = [](R& r, const L& line) {
    r.rules_.payload = static_cast<std::uint32_t>(r.count(line));
    if (r.rules_.payload == 0) r.refuse(line, "found 0", "1 or more bytes");
  };
  all["BUFFER_SIZE"] = [](R& r, const L& line) {
    r.rules_.buffer = r.count(line, 1U << 20U) << 20U;
    if (r.rules_.buffer == 0) r.refuse(line, "found 0", "1 or more MiB");
  };
  all["ENABLE_QCN"] = [](R& r, const L& line) { r.marks_ = r.flag(line); };
  all["HAS_WIN"] = [](R& r, const L& line) { r.has_window_ = r.count(line) != 0; };
  all["GLOBAL_T"] = [](R& r, const L& line) { r.is_largest_ = r.count(line) != 0; };
  all["VAR_WIN"] = [](R& r, const L& line) { r.rules_.window_follows_rate = r.flag(line); };
  all["U_TARGET"] = [](R& r, const L& line) {
    const double target = r.number(line);
    if (target < 1e-6 || target > 1) r.refuse(line, fmt::format("found {}", target), "more than 0 and at most 1");
    r.rules_.parameters.target_utilisation = target;
  };
  all["MI_THRESH"] = [](R& r, const L& line) {
    r.rules_.parameters.increase_stages = static_cast<std::uint32_t>(r.count(line));
  };
  all["INT_MULTI"] = [](R& r, const L& line) {
    r.rules_.parameters.telemetry_unit = std::max(1U, static_cast<std::uint32_t>(r.count(line, 1024)));
  };
  all["TOPOLOGY_FILE"] = [](R& r, const L& line) { r.result_.topology = r.text(line); };
  all["LINK_DOWN"] = [](R& r, const L& line) {
    const std::uint64_t time = r.count(line);
    if (time == 0) return;
    r.result_.link_down = {Time::from_ns(start_of_ns3_ns + static_cast<std::int64_t>(time) * 1000),
                           parse_count(r.text(line, 2), 0, most_count, r.place(line)),
                           parse_count(r.text(line, 3), 0, most_count, r.place(line))};
  };
}

void Ns3ConfigReader::add_rates(std::map<std::string_view, Action>& all) {
  using R = Ns3ConfigReader;
  using L = Ns3Line;
  all["RATE_AI"] = [](R& r, const L& line) { r.increase_ = r.rate(line); };
  all["DCTCP_RATE_AI"] = [](R& r, const L& line) { r.dctcp_increase_ = r.rate(line); };
  all["RATE_HAI"] = [](R& r, const L& line) { r.rules_.parameters.fast_increase = r.rate(line); };
  all["MIN_RATE"] = [](R& r, const L& line) { r.rules_.parameters.least_rate = r.rate(line); };
  all["EWMA_GAIN"] = [](R& r, const L& line) {
    r.rules_.parameters.gain = r.number(line);
    if (r.rules_.parameters.gain >= 1) r.refuse(line, "found 1 or more", "below 1");
  };
  all["ALPHA_RESUME_INTERVAL"] = [](R& r, const L& line) { r.rules_.parameters.alpha_interval = r.microseconds(line); };
  all["RATE_DECREASE_INTERVAL"] = [](R& r, const L& line) {
    r.rules_.parameters.decrease_interval = r.microseconds(line);
  };
  all["RP_TIMER"] = [](R& r, const L& line) { r.rules_.parameters.increase_interval = r.microseconds(line); };
  all["FAST_RECOVERY_TIMES"] = [](R& r, const L& line) {
    r.rules_.parameters.fast_recovery_steps = static_cast<std::uint32_t>(r.count(line));
  };
  all["CLAMP_TARGET_RATE"] = [](R& r, const L& line) { r.rules_.parameters.clamps_target = r.flag(line); };
  all["KMIN_MAP"] = [](R& r, const L& line) { r.least_ = r.rates(line); };
  all["KMAX_MAP"] = [](R& r, const L& line) { r.most_ = r.rates(line); };
  all["PMAX_MAP"] = [](R& r, const L& line) { r.probability_ = r.rates(line); };
}

/// Adds what is accepted with one value only.
void Ns3ConfigReader::add_refusals(std::map<std::string_view, Action>& all) {
  using R = Ns3ConfigReader;
  using L = Ns3Line;
  const auto only = [&all](std::string_view name, double value, std::string_view expected) {
    all[name] = [value, expected](R& r, const L& line) {
      if (r.number(line) != value) r.refuse(line, fmt::format("found {}", line.fields[1]), expected);
    };
  };
  only("ERROR_RATE_PER_LINK", 0, "0: links lose no packets");
  only("L2_BACK_TO_ZERO", 0, "0: a sender goes back to the packet that is missing");
  only("ACK_HIGH_PRIO", 0, "0: acknowledgements and data have one priority");
  only("RATE_BOUND", 1, "1: flows keep their rates");
  only("NIC_TOTAL_PAUSE_TIME", 0, "0: NICs make no breaks");
  const auto of_hpcc = [&all](std::string_view name, bool value, std::string_view expected) {
    all[name] = [value, expected](R& r, const L& line) {
      if (r.flag(line) != value) r.not_for_hpcc_ = {line, std::string(expected)};
    };
  };
  of_hpcc("FAST_REACT", true, "1 with HPCC: rates follow each acknowledgement");
  of_hpcc("MULTI_RATE", false, "0 with HPCC: one rate for all hops");
  of_hpcc("SAMPLE_FEEDBACK", false, "0 with HPCC: each acknowledgement counts");
  all["PAUSE_TIME"] = [](R& r, const L& line) {
    if (r.number(line) == 0) r.refuse(line, "found 0", "more than 0: a pause lasts until a frame ends it");
  };
}

const std::map<std::string_view, Ns3ConfigReader::Action>& Ns3ConfigReader::actions() {
  static const std::map<std::string_view, Action> all = [] {
    std::map<std::string_view, Action> actions;
    add_rules(actions);
    add_rates(actions);
    add_refusals(actions);
    // One acknowledgement for each packet, whatever the interval; thresholds always follow the free buffer.
    for (const std::string_view name : {"L2_CHUNK_SIZE", "L2_ACK_INTERVAL", "USE_DYNAMIC_PFC_THRESHOLD"})
      actions[name] = [](Ns3ConfigReader&, const Ns3Line&) {};
    return actions;
  }();
  return all;
}

void Ns3ConfigReader::read_line(const Ns3Line& line) {
  const auto found = actions().find(line.fields[0]);
  if (found != actions().end()) return found->second(*this, line);
  auto& names = result_.without_effect;
  if (std::ranges::find(names, line.fields[0]) == names.end()) names.emplace_back(cited(line.fields[0]));
}

/// Sets what depends on several lines.
void Ns3ConfigReader::finish() {
  const bool is_dctcp = rules_.control == network::ControlName("dctcp");
  if (const auto& increase = is_dctcp ? dctcp_increase_ : increase_) rules_.parameters.additive_increase = *increase;
  using Kind = network::PacketWindow::Kind;
  if (is_largest_) rules_.window.kind = *is_largest_ ? Kind::largest : Kind::path;
  if (has_window_ && !*has_window_) rules_.window.kind = Kind::none;
  if (not_for_hpcc_ && rules_.control->uses_telemetry)
    refuse(not_for_hpcc_->first, fmt::format("found {}", not_for_hpcc_->first.fields[1]), not_for_hpcc_->second);
  set_marks();
  if (!rules_.control->needs_marks || marks_.value_or(true)) return;
  // Switches mark nothing, so rates stay those of the links.
  result_.without_effect.push_back(fmt::format("CC_MODE of {} without ENABLE_QCN", rules_.control.name()));
  rules_.control = network::ControlName("none");
}

void Ns3ConfigReader::set_marks() {
  if (least_ || most_ || probability_) {
    const auto same_rates = [](const Rates& a, const Rates& b) {
      return std::ranges::equal(a, b, {}, &Rates::value_type::first, &Rates::value_type::first);
    };
    if (!least_ || !most_ || !probability_ || !same_rates(*least_, *most_) || !same_rates(*least_, *probability_))
      throw Error(ErrorCode::bad_input, {.file = file_.string()},
                  "found KMIN_MAP, KMAX_MAP and PMAX_MAP with different rates", "the same rates in all three");
    rules_.marks.clear();
    for (const auto& [rate, least] : *least_) {
      const double most = most_->at(rate), probability = probability_->at(rate);
      if (least > most || probability > 1 || most > 1e12)
        throw Error(ErrorCode::bad_input, {.file = file_.string()},
                    fmt::format("found KMIN {}, KMAX {} and PMAX {} for {} b/s", least, most, probability, rate),
                    "KMIN at most KMAX, and PMAX at most 1");
      rules_.marks[rate] = {static_cast<std::uint64_t>(least * 1000), static_cast<std::uint64_t>(most * 1000),
                            probability};
    }
  }
  if (marks_ && !*marks_) rules_.marks.clear();
}

}  // namespace

std::string Ns3Config::notice(const std::filesystem::path& file) const {
  if (without_effect.empty()) return {};
  return fmt::format("{}: ignored, without meaning here: {}", file.string(), fmt::join(without_effect, ", "));
}

bool is_ns3_config(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || std::isupper(static_cast<unsigned char>(text[first])) == 0) return false;
  bool is_known = false;
  for (const Ns3Line& line : ns3_lines(text)) {
    if (!is_name(line.fields[0])) return false;
    is_known = is_known || line.fields[0] == "CC_MODE" || line.fields[0] == "PACKET_PAYLOAD_SIZE" ||
               line.fields[0] == "TOPOLOGY_FILE";
  }
  return is_known;
}

Ns3Config read_ns3_config(std::string_view text, const std::filesystem::path& file, network::PacketRules& rules) {
  return Ns3ConfigReader(file, rules).read(text);
}

bool is_ns3_graph(std::string_view text) { return is_ns3_topology(text) || is_ns3_config(text); }

network::GivenGraph read_ns3_graph(std::string_view text, const std::filesystem::path& file,
                                   std::vector<std::string>& notes) {
  if (is_ns3_topology(text)) return read_ns3_topology(text, file, notes);
  network::PacketRules unused;
  const Ns3Config config = read_ns3_config(text, file, unused);
  if (!config.topology)
    throw Error(ErrorCode::bad_input, {.file = file.string()}, "found no TOPOLOGY_FILE", "the file with the links");
  const std::filesystem::path topology = file.parent_path() / *config.topology;
  const std::string links = read_text(topology);
  if (!is_ns3_topology(links))
    throw Error(ErrorCode::bad_input, {.file = topology.string()}, "found no topology of ns-3",
                "a first line such as '33 1 32': nodes, switches and links");
  network::GivenGraph given = read_ns3_topology(links, topology, notes, config.link_down);
  given.routes.paths = network::GraphRoutes::shortest;
  return given;
}

}  // namespace orrery::graphfile
