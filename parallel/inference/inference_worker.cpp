#include "muster/parallel/inference/inference_worker.h"

namespace muster {
namespace {

/// The limit for JoinedBatch.
std::int64_t limitOf(const InferenceOptions& options) {
  return options.mode == InferenceMode::Batched ? options.batchLimit : 0;
}

}  // namespace

void compileFor(const InferenceOptions& options, Model& model) {
  if (!options.example || options.example->features.empty()) return;
  const Batch& example = *options.example;
  auto sizes = paddedSizes(limitOf(options));
  if (sizes.empty()) sizes = {example.examples()};
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
      joined_(limitOf(options), placement.device.isCpu()),
      alone_(limitOf(options), placement.device.isCpu()),
      thread_("inference worker", index, placement, options.threadsPerWorker) {
  outcomes_.reserve(static_cast<std::size_t>(options.batchLimit));
}

void InferenceWorker::prepare(const Model& model, const InferenceOptions& options) {
  thread_.makeReplica(model);
  versions_.bring(thread_.replica(), version_);
  compileFor(options, thread_.replica());
}

void InferenceWorker::serve() {
  while ((group_ = queue_.take())) {
    answer();
    group_.reset();
  }
}

void InferenceWorker::answer() {
  auto& calls = group_->calls;
  outcomes_.assign(calls.size(), {});
  try {
    versions_.bring(thread_.replica(), version_);
    join();
    queue_.setState(*group_, CallGroup::State::Read);
    compute();
  } catch (...) {
    for (auto& outcome : outcomes_) outcome.failure = std::current_exception();
  }
  queue_.setState(*group_, CallGroup::State::Taken);
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (calls[i]) {
      calls[i]->output = std::move(outcomes_[i].output);
      calls[i]->failure = std::move(outcomes_[i].failure);
      calls[i]->modelVersion = version_;
    }
  queue_.release(*group_);
}

void InferenceWorker::join() {
  parts_.clear();
  rows_.clear();
  std::int64_t begin = 0;
  for (const auto* call : group_->calls) {
    parts_.push_back({&call->batch, 0, call->examples});
    rows_.push_back({&joined_.batch(), begin, begin + call->examples});
    begin += call->examples;
  }
  joined_.join(parts_);
}

void InferenceWorker::compute() try {
  joined_.compute(thread_.replica());
  for (std::size_t i = 0; i < rows_.size(); ++i)
    outcomes_[i].output = joined_.output(rows_[i].begin, rows_[i].end);
} catch (...) {
  if (rows_.size() == 1) throw;
  // One call's features may be wrong: compute each call alone.
  for (std::size_t i = 0; i < rows_.size(); ++i) try {
      alone_.join({&rows_[i], 1});
      alone_.compute(thread_.replica());
      outcomes_[i] = {.output = alone_.output(0, rows_[i].end - rows_[i].begin), .failure = {}};
    } catch (...) {
      outcomes_[i] = {.output = {}, .failure = std::current_exception()};
    }
}

}  // namespace muster
