#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/io/model_file.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/prepared_run.h"

// What a model's file says of the run and the data that it was trained with.

namespace muster::detail {

/// The run and what its data hold, as notes of each model file that `muster train` writes.
ModelNotes notesOf(const RunFile& run, const LoadedData& data);

/// The run that a model file has; nothing if `muster train` did not save it. @throws FileError.
std::optional<RunFile> runIn(const std::filesystem::path& model);

/// Chooses which data `mnistOrGenerated` is: those that a model was trained with, as its file says. Does
/// nothing for other data or another file.
void chooseData(RunFile& run, const std::filesystem::path& model);

/// Takes from the run that a model was trained by how its examples were divided: their numbers, and the seed
/// that draws them. Otherwise examples that it was trained with would be held out. Logs which fields of this
/// run say otherwise. Does nothing for a model that `muster train` did not save.
/// @param part  what is wanted of the data: train, validation, or test, if it is held out.
/// @param overrides  of `run`, as for RunFile::parse.
/// @throws FileError naming fields for which an override says otherwise, with both values.
void chooseSplit(RunFile& run, const std::filesystem::path& model, std::string_view part,
                 std::span<const std::string> overrides = {});

/// Checks that the training data are those that a model was trained with, if its file says what they held.
/// @throws FileError with what differs, and `advice`.
void requireSameTrainingData(const std::filesystem::path& model, const LoadedData& data,
                             std::string_view advice);
/// As above, and those of a test set, for a training that resumes the file.
void requireSameData(const std::filesystem::path& file, const LoadedData& data);

/// Whether examples to test with are all those that a model was trained with, if its file says what they
/// held.
bool isTrainingData(const std::filesystem::path& model, const ExampleContents& tested);

/// `PreparedRun::warnings`. @param prepared  with its data.
std::vector<std::string> dataWarnings(const PreparedRun& prepared);

}  // namespace muster::detail
