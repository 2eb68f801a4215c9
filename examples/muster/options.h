#pragma once

#include <string>
#include <vector>

#include "examples/muster/command_line.h"
#include "examples/muster/commands.h"
#include "examples/muster/run_options.h"
#include "muster/parallel/run/detail/node_options.h"

namespace program {

/// Reads the options of a call, and the files among them. @return false if it printed the help.
bool readOptions(CommandLine& line, const Call& call);

/// The file of a call. @param what  for example "run.json". @throws InvalidArgument if it has none.
const std::string& fileOf(const Call& call, std::string_view what);

/// What the command line of a training says, as train and plan take it.
struct TrainingOptions {
  FieldChoices fields;
  muster::detail::NodeOptions nodes;
};

/// Adds the options for fields, and those by which a process finds the other nodes of its training.
void describeTraining(CommandLine& line, TrainingOptions& options);
/// The run of the call's file with these options, after `readOptions`.
/// @throws muster::InvalidArgument naming an option without effect; otherwise as readRun.
muster::RunFile readTraining(const CommandLine& line, const Call& call, const TrainingOptions& options);

}  // namespace program
