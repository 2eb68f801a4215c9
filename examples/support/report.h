#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/data_sets.h"
#include "examples/support/watching.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/model.h"

namespace example {

/// The curves of a training that can be resumed: its report then has those of the whole training.
inline const std::string kReportCurves = "training.curves.jsonl";
inline const std::vector<std::string> kReportFiles{"confusion.txt", "report.html", kReportCurves};

/// Writes into `directory`, creating it if missing: `confusion.txt` with the scores of each class, and
/// `report.html`: the page of the training with the confusion matrix and the mistakes that the model made
/// with the highest probability.
/// @param remark  on the training; may be empty.
/// @param watching  of a training that had `WatchOptions::still`.
/// @return a text that names the written files.
/// @throws muster::FileError; muster::InvalidArgument if this program was built without the page.
std::string writeReport(const std::filesystem::path& directory, const muster::Evaluation& evaluation,
                        muster::Model& model, DataSets& data, std::string_view remark,
                        const Watching& watching);

}  // namespace example
