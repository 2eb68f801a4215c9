#pragma once

#include <cstdint>
#include <optional>
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

/// Reads the command line. @param introduction  what the help begins with.
/// @return nothing where help was asked for and has been printed.
/// @throws muster::InvalidArgument with one sentence naming the option that is unknown or out of range.
std::optional<SmallTraining> readSmallTraining(int argc, const char* const* argv,
                                               std::string_view introduction, SmallTraining defaults);

}  // namespace example
