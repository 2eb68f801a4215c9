#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

class DataSetIterator;
class Model;

/// Saved state of a training that cannot be used: its numbers are impossible, as of a damaged checkpoint, or
/// it does not fit the model. Errors about options stay InvalidArgument.
class SavedStateError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// Throws SavedStateError with a formatted sentence unless `condition` holds.
template <typename... Args>
void requireSaved(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw SavedStateError(fmt::format(text, std::forward<Args>(args)...));
}

/// Values under a name, on the CPU.
struct NamedValues {
  std::string name;
  Tensor values;
};

/// What a training needs besides the model's own state to continue as if it had never ended: its position in
/// the epoch and, for a ParallelWrapper, the rounds and the state that differs between replicas. Tensors by
/// name, so that a checkpoint is a model file with more tensors.
using TrainingState = std::vector<NamedValues>;

/// The values of this name; null if there are none.
const Tensor* findValues(const TrainingState& state, std::string_view name);

/// Sets the values of this name: the state shares the memory of `values`. Allocates only if the name is new.
void putValues(TrainingState& state, std::string_view name, const Tensor& values);
/// Removes the values whose names begin so.
void eraseValues(TrainingState& state, std::string_view prefix);

/// Values [N] of these numbers, int64 or double.
template <typename T>
Tensor numbersAs(std::span<const T> numbers);
/// @throws SavedStateError unless the state has at least `least` numbers of this name and type.
template <typename T>
std::span<const T> numbersIn(const TrainingState& state, std::string_view name, std::int64_t least);

/// The file that a `fit` of this model resumes: the one that it was loaded from, if it holds state of a
/// training; else empty.
std::filesystem::path resumedFile(Model& model);
/// Calls a function that reads such state, which may be damaged or of another rule.
/// @throws FileError naming the file, if there is one, in place of a SavedStateError. Passes on other errors,
///         as of options.
template <typename Call>
decltype(auto) namingResumedFile(Model& model, Call call) {
  const auto file = resumedFile(model);
  try {
    return call();
  } catch (const SavedStateError& error) {
    if (file.empty()) throw;
    throw FileError(file, fmt::format("cannot be resumed: {}", error.what()));
  }
}

/// Which batches of the epoch in progress are trained, and how they scored. A value.
struct EpochPosition {
  std::int64_t nextBatch = 0;  ///< the first that is not trained
  /// Later batches that are, ascending. None, unless a stop has ended workers at different batches.
  std::vector<std::int64_t> trainedLater = {};
  std::int64_t examples = 0;  ///< trained in the epoch
  double scoreSum = 0;        ///< over these batches, each score times its weight
  double weight = 0;          ///< the sum of these weights
  double score = 0;           ///< of the last merge

  bool isTrained(std::int64_t batch) const;
  /// The number of the i-th batch that is not trained, from 0.
  std::int64_t untrained(std::int64_t i) const;
  /// The batches that are trained once worker w of W has trained `counts[w]` more: the i-th batch that is not
  /// trained here goes to worker i mod W. The other members are those of this position.
  EpochPosition after(std::span<const std::int64_t> counts) const;
};

/// Makes an iterator that was just reset skip the trained batches. @return the examples that it skipped.
/// @throws InvalidArgument if these are not as many as were trained.
std::int64_t skipTrained(DataSetIterator& data, const EpochPosition& position);

/// A training state with the position in it, for the model as it is. One pass over the model's state.
TrainingState positionState(Model& model, const DataSetIterator& data, const EpochPosition& position);

/// The position in a training state, if there is one. @throws SavedStateError for impossible numbers.
std::optional<EpochPosition> positionIn(const TrainingState& state);

/// Where a `fit` of this data begins by the model's training state.
/// @return nothing if the model has none. Nothing, too, and a log line, if the model was changed since,
///         or the state is of the middle of an epoch of another data set: the training state is cleared
///         then.
/// @throws SavedStateError for a state that holds impossible numbers.
std::optional<EpochPosition> resumePosition(Model& model, const DataSetIterator& data);

}  // namespace muster
