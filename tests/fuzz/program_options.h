#pragma once

#include <string>
#include <vector>

namespace muster::fuzz {

/// An option of a program, or a path that muster's --set takes.
struct ProgramOption {
  std::string argument;  ///< "--workers", or "training.workers"
  bool takesValue;
  std::string plain;               ///< a value that is usually valid
  std::vector<std::string> words;  ///< of its help, or of its schema; some are values

  /// The arguments that give it a value.
  std::vector<std::string> with(const std::string& value) const;
  std::vector<std::string> plainly() const;
};

/// The options that a program's --help lists, or the paths in the schema of run files and in runFileText().
/// @param program  one of kPrograms.
const std::vector<ProgramOption>& optionsOf(char program);

}  // namespace muster::fuzz
