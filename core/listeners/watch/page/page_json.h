#pragma once

#include <string>
#include <string_view>

#include "muster/core/listeners/watch/page/page_inbox.h"

// JSON that may be embedded in HTML: "<" is written as an escape, so nothing in it ends a script.

namespace muster::page_json {

/// A text in quotes. What is not UTF-8 becomes an escape in words, as in printableText.
void append(std::string& json, std::string_view text);
/// The shortest text of the number; null for NaN and infinities.
void append(std::string& json, double value);
void append(std::string& json, const PageProgress& progress);
void append(std::string& json, const PageHistograms& histograms);
/// Text that is JSON already. Line ends become spaces.
void appendJson(std::string& json, std::string_view document);

}  // namespace muster::page_json
