#include "muster/core/base/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/utf8.h"

namespace muster {
namespace {

/// Where a quotation or a bracket at `at` ends, after its last character; `at` if it is none or has no end.
std::size_t groupEnd(std::string_view text, std::size_t at) {
  constexpr std::string_view kOpen = "{[", kClose = "}]";
  const char first = text[at];
  if (first == '"' || first == '\'') {
    const auto end = text.find(first, at + 1);
    return end == text.npos ? at : end + 1;
  }
  const auto kind = kOpen.find(first);
  if (kind == kOpen.npos) return at;
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    depth += (text[i] == first) - (text[i] == kClose[kind]);
    if (depth == 0) return i + 1;
  }
  return at;
}

/// The end of the word that begins at `at`. An apostrophe within a word opens no quotation.
std::size_t wordEnd(std::string_view text, std::size_t at) {
  const auto begin = at;
  while (at < text.size() && text[at] != ' ' && text[at] != '\n') {
    const bool opens = text[at] != '\'' || at == begin || text[at - 1] == '(' || text[at - 1] == '=';
    const auto end = opens ? groupEnd(text, at) : at;
    at = std::max(end, at + 1);
  }
  return at;
}

}  // namespace

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

std::vector<std::string> csvFields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    auto& field = fields.back();
    const bool begins = !quoted && field.find_first_not_of(' ') == field.npos;
    if (quoted && line.substr(i).starts_with("\"\"")) {
      field += line[i++];
    } else if (line[i] == '"' && (quoted || begins)) {
      if (begins) field.clear();  // of blanks after a comma
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      field += line[i];
    }
  }
  return fields;
}

std::string csvList(std::span<const std::string> texts) {
  std::string list;
  for (const auto& text : texts) list.append(list.empty() ? "" : ", ").append(csvField(text));
  return list;
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
  for (std::size_t at = 0; (at = sentence.find_first_not_of(" \n", at)) < sentence.size();) {
    const auto end = wordEnd(sentence, at);
    const std::string word(sentence.substr(at, end - at));
    at = end;
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
