#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"

namespace orrery::config {

/// Runs `action` and expects an Error of `code` whose message holds every one of `parts`.
template <class Action>
void expect_error(Action action, ErrorCode code, std::initializer_list<std::string_view> parts) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), code) << message;
    for (const auto part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    return;
  }
  ADD_FAILURE() << "no error, expected one about " << *parts.begin();
}

}  // namespace orrery::config
