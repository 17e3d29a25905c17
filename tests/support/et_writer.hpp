#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Writes Chakra execution traces of every layout for tests and benchmarks, down to the single field, so that faulty
/// ones can be made as well. It shares no code with the reader.
namespace orrery::et {

/// A protocol-buffers message under construction.
class Message {
 public:
  Message& varint(int field, std::uint64_t value) {
    tag(field, 0);
    return raw_varint(value);
  }
  Message& signed_varint(int field, std::int64_t value) { return varint(field, static_cast<std::uint64_t>(value)); }
  Message& zigzag(int field, std::int64_t value) {
    return varint(field, static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  Message& fixed64(int field, std::uint64_t value) {
    tag(field, 1);
    return raw_fixed(value, 8);
  }
  Message& fixed32(int field, std::uint32_t value) {
    tag(field, 5);
    return raw_fixed(value, 4);
  }
  Message& bytes(int field, std::string_view value) {
    tag(field, 2);
    raw_varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.text_); }
  Message& packed(int field, std::initializer_list<std::uint64_t> values) {
    Message inner;
    for (const std::uint64_t value : values) inner.raw_varint(value);
    return message(field, inner);
  }
  Message& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  Message& raw_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  Message& tag(int field, unsigned type) { return raw_varint(static_cast<std::uint64_t>(field) << 3 | type); }
  Message& raw_fixed(std::uint64_t value, int count) {
    for (int at = 0; at < count; ++at) text_ += static_cast<char>(value >> (8 * at) & 0xff);
    return *this;
  }

  std::string text_;
};

enum NodeType : std::uint64_t { invalid, metadata, mem_load, mem_store, comp, comm_send, comm_recv, comm_coll };

/// A node of today's layout.
class Node : public Message {
 public:
  Node(std::uint64_t id, std::string_view name, std::uint64_t type) {
    if (id != 0) varint(1, id);
    if (!name.empty()) bytes(2, name);
    if (type != 0) varint(3, type);
  }

  Node& ctrl(std::initializer_list<std::uint64_t> ids) { return packed(4, ids), *this; }
  Node& data(std::initializer_list<std::uint64_t> ids) { return packed(5, ids), *this; }
  Node& micros(std::uint64_t value) { return varint(7, value), *this; }
  Node& attribute(std::string_view name, const Message& value) {
    Message inner;
    message(10, inner.bytes(1, name).raw(value.text()));
    return *this;
  }
  Node& int32(std::string_view name, std::int64_t value) { return attribute(name, Message().signed_varint(7, value)); }
  Node& int64(std::string_view name, std::int64_t value) { return attribute(name, Message().signed_varint(9, value)); }
  Node& uint64(std::string_view name, std::uint64_t value) { return attribute(name, Message().varint(13, value)); }
  Node& boolean(std::string_view name, bool value) { return attribute(name, Message().varint(27, value ? 1 : 0)); }
  Node& text(std::string_view name, std::string_view value) { return attribute(name, Message().bytes(29, value)); }
  Node& bools(std::string_view name, std::initializer_list<std::uint64_t> values) {
    return attribute(name, Message().message(28, Message().packed(1, values)));
  }
  Node& texts(std::string_view name, std::initializer_list<std::string_view> values) {
    Message list;
    for (const std::string_view value : values) list.bytes(1, value);
    return attribute(name, values.size() == 0 ? Message() : Message().message(30, list));
  }
  Node& inputs(std::initializer_list<std::string_view> values) { return texts("inputs", values); }
  Node& outputs(std::initializer_list<std::string_view> values) { return texts("outputs", values); }
};

inline Node compute(std::uint64_t id, std::string_view name, std::int64_t num_ops = 1000, std::uint64_t bytes = 100) {
  return Node(id, name, comp).int64("num_ops", num_ops).uint64("tensor_size", bytes);
}
inline Node collective(std::uint64_t id, std::string_view name, std::int64_t type, std::int64_t size) {
  return Node(id, name, comm_coll).int64("comm_type", type).int64("comm_size", size);
}
inline Node send(std::uint64_t id, std::string_view name, std::int64_t to, std::int64_t size, std::int64_t tag = 0) {
  return Node(id, name, comm_send).int32("comm_dst", to).int64("comm_size", size).int32("comm_tag", tag);
}
inline Node receive(std::uint64_t id, std::string_view name, std::int64_t from, std::int64_t size,
                    std::int64_t tag = 0) {
  return Node(id, name, comm_recv).int32("comm_src", from).int64("comm_size", size).int32("comm_tag", tag);
}

/// A whole file of length-delimited messages.
class File {
 public:
  File& add(const Message& message) {
    text_ += Message().raw_varint(message.text().size()).text() + message.text();
    return *this;
  }
  File& metadata(std::string_view version = "1.0.0") { return add(Message().bytes(1, version)); }
  File& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace orrery::et
