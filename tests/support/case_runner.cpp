// case_runner FOLDER: carries out commands of the program one after the other, without a start of MPI for each.
//
// Rank R reads jobs from the FIFO FOLDER/jobs.R and writes answers to FOLDER/answers.R, one JSON object in a line each.
// A rank without a job waits for one in read(), where it uses no CPU. The end of the jobs ends the rank.
//
//     {"id": 7, "command": ["orrery", "run", "c.yaml", "--output=o.h5"], "ranks": 3, "cwd": "/folder"}
//
// is a job for ranks 0 to 2, which all get it; "ranks": 0 stands for a run without MPI, on the rank that gets it. Each
// rank answers
//
//     {"id": 7, "code": 0, "out": "...", "err": "...", "digests": {"/npus/finish_time": "...", ...}}
//
// with what it has printed; rank 0 adds the digests of the results (result_digests.hpp), if the job has an --output
// that is an HDF5 file. An answer with "ends": true is the last one: ranks do not agree on a failure, and the worker
// ends. {"id": 8, "digest": "o.h5"} asks for the digests of a file. A line that is no job is answered with "error".
//
// "figures": true in a job of `orrery run` makes no results, which take most of the time of a small run, and prints the
// warnings of the configuration only. Rank 0 adds "figures", a digest of the records of NPUs and links. Different ones
// mean different results.
#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "options.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/text.hpp"
#include "orrery/cli/command_line.hpp"
#include "orrery/cli/commands.hpp"
#include "orrery/cli/job.hpp"
#include "orrery/config/read.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"
#include "result_digests.hpp"

namespace orrery::test {
namespace {

using Json = nlohmann::json;

/// Standard output or standard error of a job, which goes to a file while this lives.
class Captured {
 public:
  Captured(int descriptor, std::filesystem::path file)
      : descriptor_(descriptor), file_(std::move(file)), original_(::dup(descriptor)) {
    const int opened = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (opened < 0 || original_ < 0 || ::dup2(opened, descriptor_) < 0)
      throw std::runtime_error(fmt::format("{}: {}", file_.string(), std::strerror(errno)));
    ::close(opened);
  }
  ~Captured() {
    flush();
    ::dup2(original_, descriptor_);
    ::close(original_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  /// Returns what has been written so far.
  std::string text() const {
    flush();
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  static void flush() {
    std::cout.flush();
    std::fflush(nullptr);
  }

  int descriptor_;
  std::filesystem::path file_;
  int original_;
};

/// A line of the FIFO of jobs.
struct Job {
  Json id;
  std::vector<std::string> command;
  int ranks = 0;
  std::filesystem::path cwd;
  bool figures = false;          ///< whether a run writes no file
  std::filesystem::path digest;  ///< file whose digests are asked for; empty: the job is a command
};

/// Reads a job. Throws Json::exception or std::runtime_error, which name what is wrong.
Job job_of(const Json& line, int num_ranks) {
  Job job;
  job.id = line.at("id");
  if (line.contains("digest")) {
    job.digest = line.at("digest").get<std::string>();
    return job;
  }
  job.command = line.at("command").get<std::vector<std::string>>();
  job.ranks = line.at("ranks").get<int>();
  job.cwd = line.at("cwd").get<std::string>();
  job.figures = line.value("figures", false);
  if (job.command.empty()) throw std::runtime_error("'command' is empty");
  if (job.ranks < 0 || job.ranks > num_ranks)
    throw std::runtime_error(fmt::format("'ranks' is {}, but the worker has {}", job.ranks, num_ranks));
  return job;
}

/// Returns the file that the option --output of a command names; empty if there is none.
std::filesystem::path output_of(const std::vector<std::string>& command) {
  const std::string option = "--output";
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i].starts_with(option + "=")) return command[i].substr(option.size() + 1);
    if (command[i] == option && i + 1 < command.size()) return command[i + 1];
  }
  return {};
}

/// Returns a digest of what one rank has found for NPUs and links.
std::string figures_of(const results::RankResults& all) {
  std::string text;
  const auto add = [&text](auto... numbers) { ((text += fmt::format("{} ", numbers)), ...); };
  for (const npu::NpuRecord& npu : all.npus) {
    for (const Time time : {npu.finish, npu.compute, npu.cpu, npu.communication, npu.exposed_receive, npu.memory,
                            npu.exposed_memory, npu.idle})
      add(time.ps());
    for (const Time wait : npu.waits) add(wait.ps());
    add(npu.nodes_completed, npu.bytes_sent.count(), npu.peak_memory.count(), npu.peak_local_memory.count());
  }
  for (const network::LinkRecord& link : all.links)
    add(link.link, link.statistics.messages, link.statistics.bytes.count(), link.statistics.busy.ps());
  return fmt::format("{:016x}", digest_of(text));
}

class Worker {
 public:
  Worker(parallel::Communicator& world, std::filesystem::path folder)
      : world_(world), folder_(std::move(folder)), jobs_(of_this_rank("jobs")), answers_(of_this_rank("answers")) {
    if (!jobs_ || !answers_) throw std::runtime_error(fmt::format("no FIFOs in {}", folder_.string()));
  }

  void work() {
    for (std::string line; std::getline(jobs_, line);) answer(line);
  }

 private:
  std::filesystem::path of_this_rank(const char* name) const {
    return folder_ / fmt::format("{}.{}", name, world_.rank().value());
  }

  void answer(const std::string& line) {
    const Json parsed = Json::parse(line, nullptr, false);
    Json answer;
    answer["id"] = parsed.is_object() && parsed.contains("id") ? parsed["id"] : Json();
    try {
      if (!parsed.is_object()) throw std::runtime_error(fmt::format("no JSON object: {}", line));
      const Job job = job_of(parsed, world_.size());
      if (job.digest.empty())
        carry_out(job, answer);
      else
        answer["digests"] = result_digests(job.digest);
    } catch (const std::exception& error) {
      answer["error"] = error.what();
    }
    put(answer);
  }

  void put(const Json& answer) { answers_ << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl; }

  void carry_out(const Job& job, Json& answer) {
    std::filesystem::current_path(job.cwd);
    cli::JobEnd end;
    {
      const Captured out(STDOUT_FILENO, of_this_rank("out")), err(STDERR_FILENO, of_this_rank("err"));
      end = job.figures ? simulate(job, answer) : execute(job);
      answer["code"] = end.code;
      answer["out"] = out.text();
      answer["err"] = err.text();
    }
    if (!end.in_order) {
      answer["ends"] = true;
      put(answer);
      parallel::Environment::abort(end.code);
    }
    const std::filesystem::path output = output_of(job.command);
    if (world_.is_root() && end.code == 0 && !output.empty() && H5Fis_hdf5(output.c_str()) > 0)
      answer["digests"] = result_digests(output);
  }

  /// Does what main.cpp does, on the ranks of the job.
  cli::JobEnd execute(const Job& job) const {
    auto ranks = job.ranks == 0 ? parallel::make_serial() : world_.first(job.ranks);
    std::string command_line;
    std::vector<std::string> words = job.command;
    std::vector<char*> arguments;
    for (std::string& word : words) {
      command_line.append(command_line.empty() ? "" : " ").append(as_typed(word));
      arguments.push_back(word.data());
    }
    cli::JobEnd end;
    const cli::JobLauncher launch = [&](const cli::JobBody& body) {
      end = cli::run_job_on(*ranks, body);
      if (ranks->size() == 1) end.in_order = true;
      return end.code;
    };
    try {
      end.code = cli::execute(cli::parse_command_line(arguments), command_line, launch);
    } catch (...) {
      end.code = cli::report_failure();
    }
    if (!end.in_order) ranks.release();  // the others are in the middle of the job, and freeing is collective
    return end;
  }

  /// Simulates what `orrery run` does, and answers with the figures.
  cli::JobEnd simulate(const Job& job, Json& answer) const {
    auto ranks = job.ranks == 0 ? parallel::make_serial() : world_.first(job.ranks);
    cli::JobEnd end = cli::run_job_on(*ranks, [&](parallel::Communicator& world, run::StopGuard&) {
      std::vector<const char*> arguments;
      for (const std::string& word : job.command) arguments.push_back(word.c_str());
      const cli::Command command = cli::parse_command_line(arguments);
      auto configuration = run::agreed(world, [&] { return config::read(command.options<cli::RunCommand>()->inputs); });
      for (const std::string& warning : configuration.warnings) job_log().warn(warning);
      const auto preparation = run::prepare(configuration, world);
      const auto simulation = run::simulate(
          *preparation, configuration.run, [] { return false; }, world);
      answer["figures"] = figures_of(run::collect(*preparation, *simulation, world));
    });
    if (ranks->size() == 1) end.in_order = true;
    if (!end.in_order) ranks.release();  // as in `execute`
    return end;
  }

  parallel::Communicator& world_;
  std::filesystem::path folder_;
  std::ifstream jobs_;
  std::ofstream answers_;
};

}  // namespace
}  // namespace orrery::test

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: {} FOLDER\n", argv[0]), 2;
  orrery::cli::start_log();
  std::signal(SIGXFSZ, SIG_IGN);
  orrery::parallel::Environment environment;
  try {
    orrery::test::Worker(environment.world(), std::filesystem::absolute(argv[1])).work();
  } catch (const std::exception& error) {
    fmt::print(stderr, "case_runner: {}\n", error.what());
    orrery::parallel::Environment::abort(1);
  }
  return 0;
}
