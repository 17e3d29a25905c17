#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::collective::mscclpp {

using Json = nlohmann::json;

/// Where reading is in a plan, and the values that stand there. A fault is told with this place.
class PlanCursor {
 public:
  explicit PlanCursor(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  void enter_gpu(std::uint32_t gpu) { gpu_ = gpu; }
  void enter_block(std::uint32_t block) { block_ = block; }
  void enter_operation(std::uint32_t number, std::string name) {
    number_ = number;
    operation_ = std::move(name);
  }
  void leave_operation() { operation_.clear(); }
  void leave_block() { block_.reset(); }
  void leave_gpu() { gpu_.reset(); }

  /// Returns "GPU 3, thread block 1, operation 2 (put)", as far as it is known.
  std::string text() const {
    std::string text;
    if (gpu_) text = fmt::format("GPU {}", *gpu_);
    if (block_) text += fmt::format(", thread block {}", *block_);
    if (!operation_.empty()) text += fmt::format(", operation {} ({})", number_, cited(operation_));
    return text;
  }
  [[noreturn]] void fail(std::string_view found, std::string_view expected, std::string_view hint = {}) const {
    const std::string where = text();
    throw Error(ErrorCode::bad_input, {.file = file_},
                where.empty() ? std::string(found) : where + ": " + std::string(found), expected, hint);
  }

  /// Returns a whole number. `what` names it in messages.
  std::uint64_t whole(const Json& value, std::string_view what, std::uint64_t low, std::uint64_t high) const {
    const bool is_whole = value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0);
    if (!is_whole || value.get<std::uint64_t>() < low || value.get<std::uint64_t>() > high)
      fail(fmt::format("{} is {}", what, cited(value.dump(-1, ' ', false, Json::error_handler_t::replace))),
           fmt::format("a whole number, {} to {}", low, high));
    return value.get<std::uint64_t>();
  }
  std::uint32_t count(const Json& at, const char* key, std::uint64_t low, std::uint64_t high,
                      std::optional<std::uint32_t> fallback = {}) const {
    const Json* const value = find(at, key);
    if (value == nullptr && fallback) return *fallback;
    if (value == nullptr) fail(fmt::format("there is no {}", key), fmt::format("a whole number, {} to {}", low, high));
    return static_cast<std::uint32_t>(whole(*value, key, low, high));
  }
  std::string word(const Json& at, const char* key, std::string_view expected,
                   std::optional<std::string> fallback = {}) const {
    const Json* const value = find(at, key);
    if (value == nullptr && fallback) return *fallback;
    if (value == nullptr) fail(fmt::format("there is no {}", key), expected);
    if (!value->is_string()) fail(fmt::format("{} is no text", key), expected);
    return value->get<std::string>();
  }
  bool flag(const Json& at, const char* key, std::optional<bool> fallback = {}) const {
    const Json* const value = find(at, key);
    if (value == nullptr && fallback) return *fallback;
    if (value == nullptr) fail(fmt::format("there is no {}", key), "true or false");
    if (!value->is_boolean()) fail(fmt::format("{} is neither true nor false", key), "true or false");
    return value->get<bool>();
  }
  /// Returns a list, or an empty one if the key is missing.
  const Json& list(const Json& at, const char* key) const {
    static const Json none = Json::array();
    const Json* const value = find(at, key);
    if (value == nullptr || value->is_null()) return none;
    if (!value->is_array()) fail(fmt::format("{} is no list", key), "a list, [...]");
    return *value;
  }

 private:
  const Json* find(const Json& at, const char* key) const {
    if (!at.is_object()) fail(fmt::format("{} would stand in what is no object", key), "an object, {...}");
    const auto found = at.find(key);
    return found == at.end() ? nullptr : &*found;
  }

  std::string file_;
  std::optional<std::uint32_t> gpu_, block_;
  std::string operation_;
  std::uint32_t number_ = 0;
};

}  // namespace orrery::collective::mscclpp
