#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/nn/network.h"

namespace example {

/// Trains, then saves. If `train` fails (for example in an iterator, or because a checkpoint cannot be
/// written), saves the network trained so far, then rethrows the exception. If the training diverged
/// (muster::NonFiniteScore), nothing is saved, and the file of an earlier training does not change.
/// @param setting  the learning rate as given by the user, "--lr 0.1", for the message of a diverged
///         training.
void trainAndSave(const std::function<void()>& train, const std::function<void(bool failed)>& save,
                  const std::string& setting);

/// The bytes of a model's state in a file.
std::int64_t savedBytes(muster::Model& model);

/// Before a training: throws if the disk of a file, or of a directory of files, has less room. Does nothing
/// for an empty path. @throws muster::FileError.
void requireDiskRoom(const std::filesystem::path& path, std::int64_t bytes);

/// Calls `write(path)`. If the file cannot be written, for example on a full disk, tries a file in other
/// directories: the one for temporary files (TMPDIR), the home directory, /var/tmp, /tmp and, in memory,
/// /dev/shm. Throws an error that names the file written there.
/// @throws muster::Error.
void writeHereOrElsewhere(const std::filesystem::path& path,
                          const std::function<void(const std::filesystem::path&)>& write);

/// Computes outputs for the first batch of `data`: a diverged network gives non-finite outputs, even if all
/// its parameters are finite but too large.
/// @throws muster::NonFiniteScore.
void requireFiniteOutputs(muster::Network& network, muster::DataSetIterator& data);

using Scores = std::span<const muster::CollectScoresListener::Score>;

/// The scores up to a model's iteration: early stopping may have restored an earlier state.
/// @param scores  in order.
Scores scoresUntil(Scores scores, std::int64_t iteration);

/// A diverged training may end with finite but too large scores. Throws if the last score is above twice the
/// larger of the first round's score and the score of a constant prediction.
/// @param scores  of all rounds in order. The check averages the last rounds that together have 512 examples:
///         in a small round, a single mistake gives a high score.
/// @param classes  number of classes; a constant prediction has the cross-entropy log(classes).
/// @throws muster::NonFiniteScore.
void requireNoDivergence(Scores scores, std::int64_t classes);

/// The mean square of a data set's labels, which is the score of the constant prediction 0.
struct LabelScale {
  double meanSquare = 0;
  std::int64_t examples = 0;
};
/// Reads all of `data`, whose labels are float32.
LabelScale labelScaleOf(muster::DataSetIterator& data);

/// Makes this check for a regression: it averages the scores of the last epoch. Does nothing if fewer
/// examples were trained than `labels` has: a few labels may be much larger than the others.
/// @param labels  of the data to train with.
void requireNoDivergence(Scores scores, const LabelScale& labels);

}  // namespace example
