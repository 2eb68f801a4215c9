#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "examples/muster/commands.h"
#include "examples/muster/compare/base_run.h"
#include "muster/core/comparison/network_link.h"

namespace comparing {

/// What is asked for: by the command line, else by `compare` in the run file.
struct Options {
  std::vector<std::string> sets;
  std::vector<std::string> arms, tune;
  std::vector<std::int64_t> seeds;
  std::int64_t testEvery = 0;    ///< samples; 0: a twentieth of the training
  std::string baseline;          ///< an arm's name; "": the first one
  std::optional<double> target;  ///< percent of an accuracy, or R2; empty: chosen from what the arms reach
  /// what gave them, for messages
  std::string armsBy = "--arm", tuneBy = "--tune", baselineBy = "--baseline", targetBy = "--target";
  std::optional<muster::NetworkLink> link;
  std::filesystem::path out = "comparison";
};

/// Reads the command line. @return nothing if it printed the help.
/// @throws muster::InvalidArgument naming the option that is unknown or out of range.
std::optional<Options> readOptions(const program::Call& call);

/// Takes what the command line leaves open from `compare` of a run file, an object of arms, seeds, tune,
/// testEvery, baseline, target and link. @param text  of the file.
/// @throws InvalidArgument naming the file and a field that is unknown or out of range.
void takeDefaults(const std::string& file, const std::string& text, Options& options);

}  // namespace comparing
