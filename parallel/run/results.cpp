#include "muster/parallel/run/results.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "muster/core/base/plural.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

std::int64_t peakMemoryBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void putScores(const AnyEvaluation& test, JsonWriter& json) {
  switch (test.task()) {
    case Task::Classification:
      json.put("testAccuracy", test.accuracy());
      json.put("testLoss", test.loss());
      json.put("f1", test.f1());
      return;
    case Task::Regression:
      json.put("testR2", test.regression().r2());
      json.put("testRmse", test.regression().rootMeanSquaredError());
      json.put("testMae", test.regression().meanAbsoluteError());
      json.put("testLoss", test.loss());
      return;
    case Task::Labels:
      json.put("testAccuracy", test.accuracy());
      json.put("testLoss", test.loss());
      json.put("f1", test.f1());
      if (const double auc = test.labels().auc(); std::isfinite(auc)) json.put("testAuc", auc);
      return;
  }
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

void putSpeed(JsonWriter& json, const PerformanceReport& report) {
  const auto shares = report.shares();
  json.put("samplesPerSecond", report.samplesPerSecond());
  json.put("mergeShare", shares.merging);
  json.put("dataWaitShare", shares.waitingForData);
  json.put("barrierWaitShare", shares.waitingForWorkers);
  json.list("workers", report.workers.size(),
            [&](std::size_t i, JsonWriter& worker) { putWorker(worker, report, report.workers[i]); });
  json.put("seconds", report.seconds);
}

}  // namespace

std::string costLine(const Results& results) {
  const auto& report = results.watchers.performance->report();
  const auto& record = *results.watchers.record;  // has all epochs, also after the best one was restored
  const auto finished = record.firstEpoch() == 0 ? 0 : record.firstEpoch() - 1 + std::ssize(record.scores());
  const auto epochs = plural(std::max<std::int64_t>(finished - results.epochsBefore, 0), "epoch");
  if (report.seconds == 0) return "";
  return fmt::format("training: {} {:.1f} s, {}\n",
                     results.interrupted ? fmt::format("interrupted after {},", epochs) : epochs + " in",
                     report.seconds, report.line());
}

void writeResults(const std::filesystem::path& path, const Results& results) {
  const auto& data = results.data;
  const auto& watchers = results.watchers;
  JsonWriter json;
  json.put("program", "muster");
  json.group("configuration", [&](JsonWriter& in) { results.run.write(in); });
  json.put("dataFrom", std::string_view(data.origin));
  json.put("trainingExamples", data.train->examples().value_or(0));
  json.put("testExamples", data.test ? data.test->examples().value_or(0) : 0);
  json.put("plan", std::string_view(results.plan));
  json.put("resumedFrom", results.resumedFrom.string());
  json.put("interrupted", results.interrupted);
  json.put("epochsFinished", results.epochs);
  if (watchers.stopping) {
    json.put("stopped", std::string_view(watchers.stopping->reason()));
    if (const auto& best = watchers.stopping->best()) json.put("bestValue", best->value);
  }
  if (results.test) putScores(*results.test, json);
  watchers.record->write(json, results.task, data.validation ? "validation" : "test");
  putSpeed(json, watchers.performance->report());
  json.put("secondsInAll", results.secondsInAll);
  json.put("merges", watchers.merged->merges);
  json.put("mergedBytes", watchers.merged->bytes);
  if (results.bytesSent) json.put("bytesSent", *results.bytesSent);
  json.put("peakMemoryBytes", peakMemoryBytes());
  writeFileAtomically(path, json.text());
}

}  // namespace muster
