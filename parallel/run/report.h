#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/model.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/watching.h"

namespace muster {

/// The curves of a training that can be resumed: its report then has those of the whole training.
inline const std::string kReportCurves = "training.curves.jsonl";
inline const std::vector<std::string> kReportFiles{"confusion.txt", "report.html", kReportCurves};

/// Writes into `directory`, creating it if missing: `report.html`, the page of the training with its scores,
/// and of a classification `confusion.txt` with the scores of each class; the page then has the confusion
/// matrix and, of images, the mistakes that the model made with the highest probability.
/// @param judged  the data that `scores` are of.
/// @param remark  on the training; may be empty.
/// @param watching  of a training that had `WatchOptions::still`.
/// @return a text that names the written files.
/// @throws FileError; InvalidArgument if this program was built without the page.
std::string writeReport(const std::filesystem::path& directory, const AnyEvaluation& scores, Model& model,
                        const LoadedData& data, DataSetIterator& judged, std::string_view remark,
                        const Watching& watching);

}  // namespace muster
