#include "muster/parallel/inference/inference_worker.h"

namespace muster {
namespace {

/// As JoinedBatch takes it.
std::int64_t limitOf(const InferenceOptions& options) {
  return options.mode == InferenceMode::Batched ? options.batchLimit : 0;
}

}  // namespace

void compileFor(const InferenceOptions& options, Model& model) {
  const Batch& example = options.example;
  if (example.features.empty()) return;
  const auto sizes =
      limitOf(options) > 0 ? paddedSizes(limitOf(options)) : std::vector<std::int64_t>{example.examples()};
  for (const auto size : sizes) {
    std::vector<JoinedBatch::Part> rows;
    for (std::int64_t i = 0; i < size; ++i) {
      const auto row = i % example.examples();
      rows.push_back({&example, row, row + 1});
    }
    JoinedBatch batch(0);
    batch.join(rows);
    batch.compute(model);
  }
}

InferenceWorker::InferenceWorker(int index, const Placement& placement, const InferenceOptions& options,
                                 CallQueue& queue, const ModelVersions& versions)
    : queue_(queue),
      versions_(versions),
      joined_(limitOf(options)),
      alone_(limitOf(options)),
      thread_("inference worker", index, placement, options.threadsPerWorker) {
  calls_.reserve(static_cast<std::size_t>(options.batchLimit));
  outcomes_.reserve(calls_.capacity());
}

void InferenceWorker::prepare(const Model& model, const InferenceOptions& options) {
  thread_.makeReplica(model);
  versions_.bring(thread_.replica(), version_);
  compileFor(options, thread_.replica());
}

void InferenceWorker::serve() {
  while (queue_.take(calls_)) answer();
}

void InferenceWorker::answer() {
  outcomes_.assign(calls_.size(), {});
  try {
    versions_.bring(thread_.replica(), version_);
    join();
    queue_.haveRead(calls_);
    compute();
  } catch (...) {
    for (auto& outcome : outcomes_) outcome.failure = std::current_exception();
  }
  queue_.hold(calls_);
  for (std::size_t i = 0; i < calls_.size(); ++i)
    if (calls_[i]) {
      calls_[i]->output = std::move(outcomes_[i].output);
      calls_[i]->failure = std::move(outcomes_[i].failure);
      calls_[i]->modelVersion = version_;
    }
  queue_.release(calls_);
}

void InferenceWorker::join() {
  parts_.clear();
  begins_.clear();
  std::int64_t begin = 0;
  for (const auto* call : calls_) {
    parts_.push_back({&call->batch, 0, call->examples});
    begins_.push_back(begin);
    begin += call->examples;
  }
  begins_.push_back(begin);
  joined_.join(parts_);
}

void InferenceWorker::compute() try {
  joined_.compute(thread_.replica());
  for (std::size_t i = 0; i < calls_.size(); ++i)
    outcomes_[i].output = joined_.output(begins_[i], begins_[i + 1]);
} catch (...) {
  if (calls_.size() == 1) throw;
  // What is wrong with one call's features is no fault of the others.
  for (std::size_t i = 0; i < calls_.size(); ++i) computeAlone(i);
}

void InferenceWorker::computeAlone(std::size_t i) try {
  const JoinedBatch::Part part{&joined_.batch(), begins_[i], begins_[i + 1]};
  alone_.join({&part, 1});
  alone_.compute(thread_.replica());
  outcomes_[i] = {.output = alone_.output(0, begins_[i + 1] - begins_[i]), .failure = {}};
} catch (...) {
  outcomes_[i] = {.output = {}, .failure = std::current_exception()};
}

}  // namespace muster
