#pragma once

#include <string>
#include <vector>

#include "examples/muster/command_line.h"
#include "muster/parallel/run/run_file.h"

namespace program {

/// What a command line sets in a run file.
struct FieldChoices {
  std::vector<std::string> byOption;  ///< by the options for fields, as "training.workers=4"
  std::vector<std::string> sets;      ///< by --set

  /// All, of which a later one wins over an earlier one: --set over the options.
  std::vector<std::string> all() const;
};

/// Adds `--set`.
void describeSets(CommandLine& line, std::vector<std::string>& sets);

/// Adds an option for each field that is often set, and `--set` for the others.
void describeFields(CommandLine& line, FieldChoices& choices);

/// The run of a file with these choices. If the file lacks a field that one of the options needs, the error
/// also names the option for that.
/// @throws as muster::RunFile::read.
muster::RunFile readRun(const std::string& path, const FieldChoices& choices);

/// What to use instead of an option that mnist_convnet had, as "--strategy"; "" for any other option.
std::string insteadOf(const std::string& option);

}  // namespace program
