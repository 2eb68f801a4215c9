#pragma once

#include <span>
#include <string>

namespace muster {

/// A page that needs no server and no network: one HTML file with its data, styles and scripts, which loads
/// nothing. Its policy forbids it to.
///
/// @param news  JSON objects. One of a run, as from `PageStore::all()`:
///
///         {"run": "averaging, seed 1", "group": "averaging", "failed": "why it ended early, or nothing",
///          "series": [{"name": "test/accuracy", "groupSize": of a thinned curve, as `PageCurve::groupSize`,
///                      "points": [[iteration, value], ...]}, ...],
///          "texts": {"plan": "..."}, "progress": ..., "histograms": ..., "network": a configuration}
///
///     and, where there is more to say, one of all runs, of whose fields each may be absent:
///
///         {"document": {"title": "...", "paragraphs": ["..."], "warnings": ["..."], "notes": ["..."],
///                       "options": ["..."], "target": 0.95,
///                       "tables": [{"title": "...", "rows": [{"cells": ["..."]}], "notes": ["..."]}],
///                       "panels": [{"name": "...", "groups": ["..."]}],
///                       "confusion": {"classes": ["..."], "rows": [{"counts": [...]}]},
///                       "pictures": {"title": "...", "width": 28, "height": 28,
///                                    "list": [{"pixels": "00ff...", "caption": "..."}]}}}
///
///     Runs of one group are drawn as their mean with a band. Texts may be any: all of "<" is escaped.
std::string stillPage(std::span<const std::string> news);

}  // namespace muster
