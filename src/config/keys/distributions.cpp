#include <algorithm>

#include "keys.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

using Spread = DistributionKind;

bool is_of_network(DrawnPer per) { return per == DrawnPer::collective || per == DrawnPer::message; }

/// Says whether a distribution is of one of these kinds.
template <Spread... kinds>
bool is_kind(const Variation& v) {
  return ((v.distribution.kind == kinds) || ...);
}

/// The same for Key::needed_if.
template <Spread... kinds>
bool needs_kind(const Variation& v, const Reading&) {
  return is_kind<kinds...>(v);
}

void read_factors(const Value& value, const std::string& path, Variation& target, Reading& reading) {
  std::vector<double>& values = target.distribution.values;
  values.clear();
  if (value.kind == Value::Kind::scalar) {
    const auto file = as_path(value, path);
    std::string text = read_text(file, value.place(path));
    values = parse_factors(text, file.string());
    if (values.empty())
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found no factor in {}", file.string()),
                  "a file with one factor in each line");
    reading.configuration.inputs.emplace_back("factors.txt", std::move(text));
  } else {
    const auto type = factor();
    const auto& items = as_list(value, path, "a list of factors, or a file that has one a line");
    for (std::size_t i = 0; i < items.size(); ++i)
      values.push_back(type.read(items[i], fmt::format("{}.{}", path, i), reading));
  }
  std::ranges::sort(values);
}

constexpr Handling<Variation> measured_values() {
  return {read_factors,
          [](const Variation& v, std::string_view path, Writer& writer) {
            writer.put(path, fmt::format("[{}]", fmt::join(v.distribution.values, ", ")));
          },
          [](const Variation& a, const Variation& b) { return a.distribution.values == b.distribution.values; }};
}

constexpr Row<Variation> distribution_rows[] = {
    {"perturbation.distributions.per", "object for which a factor is drawn, and the time that it multiplies", "machine",
     Default::needed(), word<drawn_per>(), [](auto& v) { return &v.per; }},
    {"perturbation.distributions.machine-size", "NPUs of a machine; they have consecutive numbers", "4",
     Default::built_in(), count(1), [](auto& v) { return &v.machine_size; },
     only_if([](const Variation& v) { return v.per == DrawnPer::machine; }, "per: machine")},
    {"perturbation.distributions.kind", "how the factors are spread", "tail", Default::needed(),
     word<distribution_kinds>(), [](auto& v) { return &v.distribution.kind; }},
    {"perturbation.distributions.least",
     "least factor; for other kinds than uniform 0.5, and 1 per collective and message, if it is not given", "0.9",
     Default::described("0.5; 1 per collective and message"), factor(), [](auto& v) { return &v.distribution.least; },
     needed_if(needs_kind<Spread::uniform>, "the kind is uniform"),
     only_if(is_kind<Spread::uniform, Spread::normal, Spread::lognormal>, "kind: uniform, normal or lognormal"),
     prepare([](Variation& v) { v.distribution.least = is_of_network(v.per) ? 1 : 0.5; })},
    {"perturbation.distributions.most", "largest factor; for other kinds than uniform 100 if it is not given", "1.2",
     Default::described("100"), factor(), [](auto& v) { return &v.distribution.most; },
     needed_if(needs_kind<Spread::uniform>, "the kind is uniform"),
     only_if(is_kind<Spread::uniform, Spread::normal, Spread::lognormal, Spread::exponential>,
             "kind: uniform, normal, lognormal or exponential")},
    {"perturbation.distributions.mean", "mean of the factors before they are cut off", "1.02", Default::built_in(),
     factor(), [](auto& v) { return &v.distribution.mean; }, only_if(is_kind<Spread::normal>, "kind: normal")},
    {"perturbation.distributions.median", "median of the factors before they are cut off", "1.02", Default::built_in(),
     factor(), [](auto& v) { return &v.distribution.median; }, only_if(is_kind<Spread::lognormal>, "kind: lognormal")},
    {"perturbation.distributions.deviation",
     "standard deviation before factors are cut off: of the factors, or with lognormal of their logarithm", "0.02",
     Default::none(), factor(), [](auto& v) { return &v.distribution.deviation; },
     needed_if(needs_kind<Spread::normal, Spread::lognormal>, "the kind is normal or lognormal"),
     only_if(is_kind<Spread::normal, Spread::lognormal>, "kind: normal or lognormal")},
    {"perturbation.distributions.probability", "share of the draws that are not 1", "0.005", Default::built_in(),
     number("0 to 1"), [](auto& v) { return &v.distribution.probability; },
     only_if(is_kind<Spread::tail, Spread::exponential>, "kind: tail or exponential"),
     check([](const Variation& v, const Place& place, const Reading&) {
       if (const double found = v.distribution.probability; found > 1)
         throw Error(ErrorCode::bad_input, place, fmt::format("found {}", found), "a number, 0 to 1");
     })},
    {"perturbation.distributions.factor", "factor of the draws that are not 1", "1.1", Default::none(), factor(),
     [](auto& v) { return &v.distribution.factor; }, needed_if(needs_kind<Spread::tail>, "the kind is tail"),
     only_if(is_kind<Spread::tail>, "kind: tail")},
    {"perturbation.distributions.excess", "mean by which the draws that are not 1 exceed it, before they are cut off",
     "0.1", Default::none(), factor(), [](auto& v) { return &v.distribution.excess; },
     needed_if(needs_kind<Spread::exponential>, "the kind is exponential"),
     only_if(is_kind<Spread::exponential>, "kind: exponential")},
    {"perturbation.distributions.values",
     "measured factors: a list, or a file with one in each line (empty lines and lines with `#` do not "
     "count)",
     "factors.txt", Default::none(),
     ValueInfo("list or file", "a list of factors, or a file that has one a line", "-", "1e-6 to 1e6 each"),
     measured_values(), needed_if(needs_kind<Spread::values>, "the kind is values"),
     only_if(is_kind<Spread::values>, "kind: values")},
};

}  // namespace

const Keys<Variation>& distribution_keys() {
  static const Keys<Variation> all("perturbation.distributions", distribution_rows, "perturbation.distributions");
  return all;
}

void require_sound(const Variation& v, Place place) {
  const Distribution& d = v.distribution;
  const auto at = [&](std::string_view key) {
    Place result = place;
    result.key += fmt::format(".{}", key);
    return result;
  };
  const bool is_exponential = d.kind == Spread::exponential;
  const bool has_bounds = is_exponential || is_kind<Spread::uniform, Spread::normal, Spread::lognormal>(v);
  const double least = is_exponential ? 1 : d.least;
  if (has_bounds && d.most < least)
    throw Error(ErrorCode::bad_input, at("most"), fmt::format("found {}", d.most), fmt::format("{} or more", least));
  if (is_of_network(v.per) && d.lowest() < 1)
    throw Error(ErrorCode::bad_input, place,
                fmt::format("found factors down to {} per {}", d.lowest(), text_of(drawn_per(), v.per)), "1 or more",
                "Factors of the network only lengthen times: the times of the model are those without disturbance.");
  if ((d.kind == Spread::normal && (d.mean < d.least || d.mean > d.most)) ||
      (d.kind == Spread::lognormal && (d.median < d.least || d.median > d.most)))
    throw Error(ErrorCode::bad_input, at(d.kind == Spread::normal ? "mean" : "median"),
                fmt::format("found {}", d.kind == Spread::normal ? d.mean : d.median),
                fmt::format("a number from 'least', {}, to 'most', {}", d.least, d.most));
}

}  // namespace orrery::config
