#include "examples/muster/run_paths.h"

#include <system_error>

#include "muster/parallel/run/report.h"

namespace program {

using namespace muster;

void addTo(Paths& paths, const DataSource& data) {
  for (const auto& [field, path] : data.files())
    if (std::error_code unreachable; std::filesystem::is_directory(path, unreachable))
      paths.readsPictures(field, path);
    else
      paths.reads(field, path);
}

Paths pathsOf(const std::filesystem::path& runFile, const RunFile& run,
              const std::filesystem::path& resumed) {
  Paths paths;
  paths.reads("the run file", runFile);
  addTo(paths, run.data);
  paths.reads("training.resume", resumed, /*replacedBy=*/"training.model");
  paths.reads("training.initialModel", run.training.initialModel, /*replacedBy=*/"training.model");
  paths.writes("training.model", run.training.model, Content::Model);
  if (const auto& e = run.listeners.earlyStopping)
    paths.writes("listeners.earlyStopping.bestFile", e->bestFile, Content::Model);
  if (const auto& c = run.listeners.checkpoints)
    paths.writesCheckpoints("listeners.checkpoints.directory", c->directory);
  paths.writesInto("listeners.tensorBoard", run.listeners.tensorBoard);
  paths.writesInto("listeners.report", run.listeners.report, {kReportFiles.begin(), kReportFiles.end()});
  if (const std::filesystem::path curves = run.listeners.curves; !curves.empty())
    paths.writesInto("listeners.curves", curves.has_parent_path() ? curves.parent_path() : ".",
                     {curves.filename().string()});
  return paths;
}

}  // namespace program
