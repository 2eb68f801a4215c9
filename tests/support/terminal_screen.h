#pragma once

#include <cctype>

#include "tests/support/standard.h"

namespace muster::test {

/// Simulates a terminal for ASCII text: carriage return, newline, "cursor up", "erase to the end of the line"
/// and "erase all that follows"; ignores colours. Changing the width wraps and joins lines anew, as most
/// terminals do.
class TerminalScreen {
 public:
  explicit TerminalScreen(int columns) : columns_(static_cast<std::size_t>(columns)) {}

  void write(std::string_view text) {
    ++writes;
    while (!text.empty()) {
      if (text.starts_with("\x1b[")) {
        const auto end = text.find_first_of("AJKhlm");
        code(text[end], text.substr(2, end - 2));
        text.remove_prefix(end + 1);
      } else {
        character(text.front());
        text.remove_prefix(1);
      }
    }
  }

  void resize(int columns) {
    columns_ = static_cast<std::size_t>(columns);
    std::vector<std::string> whole{""};  // unwrapped lines
    std::size_t line = 0, offset = 0;    // of the cursor in them
    for (std::size_t r = 0; r < lines.size(); ++r) {
      if (r == row_) {
        line = whole.size() - 1;
        offset = whole.back().size() + column_;
      }
      whole.back() += lines[r];
      if (!wraps_[r] && r + 1 < lines.size()) whole.emplace_back();
    }
    lines.clear();
    wraps_.clear();
    for (std::size_t w = 0; w < whole.size(); ++w) {
      if (w == line) {
        row_ = lines.size() + offset / columns_;
        column_ = offset % columns_;
      }
      std::size_t at = 0;
      do {
        lines.push_back(whole[w].substr(at, columns_));
        at += columns_;
        wraps_.push_back(at < whole[w].size());
      } while (at < whole[w].size());
    }
  }

  std::vector<std::string> lines{""};
  bool wrapped = false;  ///< whether text ever was wider than the window
  int writes = 0;

 private:
  void code(char kind, std::string_view number) {
    if (kind == 'A') {
      row_ -= std::min(row_, static_cast<std::size_t>(std::stoi(std::string(number))));
    } else if (number == "?7") {
      wrapping_ = kind == 'h';
    } else if (kind != 'm') {
      lines[row_].resize(std::min(column_, lines[row_].size()));
      wraps_[row_] = false;
      if (kind == 'K') return;
      lines.resize(row_ + 1);
      wraps_.resize(row_ + 1);
    }
  }

  void character(char c) {
    if (c == '\r') {
      column_ = 0;
    } else if (c == '\n') {
      down();
    } else {
      if (column_ == columns_ && !wrapping_) --column_;
      if (column_ == columns_) {
        wrapped = wraps_[row_] = true;
        down();
      }
      auto& line = lines[row_];
      if (column_ >= line.size()) line.resize(column_ + 1, ' ');
      line[column_++] = c;
    }
  }

  void down() {
    column_ = 0;
    if (++row_ < lines.size()) return;
    lines.emplace_back();
    wraps_.push_back(false);
  }

  std::vector<bool> wraps_{false};  // [line] whether the next one continues it
  std::size_t columns_, row_ = 0, column_ = 0;
  bool wrapping_ = true;
};

}  // namespace muster::test
