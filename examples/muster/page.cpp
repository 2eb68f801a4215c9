#include <fmt/format.h>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/pages.h"
#include "examples/muster/paths.h"
#include "examples/muster/program.h"
#include "examples/muster/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/io/atomic_file.h"

namespace program {

int page(const Call& call) {
  int port = 0;
  std::filesystem::path out;
  CommandLine line(
      "Shows the runs of a directory side by side, also those that are under way, and those of one group\n"
      "as their mean with a band. A run is a file whose name ends in .curves.jsonl, as --curves,\n"
      "listeners.curves and muster compare write it. At most 100,000 files and directories are looked at.\n"
      "Browsers of this machine reach the page; Ctrl-C ends it.\n\n"
      "  muster page comparison\n"
      "  muster page runs --out runs.html\n");
  line.group("Options");
  line.add("port", port, "N", "of the page; 0: any that is free", between(0, 65535));
  line.add("out", out, "FILE", "write one HTML file that needs no server, and end");
  if (!readOptions(line, call)) return 0;
  if (!out.empty()) line.refuse({"port"}, "needs a page that is served, and --out writes a file");
  const auto& directory = fileOf(call, "a directory of runs");
  muster::require(!muster::followLinks(out).native().ends_with(".curves.jsonl"),
                  "--out: {} is named like a run, which would be replaced", out.string());
  if (!out.empty()) {
    Paths paths;
    for (const auto& file : curvesBelow(directory))
      paths.reads(fmt::format("the run {}", file.string()), file);
    paths.writesResult("--out", out, Content::Page);
    paths.check();
    if (writeResult(out, stillPageOf(directory))) fmt::print("written: {}\n", out.string());
    return 0;
  }
  endOnInterrupt("The page has ended.");
  const muster::Interrupt interrupt("The page has ended.");
  servePage(directory, port, interrupt.token());
  return 0;
}

}  // namespace program
