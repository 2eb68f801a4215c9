#pragma once

#include <string>
#include <vector>

#include "examples/muster/compare/plots.h"
#include "examples/muster/compare/summary.h"
#include "examples/muster/compare/text_table.h"

namespace comparing {

struct ReportTable {
  std::string name;  ///< of its file
  std::string title;
  Cells rows;
  std::vector<std::string> notes;
};

/// All tables of a comparison with their notes.
std::vector<ReportTable> tablesOf(const Comparison& comparison);

/// One HTML file with sentences, tables and figures that loads no other file; it links to those of tables and
/// plots beside it.
std::string reportPage(const Comparison& comparison, const std::vector<ReportTable>& tables,
                       const std::vector<Plot>& plots);

}  // namespace comparing
