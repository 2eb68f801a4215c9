#include "muster/core/base/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "muster/core/base/utf8.h"

namespace muster {

std::string textTable(const Cells& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], utf8Length(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - utf8Length(row[i]), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string markdownTable(const Cells& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(rows[i], " | "));
    if (i > 0) continue;
    for (std::size_t column = 0; column < rows[0].size(); ++column) text += "|---";
    text += "|\n";
  }
  return text;
}

std::string csvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted.append("\"");
}

std::string csvTable(const Cells& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += csvField(row[i]);
    }
    text += "\n";
  }
  return text;
}

std::string wrappedText(std::string_view sentence, std::size_t columns) {
  std::string text, line;
  std::istringstream words{std::string(sentence)};
  for (std::string word; words >> word;) {
    if (!line.empty() && utf8Length(line) + 1 + utf8Length(word) > columns) {
      text += line + "\n";
      line = "  " + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return text + line + "\n";
}

}  // namespace muster
