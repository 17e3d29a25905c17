#include "shared_metrics.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "orrery/parallel/packing.hpp"

namespace orrery::run {
namespace {

/// Visits the parts of metrics: visit.value for plain data, visit.list for lists of it, visit.texts.
template <class Metrics, class Visit>
void visit_parts(Metrics& metrics, Visit& visit) {
  visit.value(metrics.iterations);
  visit.value(metrics.step_time);
  visit.value(metrics.shares);
  visit.value(metrics.breakdown);
  visit.value(metrics.exposed_communication_time);
  visit.value(metrics.training);
  visit.value(metrics.bubble);
  visit.list(metrics.bytes_per_step);
  visit.list(metrics.utilisation);
  visit.list(metrics.collectives);
  visit.texts(metrics.hints);
  visit.value(metrics.cost);
}

struct PackParts {
  parallel::Packer to;

  template <class T>
  void value(const T& value) {
    to.put(value);
  }
  template <class T>
  void list(const std::vector<T>& values) {
    to.put_all(std::span<const T>(values));
  }
  void texts(const std::vector<std::string>& texts) {
    to.put(texts.size());
    for (const std::string& text : texts) to.put_text(text);
  }
};

struct UnpackParts {
  parallel::Unpacker from;

  template <class T>
  void value(T& value) {
    value = from.get<T>();
  }
  template <class T>
  void list(std::vector<T>& values) {
    values = from.get_all<T>();
  }
  void texts(std::vector<std::string>& texts) {
    texts.resize(from.get<std::size_t>());
    for (std::string& text : texts) text = from.get_text();
  }
};

}  // namespace

void share_metrics(std::optional<results::Metrics>& metrics, parallel::Communicator& world) {
  PackParts pack;
  if (metrics) visit_parts(*metrics, pack);
  std::vector<std::byte> bytes = pack.to.take();
  world.broadcast(bytes, Rank(0));
  if (world.is_root() || bytes.empty()) return;
  UnpackParts unpack{parallel::Unpacker(bytes)};
  visit_parts(metrics.emplace(), unpack);
}

}  // namespace orrery::run
