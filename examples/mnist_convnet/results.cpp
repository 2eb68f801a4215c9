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

void putConfiguration(JsonWriter& json, const Recipe& recipe, const DataSets& data, const std::string& plan,
                      const MultiLayerConfiguration& network) {
  json.put("data", data.name);
  json.put("dataFrom", data.origin);
  json.put("trainingExamples", *data.train->examples());
  json.put("testExamples", *data.test->examples());
  json.put("plan", plan);
  json.group("options", [&](JsonWriter& options) {
    for (const auto& [option, value] : recipe) options.put(option, value);
  });
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
  json.put("firstEpoch", results.epochs.empty() ? 0 : results.epochs.front().epoch);
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
  if (!results.epochs.empty())
    text +=
        fmt::format("\ntraining: {} epoch{} in {:.1f} s, {}", results.epochs.size(),
                    results.epochs.size() == 1 ? "" : "s", results.training.seconds, results.training.line());
  return text;
}

void writeResults(const std::filesystem::path& path, const Results& results, const Recipe& recipe,
                  const DataSets& data, const std::string& plan, const MultiLayerConfiguration& network,
                  const std::filesystem::path& model) {
  JsonWriter json;
  json.put("program", "mnist_convnet");
  json.group("configuration",
             [&](JsonWriter& inside) { putConfiguration(inside, recipe, data, plan, network); });
  json.put("testAccuracy", results.test.accuracy());
  json.put("f1", results.test.f1());
  putTraining(json, results);
  json.put("seconds", results.training.seconds);
  json.put("secondsInAll", results.secondsInAll);
  json.put("peakMemoryBytes", peakMemoryBytes());
  json.put("model", model.string());
  writeFileAtomically(path, json.text());
}

}  // namespace example
