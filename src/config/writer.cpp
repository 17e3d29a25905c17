#include "writer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::config {

Writer::Node& Writer::node(std::string_view path) {
  if (!root_.empty()) {
    ensure(path.starts_with(root_) && path.size() > root_.size(), "a key is written below its root");
    path.remove_prefix(root_.size() + 1);
  }
  Node* at = &top_;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    const auto found = std::ranges::find(at->children, name, &Node::name);
    at = found != at->children.end() ? &*found : &at->children.emplace_back(Node{std::string(name), {}, {}, {}});
  }
  return *at;
}

void Writer::put(std::string_view path, std::string value) { node(path).value = std::move(value); }

void Writer::put_list(std::string_view path, const std::vector<std::string>& items) {
  for (auto& lines = node(path).lines; const auto& item : items) lines.push_back(fmt::format("- {}", item));
}

void Writer::put_entries(std::string_view path, std::vector<std::string> entries) {
  node(path).lines = std::move(entries);
}

void Writer::write_block(const Node& node, std::size_t depth, std::string& text) {
  for (const Node& child : node.children) {
    const std::string indent(2 * depth, ' ');
    text += fmt::format("{}{}:{}{}\n", indent, child.name, child.value.empty() ? "" : " ", child.value);
    for (const auto& line : child.lines) text += fmt::format("{}  {}\n", indent, line);
    write_block(child, depth + 1, text);
  }
}

std::string Writer::write_flow(const Node& node) {
  std::string text;
  if (!node.lines.empty()) {
    const bool is_list = node.lines.front().starts_with("- ");
    for (const std::string& line : node.lines)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", is_list ? line.substr(2) : line);
    return is_list ? fmt::format("[{}]", text) : fmt::format("{{{}}}", text);
  }
  if (node.children.empty()) return node.value;
  for (const Node& child : node.children)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", child.name, write_flow(child));
  return fmt::format("{{{}}}", text);
}

std::string Writer::block() const {
  std::string text;
  write_block(top_, 0, text);
  return text;
}

std::string Writer::flow() const { return write_flow(top_); }

}  // namespace orrery::config
