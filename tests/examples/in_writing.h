#pragma once

#include <csignal>

#include "tests/examples/program.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// The name of a temporary file among these; "" if there is none.
/// @param before  names to ignore.
inline std::string temporaryIn(const std::set<std::string>& names, const std::set<std::string>& before = {}) {
  const auto found = std::ranges::find_if(
      names, [&](const auto& name) { return name.ends_with(".tmp") && !before.contains(name); });
  return found == names.end() ? "" : *found;
}

/// Trainings of about 20 checkpoints to try until one is stopped in writing. stopInWriting takes microseconds
/// to look and a file milliseconds. If a program on the same single core is interrupted in only one of 20
/// files, 100 trainings all go unseen with probability 1e-44.
inline constexpr std::uint64_t kTrainingsToWatch = 100;

/// Stops a program while it writes a checkpoint. Looks at the temporary file once more after the program has
/// stopped, so the file is not yet renamed. Looks without a pause, because a file takes only milliseconds.
/// @param before  the names in the directory before the program began, perhaps temporary files of others.
/// @return the temporary file's name, ".<checkpoint>.<process>.<number>.tmp"; "" if the program ended first.
inline std::string stopInWriting(Program& program, const std::filesystem::path& checkpoints,
                                 const std::set<std::string>& before = {}) {
  while (!program.endsWithin(std::chrono::seconds(0))) {
    if (temporaryIn(namesIn(checkpoints), before).empty()) continue;
    if (!program.stop()) return "";
    if (auto name = temporaryIn(namesIn(checkpoints), before); !name.empty()) return name;
    program.signal(SIGCONT);
  }
  return "";
}

}  // namespace muster::test
