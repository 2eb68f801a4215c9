#include "examples/mnist_convnet/results.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "examples/muster/run_of.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_fields.h"
#include "muster/parallel/nodes/node_link.h"

namespace example {
namespace {

using namespace muster;

std::int64_t peakMemoryBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// The same training as a run file; for a resumed training, the whole of it.
program::RunFile runOf(const Options& options, const DataSets& data, const ParallelWrapper& wrapper,
                       const MultiLayerConfiguration& network) {
  auto run = program::runOf(options, options.data, data, wrapper);
  run.data.batch = options.batch;
  run.data.seed = options.seed;
  run.network = network.toJson();
  run.training.epochs = options.epochs;
  run.training.model = options.model.string();
  auto& rule = run.training.strategyOptions;
  if (!options.averageUpdaters) rule += rule.empty() ? "updaterState=keep" : ",updaterState=keep";
  run.listeners.progress = !options.quiet;
  run.listeners.testEvery = options.testEvery;
  if (!options.checkpointDirectory.empty())
    run.listeners.checkpoints = program::RunCheckpoints{.directory = options.checkpointDirectory.string(),
                                                        .everyEpochs = options.checkpointEvery,
                                                        .everyIterations = options.checkpointIterations,
                                                        .everyMinutes = options.checkpointMinutes,
                                                        .keepLast = options.keep};
  return run;
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
  results.record.write(json);
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
  if (results.epochs.empty() && !results.interrupted) return text;  // a resumed training was already finished
  const auto epochs = plural(results.epochs.size(), "epoch");
  const auto what = results.interrupted ? fmt::format("interrupted after {},", epochs) : epochs + " in";
  return text +
         fmt::format("\ntraining: {} {:.1f} s, {}", what, results.training.seconds, results.training.line());
}

void writeResults(const Results& results, const Options& options, const DataSets& data,
                  const ParallelWrapper& wrapper, const MultiLayerConfiguration& network) {
  JsonWriter json;
  json.put("program", "mnist_convnet");
  const auto run = runOf(options, data, wrapper, network);
  json.group("configuration", [&](JsonWriter& inside) { run.write(inside); });
  json.put("dataFrom", data.origin);
  json.put("trainingExamples", *data.train->examples());
  json.put("testExamples", *data.test->examples());
  json.put("plan", wrapper.plan());
  json.put("resumedFrom", options.resume.string());
  json.put("interrupted", results.interrupted);
  json.put("epochsFinished", results.epochsFinished);
  json.put("testAccuracy", results.test.accuracy());
  json.put("testLoss", results.test.loss());
  json.put("f1", results.test.f1());
  putTraining(json, results);
  json.put("seconds", results.training.seconds);
  json.put("secondsInAll", results.secondsInAll);
  json.put("merges", results.merged.merges);
  json.put("mergedBytes", results.merged.bytes);
  if (const auto* const link = options.nodes.link()) json.put("bytesSent", link->bytesSent());
  json.put("peakMemoryBytes", peakMemoryBytes());
  writeFileAtomically(options.json, json.text());
}

}  // namespace example
