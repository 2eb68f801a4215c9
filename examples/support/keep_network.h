#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/nn/network.h"

namespace example {

/// Trains, then saves. Where `train` fails (a checkpoint or a plot that cannot be written, an iterator), what
/// was trained is saved nevertheless before that failure goes on. Not where the training diverged
/// (muster::NonFiniteScore): then nothing is saved, and the file of an earlier training stays as it is.
/// @param setting  the learning rate as the user gives it, "--lr 0.1", for the message of one that diverged.
void trainAndSave(const std::function<void()>& train, const std::function<void(bool failed)>& save,
                  const std::string& setting);

/// Calls `write(path)`. Where the file cannot be written, as on a disk that has become full, `write` is
/// called for a file in the directory for temporary files, and the error names that one.
/// @throws muster::Error.
void writeHereOrElsewhere(const std::filesystem::path& path,
                          const std::function<void(const std::filesystem::path&)>& write);

/// Asks the network about a first batch of `data`: a network that diverged answers with what is no number,
/// though all its parameters may be numbers, too large ones.
/// @throws muster::NonFiniteScore.
void requireFiniteOutputs(muster::Network& network, muster::DataSetIterator& data);

/// A training that diverged may end with numbers, too large ones. Refuses one whose score is far above that
/// of its first round, and above that of guessing: twice the larger of them.
/// @param scores  of all rounds in order. The last ones are taken together, as many as make 512 examples:
/// with
///                few in a round, a single mistake is a high score.
/// @param classes  which the network chooses from; guessing has the cross entropy log(classes).
/// @throws muster::NonFiniteScore.
void requireNoDivergence(const std::vector<muster::CollectScoresListener::Score>& scores,
                         std::int64_t classes);

}  // namespace example
