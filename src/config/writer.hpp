#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::config {

/// Collects keys with their values and writes them as YAML. Keys keep the order in which they were put.
class Writer {
 public:
  Writer() = default;
  /// Leaves `root` and the dot after it out of the paths.
  explicit Writer(std::string_view root) : root_(root) {}

  /// Puts a value, in YAML's flow style, under the path of its key: "run.output". Cost O(depth * keys of a mapping).
  void put(std::string_view path, std::string value);
  /// Puts a list, with one line for each item.
  void put_list(std::string_view path, const std::vector<std::string>& items);
  /// Puts a mapping whose keys are not known beforehand, with one line for each "key: value".
  void put_entries(std::string_view path, std::vector<std::string> entries);

  /// Returns all keys as mappings with one key in a line.
  std::string block() const;
  /// Returns all keys as one mapping in a line: "{shape: Ring, size: 8}".
  std::string flow() const;

 private:
  struct Node {
    std::string name;
    std::string value;               ///< value of a key that is not a mapping
    std::vector<std::string> lines;  ///< lines of a value that takes several lines
    std::deque<Node> children;
  };

  Node& node(std::string_view path);
  static void write_block(const Node& node, std::size_t depth, std::string& text);
  static std::string write_flow(const Node& node);

  std::string root_;
  Node top_;
};

}  // namespace orrery::config
