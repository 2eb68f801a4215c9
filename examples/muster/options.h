#pragma once

#include <string>
#include <vector>

#include "examples/muster/command_line.h"
#include "examples/muster/commands.h"
#include "examples/muster/run_options.h"
#include "muster/parallel/run/node_options.h"

namespace program {

/// Reads the options of a call, and the files among them. @return false if it printed the help.
bool readOptions(CommandLine& line, const Call& call);

/// The file of a call. @param what  for example "run.json". @throws InvalidArgument if it has none.
const std::string& fileOf(const Call& call, std::string_view what);

/// Adds the options by which a process finds the other nodes of its training.
void describeNodes(CommandLine& line, muster::NodeOptions& nodes);
/// Checks them after they were read. @throws muster::InvalidArgument naming an option without effect.
void checkNodes(const CommandLine& line, const muster::NodeOptions& nodes);

}  // namespace program
