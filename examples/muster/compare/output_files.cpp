#include "examples/muster/compare/output_files.h"

#include <fmt/format.h>

#include <system_error>

#include "examples/muster/run_paths.h"
#include "muster/core/base/error.h"
#include "muster/parallel/run/detail/watching.h"

namespace comparing {
namespace {

/// Letters, digits, and what does no harm in a file's name; other characters become "-".
std::string fileName(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       (static_cast<unsigned char>(c) & 0x80) != 0 || c == '_' || c == '=' ||
                       (c == '.' && !text.empty());
    text += plain ? c : '-';
  }
  return text;
}

}  // namespace

void checkOutput(const std::filesystem::path& directory, const std::string& file,
                 const muster::RunFile& run) {
  std::error_code none;
  if (std::filesystem::is_directory(directory, none) &&
      !std::filesystem::exists(directory / kResultsName, none))
    for (const auto& entry : std::filesystem::directory_iterator(directory, none))
      if (entry.path().filename() != ".lock")  // of an earlier call that ended before its first result
        throw muster::FileError(
            directory,
            fmt::format("has files, as {}, and no {}, so it is not a comparison's; give another --out",
                        entry.path().filename().string(), kResultsName));
  program::Paths paths;
  paths.reads("the run file", file);
  program::addTo(paths, run.data);
  paths.reads("training.initialModel", run.training.initialModel);
  paths.writesInto("--out", directory, {std::string(kResultsName), "table.md", "report.html", ".lock"});
  for (const auto* const part : {"plots", "tables", "runs"}) paths.writesInto("--out", directory / part);
  paths.writesInto("listeners.tensorBoard", run.listeners.tensorBoard);
  paths.check();
}

std::filesystem::path curvesFile(const std::filesystem::path& directory, const std::string& arm,
                                 std::int64_t seed) {
  if (!muster::detail::pagesBuilt()) return directory.empty() ? std::filesystem::path(fileName(arm)) : "";
  return directory / "runs" / fileName(arm) / fmt::format("seed-{}.curves.jsonl", seed);
}

}  // namespace comparing
