#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster {

/// Makes a page that needs no server and no network: one HTML file with its data, styles and scripts. Its
/// content security policy forbids it to load anything else.
///
/// @param news  JSON objects. Each run has one, as `PageStore::all()` returns it:
///
///         {"run": "averaging, seed 1", "group": "averaging", "failed": "why it ended early, or nothing",
///          "series": [{"name": "test/accuracy", "groupSize": `PageCurve::groupSize` of a thinned curve,
///                      "points": [[iteration, value], ...]}, ...],
///          "texts": {"plan": "..."}, "progress": ..., "histograms": ..., "network": a configuration}
///
///     One more object may describe all runs together. Each of its fields may be absent:
///
///         {"document": {"title": "...", "paragraphs": ["..."], "warnings": ["..."], "notes": ["..."],
///                       "options": ["..."], "target": 0.95,
///                       "tables": [{"title": "...", "rows": [{"cells": ["..."]}], "notes": ["..."]}],
///                       "panels": [{"name": "...", "groups": ["..."]}],
///                       "confusion": {"classes": ["..."], "rows": [{"counts": [...]}]},
///                       "pictures": {"title": "...", "width": 28, "height": 28,
///                                    "list": [{"pixels": "00ff...", "caption": "..."}]}}}
///
///     The page draws the runs of one group as their mean with a band. Texts may hold any characters, since
///     each "<" is escaped.
std::string stillPage(std::span<const std::string> news);

/// The page's element `title`, with its tags, near the beginning of each page. Recognises a page.
std::string_view pageTitle();

}  // namespace muster
