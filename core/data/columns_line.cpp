#include "muster/core/data/columns_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/base/text_table.h"

namespace muster {

std::string columnsLine(const InputDescription& description) {
  if (description.columns.empty()) return {};
  std::vector<std::string> read, omitted;
  for (const auto& column : description.columns)
    read.push_back(csvField(column.name) + (column.kind == ColumnKind::Words
                                                ? fmt::format(" ({})", plural(column.words.size(), "word"))
                                            : column.kind == ColumnKind::Date ? " (date)"
                                                                              : ""));
  for (const auto& [name, reason] : description.omitted)
    omitted.push_back(fmt::format("{} ({})", csvField(name), reason));
  return printableText(fmt::format("columns: {}{}{}", fmt::join(read, ", "),
                                   omitted.empty() ? "" : "; left out: ", fmt::join(omitted, ", ")));
}

}  // namespace muster
