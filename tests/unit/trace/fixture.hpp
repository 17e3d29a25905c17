#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "et_writer.hpp"
#include "orrery/trace/store.hpp"
#include "temporary_folder.hpp"

namespace orrery::trace {

/// A folder of its own for each test, and short ways to read what the test writes there.
class TraceTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes, const std::string& file = "t.0.et") const {
    et::write(folder_ / file, bytes);
    return folder_ / file;
  }
  std::filesystem::path write(const et::File& file, const std::string& name = "t.0.et") const {
    return write(file.text(), name);
  }

  /// Reads a file of today's layout with these nodes for NPU 0 of 8.
  NpuTrace read(std::initializer_list<et::Message> nodes) { return read_bytes(file_of(nodes).text()); }
  NpuTrace read_bytes(const std::string& bytes) { return store_.read(write(bytes), NpuId(0)); }

  static et::File file_of(std::initializer_list<et::Message> nodes) {
    et::File file;
    file.metadata();
    for (const auto& node : nodes) file.add(node);
    return file;
  }

  /// The message of the refusal of such a file, or of `act`; the code must be bad_input.
  std::string refusal(std::initializer_list<et::Message> nodes) { return refusal_of_bytes(file_of(nodes).text()); }
  std::string refusal_of_bytes(const std::string& bytes) {
    return refusal_of([&] { read_bytes(bytes); });
  }
  static std::string refusal_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }

  static Store make_store(NamedGroups groups = {}, Dependencies policy = Dependencies::automatic,
                          std::uint32_t num_npus = 8) {
    return Store({.dependencies = policy, .num_npus = num_npus}, std::move(groups));
  }

  static std::vector<NpuId> npus(std::initializer_list<std::uint32_t> list) {
    std::vector<NpuId> all;
    for (const std::uint32_t npu : list) all.emplace_back(npu);
    return all;
  }

  static std::vector<std::uint32_t> successors(const NpuTrace& trace, std::uint32_t node) {
    const auto all = trace.graph->successors_of(NodeId(node));
    return {all.begin(), all.end()};
  }

  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  Store store_ = make_store();
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "in: " << (text)

}  // namespace orrery::trace
