#include "examples/muster/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

namespace program {
namespace {

using muster::require;

/// Whether one of the arguments is a run file.
bool runsFile(const Call& call) {
  return std::ranges::any_of(call.options, [](const std::string& word) { return word.ends_with(".json"); });
}

FieldUse fieldUseOf(const CommandLine& line) {
  if (line.has("epochs")) return FieldUse::Training;
  return line.has("arm") ? FieldUse::Comparing : FieldUse::Testing;
}

/// @throws InvalidArgument that says what sets the field named by an option that there is not, unless the
///         message so far says it, or the command sets no fields.
void requireInstead(const CommandLine& line, const Call& call, std::string_view option,
                    std::string_view problem) {
  const auto use = fieldUseOf(line);
  if (!line.has("set")) return;
  const auto instead = insteadOf(option, use);
  require(use != FieldUse::Testing || !instead.empty() || setsOf(option, FieldUse::Training).empty(),
          "there is no option {}: muster train has it, and {} trains nothing", option, call.program);
  if (use != FieldUse::Training && !runsFile(call)) return;
  const auto nearestEnds = [&](std::string_view end) {  // what the user has left out
    return problem.find(fmt::format("; the nearest is {}{}", option, end)) != problem.npos;
  };
  if (nearestEnds("s;")) return;
  require(instead.empty(), "there is no option {}: use {}", option, instead);
  require(nearestEnds("-"), "{}; fields of the run file are set as in --set {}", problem,
          use == FieldUse::Testing ? "data.batch=100" : "training.workers=4");
}

void describeNodes(CommandLine& line, muster::detail::NodeOptions& nodes) {
  constexpr int kMost = muster::detail::NodeOptions::kMostNodes;
  line.add("store", nodes.store, "DIR",
           "train over several processes by Gloo, which find each other in this directory, or at the Redis "
           "server redis://HOST:PORT/NAME (or MUSTER_STORE)");
  line.add("node", nodes.node, "I", "with --store: which of them this one is, from 0 (or MUSTER_NODE)",
           atLeast(0));
  line.add("nodes", nodes.nodes, "N", "with --store: how many there are (or MUSTER_NODES)",
           between(1, kMost));
  line.add("min-nodes", nodes.minNodes, "N",
           "with --store, instead of --node and --nodes: processes may join and leave while they train, and "
           "wait where there are fewer than N (or MUSTER_MIN_NODES)",
           between(1, kMost));
  line.add("interface", nodes.interface, "NAME",
           "with --store: the network interface to listen on, as in eth0, or lo on one machine (or "
           "MUSTER_INTERFACE)");
  line.add("silence", nodes.silence, "SECONDS",
           "with --store: a process that sends nothing for this time counts as lost; use the same value for "
           "all (or MUSTER_SILENCE)",
           positive);
}

void checkNodes(const CommandLine& line, const muster::detail::NodeOptions& nodes) {
  if (nodes.store.empty())
    line.refuse({"node", "nodes", "min-nodes", "interface", "silence"}, "needs --store");
  if (nodes.minNodes)
    line.refuse({"node", "nodes"},
                "cannot be combined with --min-nodes: elastic processes have no numbers of their own");
}

}  // namespace

bool readOptions(CommandLine& line, const Call& call) try {
  const auto command = std::ranges::find_if(
      commands(), [&](const Command& one) { return call.program == fmt::format("muster {}", one.name); });
  line.usage(fmt::format("{}{}{} [options]", call.program, command->file.empty() ? "" : " ", command->file));
  std::vector<std::string> files;
  if (!command->file.empty()) line.arguments(files);
  std::vector<const char*> arguments{call.program.c_str()};
  for (const auto& option : call.options) arguments.push_back(option == "-h" ? "--help" : option.c_str());
  const bool read = line.read(static_cast<int>(arguments.size()), arguments.data());
  for (auto& file : files) {
    require(!file.empty(), "{}: the first argument is empty, perhaps an unset variable", call.program);
    if (call.file.empty())
      call.file = std::move(file);
    else
      call.others.push_back(std::move(file));
  }
  const std::size_t most = command->name == "predict" || command->name == "evaluate" ? 1 : 0;
  require(call.others.size() <= most, "unexpected argument \"{}\"; --help lists the options",
          call.others.empty() ? "" : call.others.back());
  return read;
} catch (const muster::InvalidArgument& error) {
  const std::string_view text = error.what();
  for (const auto& word : call.options)
    if (const auto option = word.substr(0, word.find('='));
        text.starts_with(fmt::format("there is no option {};", option)))
      requireInstead(line, call, option, text);
  throw;
}

const std::string& fileOf(const Call& call, std::string_view what) {
  require(!call.file.empty(), "{} needs an argument, {}; --help says more", call.program, what);
  return call.file;
}

void describeTraining(CommandLine& line, TrainingOptions& options) {
  describeFields(line, options.fields);
  line.group("Several processes");
  describeNodes(line, options.nodes);
}

muster::RunFile readTraining(const CommandLine& line, const Call& call, const TrainingOptions& options) {
  checkNodes(line, options.nodes);
  return readRun(fileOf(call, "a run file such as run.json"), options.fields);
}

}  // namespace program
