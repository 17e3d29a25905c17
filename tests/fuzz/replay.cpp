// The main of a fuzz target without libFuzzer: reads seeds, and inputs that are made of them by a fixed generator.
// usage: fuzz_TARGET [-runs=N] [-dict=FILE] [-artifact_prefix=PREFIX] SEED...; each SEED is a file or a folder. An
// input that ends the program is kept as PREFIXinput.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                                     std::size_t most, unsigned seed);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t most_bytes = 64 * 1024;
constexpr unsigned most_seconds = 60;  ///< for one input

std::vector<Bytes> seeds;
std::vector<Bytes> words;
std::mt19937_64 generator(1);
Bytes input;
std::string artifact = "input";

std::size_t below(std::size_t limit) { return limit == 0 ? 0 : generator() % limit; }

/// Keeps the input that the target is at. Uses nothing that a signal handler may not use.
void keep_input() {
  if (std::FILE* const file = std::fopen(artifact.c_str(), "wb")) {
    std::fwrite(input.data(), 1, input.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "\nfuzz: the input is kept: Test unit written to %s\n", artifact.c_str());
}

void end_at_signal(int signal) {
  keep_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  return {text.begin(), text.end()};
}

void add_seeds(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files{path};
  if (std::filesystem::is_directory(path)) {
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  }
  for (const auto& file : files)
    if (std::filesystem::file_size(file) <= most_bytes) seeds.push_back(read_file(file));
}

/// Reads a dictionary as libFuzzer takes it, as far as its words stand in it as they are.
void add_words(const std::filesystem::path& path) {
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (begin < end && line.find('\\') == std::string::npos)
      words.emplace_back(line.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
                         line.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

/// Changes one place of the bytes.
void change(Bytes& bytes) {
  const std::size_t at = below(bytes.size() + 1);
  const std::size_t length = std::min(below(below(2) == 0 ? 8 : 64) + 1, bytes.size() - at);
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = place + static_cast<std::ptrdiff_t>(length);
  const std::size_t kind = below(7);
  if (kind == 0 && at < bytes.size()) {
    bytes[at] ^= static_cast<std::uint8_t>(1U << below(8));
  } else if (kind == 1 && at < bytes.size()) {
    bytes[at] = static_cast<std::uint8_t>(generator());
  } else if (kind == 2) {
    bytes.erase(place, end);
  } else if (kind == 3) {
    const Bytes piece(place, end);
    bytes.insert(place, piece.begin(), piece.end());
  } else if (kind == 4 && !words.empty()) {
    const Bytes& word = words[below(words.size())];
    bytes.insert(below(2) == 0 ? bytes.erase(place, end) : place, word.begin(), word.end());
  } else if (kind == 5 && !seeds.empty()) {
    const Bytes& other = seeds[below(seeds.size())];
    const std::size_t from = below(other.size());
    const std::size_t size = std::min(below(128), other.size() - from);
    const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
    bytes.insert(place, begin, begin + static_cast<std::ptrdiff_t>(size));
  } else {
    const std::string number = std::to_string(generator() >> below(64));
    bytes.insert(below(2) == 0 ? bytes.erase(place, end) : place, number.begin(), number.end());
  }
}

void run() {
  (void)::alarm(most_seconds);
  (void)LLVMFuzzerTestOneInput(input.data(), input.size());
}

/// Makes another input of a seed.
void mutate(unsigned seed) {
  input = seeds.empty() ? Bytes() : seeds[below(seeds.size())];
  input.resize(std::min(input.size(), most_bytes));
  const std::size_t size = input.size();
  input.resize(most_bytes);
  input.resize(LLVMFuzzerCustomMutator != nullptr ? LLVMFuzzerCustomMutator(input.data(), size, input.size(), seed)
                                                  : LLVMFuzzerMutate(input.data(), size, input.size()));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  Bytes bytes(data, data + size);
  for (std::size_t changes = below(4) + 1; changes > 0; --changes) change(bytes);
  bytes.resize(std::min(bytes.size(), most));
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

int main(int argc, char** argv) {
  std::uint64_t runs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string value(argument.substr(std::min(argument.find('=') + 1, argument.size())));
    if (argument.starts_with("-runs="))
      runs = std::stoull(value);
    else if (argument.starts_with("-dict="))
      add_words(value);
    else if (argument.starts_with("-artifact_prefix="))
      artifact = value + "input";
    else
      add_seeds(argument);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, end_at_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
  for (const Bytes& seed : seeds) {
    input = seed;
    run();
  }
  for (std::uint64_t done = 0; done < runs; ++done) {
    mutate(static_cast<unsigned>(done));
    run();
  }
  std::printf("%zu seeds, %llu further inputs\n", seeds.size(), static_cast<unsigned long long>(runs));
  return 0;
}
