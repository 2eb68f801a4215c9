#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace example {

/// What the programs can be told that show one thing on a few digits that they draw.
struct SmallTraining {
  int workers = 2;
  std::int64_t epochs = 3;
  std::int64_t examples = 3000;
  std::int64_t seed = 1;
  std::string model = {};  ///< where the trained model goes
};

/// The `main` of such a program: reads the command line, sees to it that the model's file can be written, and
/// calls `run`. @return the exit status, as runProgram has it.
/// @param name          of the program; what it saves is by default called so.
/// @param introduction  what the help begins with.
int runSmallTraining(int argc, const char* const* argv, std::string_view name, std::string_view introduction,
                     const std::function<int(const SmallTraining&)>& run);

}  // namespace example
