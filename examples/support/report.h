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

inline const std::vector<std::string> kReportFiles{"confusion.txt", "report.html"};

/// Writes into `directory`, which is made where it is missing: `confusion.txt` with the scores of each class,
/// and `report.html`, the page of the training with the confusion matrix and the mistakes that the model
/// was surest of; the latter not if this program was built without the page.
/// @param remark  on the training; may be empty.
/// @param watching  of a training with `WatchOptions::still`.
/// @return what was written, for people.
/// @throws muster::FileError.
std::string writeReport(const std::filesystem::path& directory, const muster::Evaluation& evaluation,
                        muster::Model& model, DataSets& data, std::string_view remark,
                        const Watching& watching);

}  // namespace example
