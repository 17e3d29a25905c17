#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/serving/request.hpp"

namespace orrery::serving {

/// The lines of a text file, which may be packed by gzip.
class RequestLines {
 public:
  explicit RequestLines(const std::filesystem::path& path);

  /// Reads the next line that is not blank. Returns false at the end. Throws Error (bad_input).
  bool next();
  /// Reads it again with the next call of `next`.
  void put_back() { is_put_back_ = true; }
  const std::string& line() const { return line_; }
  Place place() const;
  [[noreturn]] void fail(std::string_view found, std::string_view expected = {}, std::string_view hint = {}) const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string line_;
  std::uint64_t number_ = 0;
  bool is_put_back_ = false;
};

/// A table with a header, one row a line.
class CsvRows {
 public:
  /// Reads the header.
  explicit CsvRows(RequestLines& lines);
  bool next();
  /// Returns the position of a column. Throws Error (bad_input) if there is none.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const;
  /// Returns the cell of the row at hand; an empty one stands for what the row lacks.
  std::string_view cell(std::size_t column) const;
  std::string_view cell(std::string_view name) const { return has(name) ? cell(column(name)) : std::string_view(); }
  /// Returns a cell as a whole number. Throws Error (bad_input).
  std::uint64_t count(std::size_t column) const;
  /// Throws Error (bad_input) if the header has a column that is not among `known`.
  void require_known(const std::vector<std::string_view>& known) const;

 private:
  void split();

  RequestLines& lines_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::size_t, std::size_t>> cells_;
};

/// Builds a list of requests from the rows of a file, which it checks.
class RequestBuilder {
 public:
  RequestBuilder(Requests& requests, std::uint32_t block) : requests_(requests), block_(block) {}

  std::uint32_t block() const { return block_; }
  Requests& requests() { return requests_; }
  /// Adds a request that arrives at a time. Throws Error (bad_input) if that is before the last one.
  Request& add(const RequestLines& lines, Time arrival, std::uint64_t prompt, std::uint64_t output);
  /// Adds a request that arrives after another one has ended.
  Request& add_after(const RequestLines& lines, std::uint32_t after, Time think, std::uint64_t prompt,
                     std::uint64_t output);
  /// Gives the last request the ids of the beginnings of its prompt.
  void add_id(std::uint64_t id);
  /// Returns a number for a text, or for a beginning and the tokens after it: equal ones get equal numbers.
  std::uint64_t intern(std::string text);
  /// Gives the last request the ids of the full blocks of its tokens.
  void add_tokens(const std::vector<std::int64_t>& tokens);

 private:
  Request& append(const RequestLines& lines, std::uint64_t prompt, std::uint64_t output);

  Requests& requests_;
  std::uint32_t block_;
  Time last_;
  std::uint64_t line_of_last_ = 0;
  std::unordered_map<std::string, std::uint64_t> interned_;
};

}  // namespace orrery::serving
