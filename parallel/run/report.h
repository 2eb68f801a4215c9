#pragma once

#include <array>
#include <string>
#include <string_view>

namespace muster {

class RunSession;
struct RunScores;

/// The curves of a training that can be resumed: its report then has those of the whole training.
inline constexpr std::string_view kReportCurves = "training.curves.jsonl";
inline constexpr std::array<std::string_view, 3> kReportFiles{"confusion.txt", "report.html", kReportCurves};

/// Writes into the directory of `listeners.report`, creating it if missing: `report.html`, the page of the
/// training with its scores, and of a classification `confusion.txt` with the scores of each class; the page
/// then has the confusion matrix and, of images, the mistakes that the model made with the highest
/// probability.
/// @param scores  from `session.evaluate()`.
/// @return a text that names the written files.
/// @throws FileError; InvalidArgument if this program was built without the page.
std::string writeReport(RunSession& session, const RunScores& scores);

}  // namespace muster
