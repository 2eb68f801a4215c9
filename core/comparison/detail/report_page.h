#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/text_table.h"
#include "muster/core/comparison/comparison.h"
#include "muster/core/comparison/detail/plots.h"

namespace muster::detail {

struct ReportTable {
  std::string name;  ///< of its file
  std::string title;
  Cells rows;
  std::vector<std::string> notes;
};

/// The names that tables may have.
inline constexpr std::string_view kTableNames[] = {"arms", "tuning", "link"};

/// All tables of a comparison with their notes.
std::vector<ReportTable> tablesOf(const Comparison& comparison, const ComparisonSummary& summary);

/// One HTML file with sentences, tables and figures that loads no other file; it links to those of tables and
/// plots beside it.
std::string reportPage(const Comparison& comparison, const ComparisonSummary& summary,
                       const std::vector<ReportTable>& tables, const std::vector<Plot>& plots);

}  // namespace muster::detail
