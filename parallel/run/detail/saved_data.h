#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/io/model_file.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/run_file.h"

// What a model's file says of the run and the data that it was trained with.

namespace muster::detail {

/// The run and what its data hold, as notes of each model file that `muster train` writes.
ModelNotes notesOf(const RunFile& run, const LoadedData& data);

/// Whether a model file says by checksums what the data held that it was trained with. @throws FileError.
bool hasChecksums(const std::filesystem::path& model);

/// The run that a model file has; nothing if `muster train` did not save it. @throws FileError.
std::optional<RunFile> runIn(const std::filesystem::path& model);

/// Chooses which data `mnistOrGenerated` is: those that a model was trained with, as its file says. Does
/// nothing for other data or another file.
void chooseData(RunFile& run, const std::filesystem::path& model);

/// Which option tests a model with examples that it has not learned, whatever its training held out, as in
/// "data.test=FILE tests with ...". @param part  as for chooseSplit.
std::string testAdvice(const DataSource& source, std::string_view part);

/// What chooseSplit has found.
struct ChosenSplit {
  /// Whether the training data are to be those of the model's run: not if an override asks for other numbers
  /// of examples that it was trained with.
  bool asTrained = true;
  std::string remark = {};  ///< which fields of this run said otherwise; "": none
};

/// Takes from the run that a model was trained by how its examples were divided: their numbers, and the seed
/// that draws them. Otherwise examples that it was trained with would be held out. Examples that were drawn
/// to test it are held out also if this run has a test set of its own. Does nothing for a model that
/// `muster train` did not save.
/// @param part  what is wanted of the data: train, validation, or test, if it is held out.
/// @param overrides  of `run`, as for RunFile::parse.
/// @throws FileError naming fields for which an override says otherwise, with both values, if `part` depends
///         on them; if `part` is held out now and was not for the training.
ChosenSplit chooseSplit(RunFile& run, const std::filesystem::path& model, std::string_view part,
                        std::span<const std::string> overrides = {});

/// Checks that the training data are those that a model was trained with, if its file says what they held.
/// @param part  what is wanted of them: of another file with other examples `train` is a warning alone.
/// @throws FileError with what differs, and `advice`.
void requireSameTrainingData(const std::filesystem::path& model, const DataSource& source,
                             const LoadedData& data, std::string_view part, std::string_view advice);
/// As above, for a training that resumes the file; warns of another test set, which no training reads.
void requireSameData(const std::filesystem::path& file, const DataSource& source, const LoadedData& data);

/// A warning that the test set of its own is, or may be, what a model was trained with; "" if nothing says
/// so. What the model's file says of its data decides, and without that the data of `source`.
std::string testRemark(const std::filesystem::path& model, const DataSource& source, const LoadedData& data);

/// What a model that a training begins with, or resumes, has learned before: DataContents::earlier. Nothing
/// if it begins with new weights. @throws FileError.
std::vector<EarlierTraining> earlierTrainings(const RunFile& run, const std::filesystem::path& resumed);

/// A warning that a model began with another one that has, or may have, learned examples that test it; "" if
/// nothing says so.
/// @param part  which examples are wanted: train, validation or test.
std::string earlierRemark(const std::filesystem::path& model, const DataSource& source,
                          const LoadedData& data, std::string_view part);

/// Why scores may say too little of new examples: `PreparedRun::warnings`.
std::vector<std::string> dataWarnings(const RunFile& run, const LoadedData& data);

}  // namespace muster::detail
