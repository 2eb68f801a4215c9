#include "muster/parallel/run/results.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "muster/core/base/plural.h"
#include "muster/core/io/json_fields.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/run/detail/session_parts.h"

namespace muster {
namespace {

std::int64_t peakMemoryBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// @param on  "test" or "validation".
void putScores(const AnyEvaluation& scores, std::string_view on, JsonWriter& json) {
  const auto put = [&](std::string_view name, double value) {
    json.put(fmt::format("{}{}", on, name), value);
  };
  const auto putF1 = [&] { json.put(on == "test" ? "f1" : "validationF1", scores.f1()); };
  switch (scores.task()) {
    case Task::Classification:
      put("Accuracy", scores.accuracy());
      put("Loss", scores.loss());
      return putF1();
    case Task::Regression:
      if (const double r2 = scores.regression().r2(); std::isfinite(r2)) put("R2", r2);
      put("Rmse", scores.regression().rootMeanSquaredError());
      put("Mae", scores.regression().meanAbsoluteError());
      return put("Loss", scores.loss());
    case Task::Labels:
      put("Accuracy", scores.accuracy());
      put("Loss", scores.loss());
      putF1();
      if (const double auc = scores.labels().auc(); std::isfinite(auc)) put("Auc", auc);
      return;
  }
}

void putShares(JsonWriter& json, const PerformanceReport::Shares& shares) {
  json.put("computeShare", shares.computing);
  json.put("mergeShare", shares.merging);
  json.put("dataWaitShare", shares.waitingForData);
  json.put("barrierWaitShare", shares.waitingForWorkers);
}

void putWorker(JsonWriter& json, const PerformanceReport& report, const WorkerTimes& worker) {
  json.put("worker", worker.worker);
  json.put("device", worker.device.toString());
  json.put("batches", worker.batches);
  json.put("examples", worker.examples);
  json.put("samplesPerSecond", report.samplesPerSecond(worker));
  if (report.batches() > 0) putShares(json, PerformanceReport::shares(worker));
}

void putSpeed(JsonWriter& json, const PerformanceReport& report) {
  json.put("samplesPerSecond", report.samplesPerSecond());
  if (report.batches() > 0) putShares(json, report.shares());
  json.list("workers", report.workers.size(),
            [&](std::size_t i, JsonWriter& worker) { putWorker(worker, report, report.workers[i]); });
  json.put("seconds", report.seconds);
}

}  // namespace

std::string costLine(const RunSession& session) {
  const auto& report = session.performance();
  const auto epochs =
      plural(std::max<std::int64_t>(session.epochsFinished() - session.epochsBefore(), 0), "epoch");
  constexpr double kShort = 0.1;  // seconds, of which shares say little
  if (report.seconds == 0) return "";
  return fmt::format("training: {} {:.1f} s{}\n",
                     session.interrupted() ? fmt::format("interrupted after {},", epochs) : epochs + " in",
                     report.seconds,
                     report.batches() == 0     ? ""
                     : report.seconds < kShort ? ", " + report.speed()
                                               : ", " + report.line());
}

std::string resultsText(const RunSession& session, const RunScores& scores, double secondsInAll) {
  const auto& data = session.data();
  const auto& watchers = detail::SessionParts::of(session).watchers;
  JsonWriter json;
  json.put("program", "muster");
  json.group("configuration", [&](JsonWriter& in) { session.run().write(in); });
  json.put("dataFrom", std::string_view(data.origin));
  json.put("trainingExamples", data.train->examples().value_or(0));
  json.put("validationExamples", data.validation ? data.validation->examples().value_or(0) : 0);
  json.put("testExamples", data.test ? data.test->examples().value_or(0) : 0);
  json.put("warnings", std::span<const std::string>(session.prepared().warnings));
  json.put("plan", std::string_view(session.wrapper().plan()));
  json.put("resumedFrom", session.prepared().resumed.file.string());
  json.put("interrupted", session.interrupted());
  json.put("epochsFinished", session.epochsFinished());
  if (const auto epoch = session.restoredEpoch()) json.put("restoredEpoch", *epoch);
  if (watchers.stopping) {
    json.put("stopped", std::string_view(watchers.stopping->reason()));
    if (const auto& best = watchers.stopping->best()) json.put("bestValue", best->value);
  }
  if (scores.test) putScores(*scores.test, "test", json);
  if (scores.validation) putScores(*scores.validation, "validation", json);
  watchers.record->write(json, session.network().task(), data.validation ? "validation" : "test");
  putSpeed(json, session.performance());
  json.put("secondsInAll", secondsInAll);
  json.put("merges", watchers.merged->merges);
  json.put("mergedBytes", watchers.merged->bytes);
  if (const auto link = session.prepared().nodes.link()) json.put("bytesSent", link->bytesSent());
  json.put("peakMemoryBytes", peakMemoryBytes());
  return json.text();
}

}  // namespace muster
