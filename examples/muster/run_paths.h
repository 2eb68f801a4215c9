#pragma once

#include <filesystem>

#include "examples/muster/paths.h"
#include "muster/parallel/run/run_file.h"

namespace program {

/// Adds the files and the folders of pictures that data are read from.
void addTo(Paths& paths, const muster::DataSource& data);

/// The files that a training reads and writes. @param resumed  the file from `resumedBy`.
Paths pathsOf(const std::filesystem::path& runFile, const muster::RunFile& run,
              const std::filesystem::path& resumed);

}  // namespace program
