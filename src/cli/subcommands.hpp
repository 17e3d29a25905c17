#pragma once

#include <string>

#include "orrery/config/command_line.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/stop_guard.hpp"

/// The subcommands, each in a file of its own. All throw Error (bad_input, usage, output) for what they cannot do.
namespace orrery::cli {

/// `orrery run`: simulates and writes the results. Collective. Throws Error on the rank that knows of a failure and
/// parallel::FailedElsewhere on others.
void run(const config::RunCommand& command, const std::string& command_line, parallel::Communicator& world,
         run::StopGuard& guard);

/// `orrery check`: prints every fault on standard error. Returns the exit code.
int check(const config::CheckCommand& command);

/// `orrery explore`: simulates the configurations of a study. Collective.
void explore(const config::ExploreCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery best`: writes a study beside the output and explores it. Collective.
void best(const config::BestCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery campaign`: simulates how much of weeks a job trains, and writes what was found. Collective.
void campaign(const config::CampaignCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery cluster`: simulates many jobs on one cluster over time. Collective.
void cluster(const config::ClusterCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery flows`: simulates flows over a packet network. Collective.
void flows(const config::FlowsCommand& command, parallel::Communicator& world);

/// `orrery generate`: writes the traces of a generated workload and prints its figures.
void generate(const config::GenerateCommand& command);

/// `orrery convert`: writes traces of any format as Chakra execution traces, or a description of a system as YAML.
void convert(const config::ConvertCommand& command);

/// `orrery synthesize`: learns from traces, or takes what was learned, and writes traces of another scale.
void synthesize(const config::SynthesizeCommand& command);

/// `orrery partition`: writes a rank map and prints how good it is.
void partition(const config::PartitionCommand& command);

/// `orrery init`: writes a CONFIG.yaml of a few arguments.
void init(const config::InitCommand& command);

/// `orrery report`, `orrery compare` and `orrery show results`: becomes Python, whose exit code is that of the program.
/// Returns `not_installed` if there is no Python or no package to run.
int run_package(const config::PackageCommand& command);

/// The exit code if a program or a package is missing that Orrery itself does not hold: EX_UNAVAILABLE of sysexits.h.
inline constexpr int not_installed = 69;

/// `orrery --version`: prints the versions of the program and of its libraries.
void print_version();

/// Prints the help on standard output if it was asked for, else on standard error. Returns the exit code.
int print_help(const config::HelpCommand& help);

}  // namespace orrery::cli
