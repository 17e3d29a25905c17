#include "orrery/synthesis/learn.hpp"

#include <algorithm>
#include <utility>

#include "channels.hpp"
#include "exponents.hpp"
#include "sketches.hpp"

namespace orrery::synthesis {
namespace {

using trace::NodeKind;

/// Reads the programs of all roles.
Learned read(std::span<const trace::NpuTrace> traces, const Views& views, Model& model) {
  Learned learned{.traces = traces, .role_of = find_roles(traces, views)};
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu) {
    const std::uint32_t role = learned.role_of[npu];
    if (role == learned.programs.size())
      learned.programs.push_back(read_program(traces[npu], views, npu, model.families));
    ++learned.programs[role].num_npus;
  }
  give_symbols(learned.programs);
  return learned;
}

/// Says for each symbol whether it is a message between NPUs of different roles.
std::vector<bool> find_crossings(const Learned& learned) {
  std::vector<bool> crosses;
  for (std::uint32_t role = 0; role < learned.programs.size(); ++role) {
    const Program& program = learned.programs[role];
    const trace::NpuTrace& trace = learned.traces[program.npu];
    for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
      if (crosses.size() <= program.symbols[k]) crosses.resize(program.symbols[k] + 1);
      const trace::Node& node = trace.graph->nodes[program.nodes[k]];
      if (node.kind != NodeKind::send && node.kind != NodeKind::receive) continue;
      if (learned.role_of[trace.peers[node.slot].index()] != role) crosses[program.symbols[k]] = true;
    }
  }
  return crosses;
}

/// Makes the tokens of a role, without edges, sketches and channels.
Role role_of(const Program& program, const Words& words) {
  Role role{.num_npus = program.num_npus, .sequence = words.sequence, .layers = words.layers};
  for (const Words::Token& token : words.tokens) {
    Token& made = role.tokens.emplace_back();
    made.count = token.count;
    made.is_layers = token.is_layers;
    made.occurrences = static_cast<std::uint32_t>(token.first.size());
    made.per_micro_batch = token.per_micro_batch;
    made.edges.resize(token.symbols.size());
    for (std::uint32_t b = 0; b < token.symbols.size(); ++b)
      made.body.push_back({.family = program.families[token.first.front() + b]});
  }
  return role;
}

void learn_sizes(const Learned& learned, std::uint32_t min_support, Model& model) {
  std::vector<SlotSizes> slots;
  std::vector<Slot*> of_slot;
  for (std::uint32_t r = 0; r < model.roles.size(); ++r) {
    const Program& program = learned.programs[r];
    std::vector<std::vector<std::uint32_t>> numbers;
    for (Token& token : model.roles[r].tokens) {
      auto& of_token = numbers.emplace_back();
      for (Slot& slot : token.body) {
        of_token.push_back(static_cast<std::uint32_t>(slots.size()));
        slots.push_back({slot.family, {}});
        of_slot.push_back(&slot);
      }
    }
    for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
      const Location& at = learned.locations[r][k];
      slots[numbers[at.token][at.offset]].samples.push_back({program.sizes[k], program.num_npus});
    }
  }
  Sketches sketches = sketch_slots(slots, min_support);
  for (std::size_t s = 0; s < of_slot.size(); ++s) {
    of_slot[s]->sketch = sketches.of_slot[s];
    of_slot[s]->rank = sketches.rank_of_slot[s];
  }
  model.sketches = std::move(sketches.sketches);
  model.merged_slots = sketches.merged;
}

/// Counts what goes along each axis, and says which axes have roles and pipelines.
void describe_axes(const Learned& learned, Model& model) {
  for (std::uint32_t r = 0; r < learned.programs.size(); ++r) {
    const Program& program = learned.programs[r];
    const double share = static_cast<double>(program.num_npus) / model.num_npus;
    for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
      const Family& family = model.families[program.families[k]];
      for (std::size_t a = 0; a < model.axes.size(); ++a) {
        if (!family.group.extents.empty() && family.group.extents[a].kind == Extent::Kind::all)
          model.axes[a].collectives += share;
        if (family.kind == NodeKind::send && family.peer[a] != 0) model.axes[a].messages += share;
      }
    }
  }
  for (std::uint32_t npu = 0; npu < model.num_npus; ++npu)
    for (Axis& axis : model.axes) {
      const std::uint32_t first = npu - npu / axis.stride % axis.size * axis.stride;
      if (learned.role_of[npu] != learned.role_of[first]) axis.has_roles = true;
    }
  for (Axis& axis : model.axes) axis.is_pipeline = axis.has_roles && axis.messages > 0;
}

/// Tabulates the roles by the coordinates along the axes that have roles, and counts the layers of all stages.
void tabulate(const Learned& learned, Model& model) {
  std::uint32_t size = 1;
  for (const Axis& axis : model.axes) size *= axis.has_roles ? axis.size : 1;
  model.role_table.assign(size, 0);
  for (std::uint32_t i = 0; i < size; ++i) {
    std::uint32_t npu = 0, rest = i;
    bool is_first_line = true;
    for (const Axis& axis : model.axes) {
      if (!axis.has_roles) continue;
      npu += rest % axis.size * axis.stride;
      if (!axis.is_pipeline && rest % axis.size > 0) is_first_line = false;
      rest /= axis.size;
    }
    model.role_table[i] = learned.role_of[npu];
    if (is_first_line) model.layers += model.roles[learned.role_of[npu]].layers;
  }
}

}  // namespace

std::vector<std::uint32_t> Model::coordinates(std::uint32_t npu) const {
  std::vector<std::uint32_t> result;
  for (const Axis& axis : axes) result.push_back(npu / axis.stride % axis.size);
  return result;
}

std::uint32_t Model::npu_at(const std::vector<std::uint32_t>& coordinates) const {
  std::uint32_t npu = 0;
  for (std::size_t a = 0; a < axes.size(); ++a) npu += coordinates[a] * axes[a].stride;
  return npu;
}

std::uint32_t Model::role_of(std::uint32_t npu) const {
  std::uint32_t index = 0, factor = 1;
  for (const Axis& axis : axes) {
    if (!axis.has_roles) continue;
    index += npu / axis.stride % axis.size * factor;
    factor *= axis.size;
  }
  return role_table[index];
}

Model learn(const trace::Store& store, std::span<const trace::NpuTrace> traces, const LearnOptions& options) {
  Model model;
  model.num_npus = static_cast<std::uint32_t>(traces.size());
  model.precision = store.precision();
  const Views views = view(store, traces);
  model.axes = views.axes;
  Learned learned = read(traces, views, model);
  Loops loops = find_words(learned.programs, find_crossings(learned));
  learned.words = std::move(loops.words);
  model.micro_batches = loops.micro_batches;
  for (std::uint32_t r = 0; r < learned.programs.size(); ++r) {
    learned.locations.push_back(locate(learned.words[r]));
    Role& role = model.roles.emplace_back(role_of(learned.programs[r], learned.words[r]));
    learn_edges(learned.programs[r], learned.words[r], learned.locations[r], role);
    assume_exponents(learned.programs[r], learned.locations[r], model, role);
  }
  model.num_channels = find_channels(learned, model.roles);
  learn_sizes(learned, options.min_support, model);
  describe_axes(learned, model);
  tabulate(learned, model);
  return model;
}

}  // namespace orrery::synthesis
