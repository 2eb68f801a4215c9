#include "examples/mnist_convnet/results.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_fields.h"

namespace example {
namespace {

using namespace muster;

std::int64_t peakMemoryBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void putStrategy(JsonWriter& json, const Options& options, AnyStrategy strategy) {
  if (options.strategy.empty()) {
    json.put("mode", nameOf(options.mode));
    json.put("averagingFrequency", options.averagingFrequency);
    json.put("averageUpdaters", options.averageUpdaters);
  }
  json.put("strategy", options.strategy.empty() ? nameOf(options.mode) : options.strategy);
  json.group("strategyOptions", [&](JsonWriter& inside) { strategy.fields(inside); });
}

void putConfiguration(JsonWriter& json, const Options& options, const DataSets& data,
                      const ParallelWrapper& wrapper, const MultiLayerConfiguration& network) {
  json.put("data", data.name);
  json.put("dataFrom", data.origin);
  json.put("trainingExamples", *data.train->examples());
  json.put("testExamples", *data.test->examples());
  json.put("workers", options.workers);
  putStrategy(json, options, wrapper.options().strategy);
  json.put("batch", options.batch);
  json.put("epochs", options.epochs);
  json.put("threadsPerWorker", options.threadsPerWorker);
  json.put("pinThreads", options.pinThreads);
  json.put("prefetch", options.prefetch);
  json.put("placement", data.placement == MemoryPlacement::Device ? "device" : "host");
  json.put("seed", options.seed);
  json.put("plan", wrapper.plan());
  json.put("model", options.model.string());
  json.put("resumedFrom", options.resume.string());
  json.putJson("network", network.toJson());
}

void putWorker(JsonWriter& json, const PerformanceReport& report, const WorkerTimes& worker) {
  const auto shares = PerformanceReport::shares(worker);
  json.put("worker", worker.worker);
  json.put("device", worker.device.toString());
  json.put("batches", worker.batches);
  json.put("examples", worker.examples);
  json.put("samplesPerSecond", report.samplesPerSecond(worker));
  json.put("computeShare", shares.computing);
  json.put("mergeShare", shares.merging);
  json.put("dataWaitShare", shares.waitingForData);
  json.put("barrierWaitShare", shares.waitingForWorkers);
}

void putTraining(JsonWriter& json, const Results& results) {
  std::vector<double> scores;
  for (const auto& epoch : results.epochs) scores.push_back(epoch.score);
  json.put("firstEpoch", results.epochs.empty() ? 0 : results.epochs.front().epoch + 1);
  json.put("scoreByEpoch", scores);
  if (!results.tests.empty())
    json.list("testAccuracyByEpoch", results.tests.size(), [&](std::size_t i, JsonWriter& test) {
      test.put("epoch", results.tests[i].epoch);
      test.put("testAccuracy", results.tests[i].evaluation.accuracy());
    });
  const auto& report = results.training;
  const auto shares = report.shares();
  json.put("samplesPerSecond", report.samplesPerSecond());
  json.put("mergeShare", shares.merging);
  json.put("dataWaitShare", shares.waitingForData);
  json.put("barrierWaitShare", shares.waitingForWorkers);
  json.list("workers", report.workers.size(),
            [&](std::size_t i, JsonWriter& worker) { putWorker(worker, report, report.workers[i]); });
}

}  // namespace

std::string describe(const Results& results) {
  const auto& matrix = results.test;
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < matrix.classes(); ++c) right += matrix.count(c, c);
  auto text = fmt::format("test: accuracy {:.4f} ({} of {}), F1 {:.4f}", matrix.accuracy(), right,
                          matrix.examples(), matrix.f1());
  if (results.epochs.empty() && !results.interrupted) return text;  // there was nothing to train
  const auto epochs = fmt::format("{} epoch{}", results.epochs.size(), results.epochs.size() == 1 ? "" : "s");
  const auto what = results.interrupted ? fmt::format("interrupted after {},", epochs) : epochs + " in";
  return text +
         fmt::format("\ntraining: {} {:.1f} s, {}", what, results.training.seconds, results.training.line());
}

void writeResults(const Results& results, const Options& options, const DataSets& data,
                  const ParallelWrapper& wrapper, const MultiLayerConfiguration& network) {
  JsonWriter json;
  json.put("program", "mnist_convnet");
  json.group("configuration",
             [&](JsonWriter& inside) { putConfiguration(inside, options, data, wrapper, network); });
  json.put("interrupted", results.interrupted);
  json.put("epochsFinished", results.epochsFinished);
  json.put("testAccuracy", results.test.accuracy());
  json.put("testLoss", results.test.loss());
  json.put("f1", results.test.f1());
  putTraining(json, results);
  json.put("seconds", results.training.seconds);
  json.put("secondsInAll", results.secondsInAll);
  json.put("peakMemoryBytes", peakMemoryBytes());
  writeFileAtomically(options.json, json.text());
}

}  // namespace example
