#include "muster/core/nn/training_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/model.h"

namespace muster {
namespace {

/// The largest counter accepted: larger than in any training, and sums of such numbers do not overflow.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

constexpr std::string_view kPosition = "position", kScores = "scores", kFingerprint = "fingerprint";

/// Indices of the numbers that precede EpochPosition::trainedLater.
enum PositionField { NextBatch, Examples, DataExamples, BatchSize, kPositionFields };

/// A hash of the model's state, to detect later changes. The training waits for it, so it must be fast: eight
/// lanes take every eighth word, because one chain of multiplications would be slower than memory.
std::int64_t fingerprint(Model& model) {
  constexpr std::size_t kLanes = 8, kWord = sizeof(std::uint64_t);
  const auto mix = [](std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  };
  std::array<std::uint64_t, kLanes> lanes;
  for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = mix(0xcbf29ce484222325u, l);
  model.context().synchronize();
  for (const StateBlock* block : model.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    const bool here = block->values.device().isCpu();
    const Tensor values = here ? block->values : copyTo(block->values, Device::cpu());
    const auto* bytes = static_cast<const std::byte*>(values.raw());
    const auto take = [&](std::size_t count) {
      std::array<std::uint64_t, kLanes> words{};
      std::memcpy(words.data(), bytes, count);
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = mix(lanes[l], words[l]);
      bytes += count;
    };
    for (std::size_t left = values.bytes() / (kLanes * kWord); left > 0; --left) take(kLanes * kWord);
    take(values.bytes() % (kLanes * kWord));
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes) hash = mix(hash, lane);
  return static_cast<std::int64_t>(hash);
}

std::array<std::int64_t, 2> sizesOf(const DataSetIterator& data) {
  return {data.examples().value_or(-1), data.batchSize().value_or(-1)};
}

EpochPosition readPosition(const TrainingState& state) {
  const auto numbers = numbersIn<std::int64_t>(state, kPosition, kPositionFields);
  const auto scores = numbersIn<double>(state, kScores, 3);
  EpochPosition position{.nextBatch = numbers[NextBatch],
                         .trainedLater = {numbers.begin() + kPositionFields, numbers.end()},
                         .examples = numbers[Examples],
                         .scoreSum = scores[0],
                         .weight = scores[1],
                         .score = scores[2]};
  const auto requireCount = [](std::int64_t number, std::string_view of) {
    requireSaved(number >= 0 && number < kMostCounted,
                 "training state: \"{}\" has {} {}, which is impossible", kPosition, number, of);
  };
  requireCount(position.nextBatch, "trained batches");
  requireCount(position.examples, "trained examples");
  std::int64_t before = position.nextBatch;
  for (const auto batch : position.trainedLater) {
    requireSaved(batch > before && batch < kMostCounted,
                 "training state: \"{}\" lists batch {} after batch {}, which is impossible", kPosition,
                 batch, before);
    before = batch;
  }
  requireSaved(position.weight >= 0 && std::ranges::all_of(scores, [](double s) { return std::isfinite(s); }),
               "training state: \"{}\" has a sum {}, a weight {} and a score {}, which is impossible",
               kScores, scores[0], scores[1], scores[2]);
  return position;
}

}  // namespace

const Tensor* findValues(const TrainingState& state, std::string_view name) {
  const auto found = std::ranges::find(state, name, &NamedValues::name);
  return found == state.end() ? nullptr : &found->values;
}

void putValues(TrainingState& state, std::string_view name, const Tensor& values) {
  const auto found = std::ranges::find(state, name, &NamedValues::name);
  if (found != state.end())
    found->values = values;
  else
    state.push_back({std::string(name), values});
}

void eraseValues(TrainingState& state, std::string_view prefix) {
  std::erase_if(state, [&](const NamedValues& one) { return one.name.starts_with(prefix); });
}

std::filesystem::path resumedFile(Model& model) {
  const bool any = !model.trainingState().empty() || !model.strategyState().empty();
  return any ? model.loadedFrom() : std::filesystem::path();
}

template <typename T>
Tensor numbersAs(std::span<const T> numbers) {
  Tensor values = Tensor::empty({static_cast<std::int64_t>(numbers.size())}, kDTypeOf<T>);
  std::ranges::copy(numbers, values.data<T>());
  return values;
}
template Tensor numbersAs(std::span<const std::int64_t>);
template Tensor numbersAs(std::span<const double>);

template <typename T>
std::span<const T> numbersIn(const TrainingState& state, std::string_view name, std::int64_t least) {
  const Tensor* const values = findValues(state, name);
  requireSaved(values != nullptr && values->dtype() == kDTypeOf<T> && values->elements() >= least,
               "training state: \"{}\" is {}, which is impossible", name,
               values ? values->toString() : std::string("missing"));
  return {values->data<T>(), static_cast<std::size_t>(values->elements())};
}
template std::span<const std::int64_t> numbersIn(const TrainingState&, std::string_view, std::int64_t);
template std::span<const double> numbersIn(const TrainingState&, std::string_view, std::int64_t);

bool EpochPosition::isTrained(std::int64_t batch) const {
  return batch < nextBatch || std::ranges::binary_search(trainedLater, batch);
}

std::int64_t EpochPosition::untrained(std::int64_t i) const {
  std::int64_t batch = nextBatch + i;
  for (const auto later : trainedLater) batch += later <= batch ? 1 : 0;
  return batch;
}

EpochPosition EpochPosition::after(std::span<const std::int64_t> counts) const {
  const auto workers = static_cast<std::int64_t>(counts.size());
  // The first untrained batch, and one past the last trained batch; both index `untrained`.
  std::int64_t first = counts[0] * workers, end = 0;
  for (std::int64_t w = 0; w < workers; ++w) {
    const std::int64_t count = counts[static_cast<std::size_t>(w)];
    first = std::min(first, count * workers + w);
    if (count > 0) end = std::max(end, (count - 1) * workers + w + 1);
  }
  EpochPosition next = *this;
  next.nextBatch = untrained(first);
  for (std::int64_t i = first; i < end; ++i)
    if (i / workers < counts[static_cast<std::size_t>(i % workers)])
      next.trainedLater.push_back(untrained(i));
  std::erase_if(next.trainedLater, [&](std::int64_t batch) { return batch < next.nextBatch; });
  std::ranges::sort(next.trainedLater);
  return next;
}

std::int64_t skipTrained(DataSetIterator& data, const EpochPosition& position) {
  if (position.nextBatch == 0) return 0;
  const std::int64_t skipped = data.skip(position.nextBatch);
  // Batches in trainedLater hold some of the trained examples.
  require(skipped == position.examples || (!position.trainedLater.empty() && skipped < position.examples),
          "resume: before batch {} the epoch has {}, and {} were trained: these are other data",
          position.nextBatch + 1, plural(skipped, "example"), position.examples);
  return skipped;
}

TrainingState positionState(Model& model, const DataSetIterator& data, const EpochPosition& position) {
  const auto [examples, batchSize] = sizesOf(data);
  std::vector<std::int64_t> numbers{position.nextBatch, position.examples, examples, batchSize};
  numbers.insert(numbers.end(), position.trainedLater.begin(), position.trainedLater.end());
  const std::array scores{position.scoreSum, position.weight, position.score};
  const std::array print{fingerprint(model)};
  return {{std::string(kPosition), numbersAs<std::int64_t>(numbers)},
          {std::string(kScores), numbersAs<double>(scores)},
          {std::string(kFingerprint), numbersAs<std::int64_t>(print)}};
}

std::optional<EpochPosition> positionIn(const TrainingState& state) {
  if (state.empty()) return {};
  return readPosition(state);
}

std::optional<EpochPosition> resumePosition(Model& model, const DataSetIterator& data) {
  TrainingState& state = model.trainingState();
  if (state.empty()) return {};
  const auto discard = [&](std::string_view why) {
    logInfo(
        "the model's checkpoint is not resumed: {}; workers start from the model, at the start of an epoch",
        why);
    state.clear();
    return std::nullopt;
  };
  EpochPosition position = readPosition(state);
  if (numbersIn<std::int64_t>(state, kFingerprint, 1)[0] != fingerprint(model))
    return discard("the model was changed since");
  const auto numbers = numbersIn<std::int64_t>(state, kPosition, kPositionFields);
  const bool within = position.nextBatch > 0 || !position.trainedLater.empty();
  if (within && sizesOf(data) != std::array{numbers[DataExamples], numbers[BatchSize]})
    return discard("it is of the middle of an epoch of another data set");
  return position;
}

}  // namespace muster
