#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "muster/core/nn/model.h"

namespace example {

/// Options of the programs that demonstrate one feature on generated digits.
struct SmallTraining {
  int workers = 2;
  std::int64_t epochs = 3;
  std::int64_t examples = 3000;
  std::int64_t seed = 1;
  std::string model = {};  ///< file for the trained model
};

/// The `main` of such a program: reads the command line, checks that the model's file can be written, and
/// calls `run`. @return the exit status, as runProgram.
/// @param name          of the program, and default name of its model file.
/// @param introduction  the help begins with it.
int runSmallTraining(int argc, const char* const* argv, std::string_view name, std::string_view introduction,
                     const std::function<int(const SmallTraining&)>& run);

/// Trains, then saves what was trained, also after Ctrl-C or a failure (trainAndSave in keep_network.h), and
/// if necessary to another directory (writeHereOrElsewhere). Saves nothing if no step was finished.
/// @param train  gets a token for `fit`.  @param save  writes the model into a file.
/// @return false after Ctrl-C: the program should end with muster::kInterruptedExit.
bool trainAndSave(const SmallTraining& options, muster::Model& model,
                  const std::function<void(const std::stop_token&)>& train,
                  const std::function<void(const std::filesystem::path&)>& save);

}  // namespace example
