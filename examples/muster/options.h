#pragma once

#include <string>
#include <vector>

#include "examples/muster/commands.h"
#include "examples/muster/run_options.h"
#include "examples/support/command_line.h"

namespace program {

/// Reads the options of a call, and the files among them. @return false if it printed the help.
bool readOptions(example::CommandLine& line, const Call& call);

/// The file of a call. @param what  for example "run.json". @throws InvalidArgument if it has none.
const std::string& fileOf(const Call& call, std::string_view what);

}  // namespace program
