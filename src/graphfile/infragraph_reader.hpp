#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infragraph_document.hpp"

namespace orrery::graphfile {

/// Reads what the schemas of InfraGraph have in common: values, kinds of components, links and ranks.
class InfragraphReader {
 protected:
  using Json = nlohmann::json;

  InfragraphReader(const std::string& file, bool is_older);

  [[noreturn]] void fail(std::string_view where, std::string_view found, std::string_view expected,
                         std::string_view hint = {}) const;

  /// Each of these reads the value of a key. A key without a value is as one that is not there.
  const Json* find(const Json& at, const char* key, std::string_view where) const;
  const Json& list(const Json& at, const char* key, std::string_view where) const;
  std::optional<std::string> text(const Json& at, const char* key, std::string_view where) const;
  std::string name(const Json& at, const char* key, std::string_view where) const;
  std::optional<std::uint32_t> count(const Json& at, std::string_view where) const;
  double number(const Json& at, const char* key, std::string_view where) const;

  /// Notes something once for each pair of words.
  void note_once(std::string_view what, std::string_view word, std::string note);
  /// Notes keys that are not known.
  void note_others(const Json& at, std::initializer_list<std::string_view> known, std::string_view what,
                   std::string_view where);

  ComponentGraph::Kind kind_of(const std::string& word, const char* key, std::string_view where);
  std::vector<ComponentGraph::LinkKind> read_links(const Json& at, const std::string& of);
  /// Reads the annotations `rank` of components. Others are left out.
  void read_ranks(const Json& annotations);

  InfragraphDocument document_;

 private:
  void read_physics(const Json& at, const std::string& where, ComponentGraph::LinkKind& link);
  std::optional<double> read_bandwidth(const Json& at, const std::string& where);
  std::optional<double> read_latency(const Json& at, const std::string& where);

  std::set<std::pair<std::string, std::string>> noted_;
};

}  // namespace orrery::graphfile
