#include "muster/parallel/inference/parallel_inference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "muster/core/base/owner_process.h"
#include "muster/core/base/plural.h"
#include "muster/core/device/math_mode.h"
#include "muster/core/nn/known_features.h"
#include "muster/parallel/inference/call_queue.h"
#include "muster/parallel/inference/free_replicas.h"
#include "muster/parallel/inference/inference_worker.h"
#include "muster/parallel/inference/joined_batch.h"
#include "muster/parallel/inference/model_versions.h"

namespace muster {
namespace {

constexpr int kMostWorkers = 1024, kMostThreads = 1024;
constexpr std::int64_t kMostExamples = 65'536;  // in a joined batch

/// @return the number of examples. @throws InvalidArgument for a batch that no model could read.
std::int64_t requireReadable(const Batch& batch) {
  require(!batch.features.empty(), "output: a batch without features");
  const auto examples = batch.examples();
  require(examples > 0, "output: a batch without examples");
  for (const auto* tensors : {&batch.features, &batch.masks})
    for (const auto& [name, value, source] : *tensors) {
      require(source == nullptr, "output: \"{}\" names rows of a data set; gather them first", name);
      require(value.defined() && value.device().isCpu() && value.layout() == Layout::RowMajor,
              "output: \"{}\" is not a row-major tensor on the CPU", name);
      if (value.shape().empty() ||
          value.shape()[0] != examples)  // `require` would format the text in every call
        throw InvalidArgument(fmt::format("output: \"{}\" is {}, but the batch has {}", name,
                                          value.toString(), plural(examples, "example")));
    }
  return examples;
}

InferenceOptions resolved(InferenceOptions options, const Model& model) {
  options.validate();
  if (options.mode == InferenceMode::Batched && !options.example)
    if (const auto* const known = dynamic_cast<const KnownFeatures*>(&model))
      options.example = known->exampleFeatures();
  return options;
}

}  // namespace

void InferenceOptions::validate() const {
  require(workers >= 1 && workers <= kMostWorkers, "workers: at least 1 and at most {} are possible, got {}",
          kMostWorkers, workers);
  require(batchLimit >= 1 && batchLimit <= kMostExamples,
          "batchLimit: at least 1 and at most {} are possible, got {}", kMostExamples, batchLimit);
  require(batchTime >= batchTime.zero(), "batchTime cannot be negative, got {} microseconds",
          batchTime.count());
  require(batchTime <= std::chrono::hours(1), "batchTime: at most an hour is possible, got {} microseconds",
          batchTime.count());
  require(mode == InferenceMode::Batched || batchTime == batchTime.zero(),
          "batchTime: in mode {} no calls are joined", nameOf(mode));
  require(queueLimit >= 1, "queueLimit: at least 1 is needed, got {}", queueLimit);
  require(!devices.empty(), "devices: at least one is needed");
  require(threadsPerWorker >= 1 && threadsPerWorker <= kMostThreads,
          "threadsPerWorker: at least 1 and at most {} are possible, got {}", kMostThreads, threadsPerWorker);
  for (const auto& device : devices) requireMathMode(device, mathMode);
  if (example && !example->features.empty()) requireReadable(*example);
}

struct ParallelInference::Impl {
  Impl(Model& model, InferenceOptions given)
      : options(resolved(std::move(given), model)),
        versions(model),
        placements_(placeAndClaim(options.workers, options.devices, options.threadsPerWorker,
                                  options.pinThreads && options.mode != InferenceMode::InPlace,
                                  options.mathMode)),
        queue_(std::make_shared<CallQueue>(options)),
        replicas_(options) {
    if (options.mode == InferenceMode::InPlace)
      makeFreeReplicas();
    else
      makeWorkers();
  }
  ~Impl() { shutdown(); }

  Prediction output(const Batch& batch, Clock::time_point deadline) {
    const auto examples = requireReadable(batch);
    if (deadline <= Clock::now()) throw DeadlineExceeded("output: the deadline passed before the call");
    if (options.mode == InferenceMode::InPlace) {
      FreeReplicas::Loan loan(replicas_, deadline);
      auto& [context, model, version] = loan.replica();
      versions.bring(*model, version);
      Prediction prediction;
      model->output(batch, prediction.output);
      prediction.modelVersion = version;
      return prediction;
    }
    InferenceCall call{.batch = batch, .examples = examples, .deadline = deadline};
    const auto queue = queue_;  // this object may be destroyed once the call is answered
    queue->answer(call);
    return {.output = std::move(call.output), .modelVersion = call.modelVersion};
  }
  void shutdown() {
    const Lock lock(shuttingDown_);
    queue_->close();
    serving_.wait();
    replicas_.close();
  }
  std::int64_t waitingCalls() const { return queue_->waiting() + replicas_.waiting(); }
  std::string plan() const {
    std::string joining;
    if (options.mode == InferenceMode::Batched)
      joining = fmt::format(
          "; calls are joined to batches of {} examples, so the last places may differ from those of "
          "output()",
          fmt::join(paddedSizes(options.batchLimit), ", "));
    return fmt::format("{}, {}{}", describe(placements_, options.threadsPerWorker), nameOf(options.mode),
                       joining);
  }

  const InferenceOptions options;
  const OwnerProcess owner;
  ModelVersions versions;

 private:
  void makeWorkers() {
    std::vector<ReplicaThread*> threads;
    for (int i = 0; i < options.workers; ++i) {
      workers_.push_back(
          std::make_unique<InferenceWorker>(i, placements_.workers[i], options, *queue_, versions));
      threads.push_back(&workers_.back()->thread());
    }
    const auto model = versions.model();
    runOnAll(threads, "could not be made",
             [&](ReplicaThread& thread) { workers_[thread.index()]->prepare(*model, options); });
    for (auto& worker : workers_)
      worker->thread().addTo(serving_, Activity::Kind::Computing, [&worker = *worker] { worker.serve(); });
    serving_.start();
  }
  void makeFreeReplicas() {
    for (int i = 0; i < options.workers; ++i) try {
        auto replica = std::make_unique<FreeReplica>(*versions.model(), placements_.workers[i],
                                                     options.threadsPerWorker);
        versions.bring(*replica->model, replica->version);
        compileFor(options, *replica->model);
        replicas_.add(std::move(replica));
      } catch (const std::exception& error) {
        throw TrainingError(fmt::format("replica {} could not be made: {}", i, error.what()), i,
                            std::current_exception());
      }
  }

  const Placements placements_;
  const std::shared_ptr<CallQueue> queue_;  // shared with callers in `output`
  FreeReplicas replicas_;
  std::vector<std::unique_ptr<InferenceWorker>> workers_;
  Mutex shuttingDown_;
  Tasks serving_;  // last: wait for the threads before the members above are destroyed
};

ParallelInference::ParallelInference(Model& model, InferenceOptions options)
    : impl_(std::make_unique<Impl>(model, std::move(options))) {}

ParallelInference::~ParallelInference() {
  abandonInChild(impl_);
}
ParallelInference::ParallelInference(ParallelInference&&) noexcept = default;
ParallelInference& ParallelInference::operator=(ParallelInference&& other) noexcept {
  abandonInChild(impl_);
  impl_ = std::move(other.impl_);
  return *this;
}

Prediction ParallelInference::output(const Batch& batch, Clock::time_point deadline) {
  return usable(impl_, "output").output(batch, deadline);
}

Prediction ParallelInference::output(const Tensor& features, Clock::time_point deadline) {
  Batch batch;
  batch.features.push_back({"features", features});
  return output(batch, deadline);
}

std::int64_t ParallelInference::updateModel(Model& model) {
  return usable(impl_, "updateModel").versions.publish(model);
}

std::int64_t ParallelInference::modelVersion() const {
  return usable(impl_, "modelVersion").versions.latest();
}

std::int64_t ParallelInference::waitingCalls() const {
  return usable(impl_, "waitingCalls").waitingCalls();
}

void ParallelInference::shutdown() {
  usable(impl_, "shutdown").shutdown();
}

std::string ParallelInference::plan() const {
  return usable(impl_, "plan").plan();
}

}  // namespace muster
