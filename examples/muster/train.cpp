#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/program.h"
#include "examples/muster/run_paths.h"
#include "examples/muster/standard_streams.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/columns_line.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/eval/guess_remark.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/resuming.h"
#include "muster/parallel/run/detail/run_devices.h"
#include "muster/parallel/run/report.h"
#include "muster/parallel/run/results.h"
#include "muster/parallel/run/run_session.h"

namespace program {
namespace {

using namespace muster;

constexpr std::string_view kTrainIntroduction =
    R"(Trains the network of a run file on its data, with several workers at once: each trains a replica of the
network on batches of its own, and every few iterations the replicas are merged. Options replace fields of the file.

  muster train run.json
  muster train run.json --workers 4 --averaging-frequency 10 --set network.layers[0].outChannels=8
  muster train result.json --json again.json     a result that --json wrote is a run file, too

Ctrl-C finishes the current step, merges, saves the model and exits with 130; a second one quits.
)";

struct TrainOptions : TrainingOptions {
  std::filesystem::path runFile, json;
  bool quiet = false;
  bool watch = false;
};

/// Checks paths before the data are read.
void checkTrainingPaths(const TrainOptions& options, const RunFile& run,
                        const std::filesystem::path& resumed) {
  auto paths = pathsOf(options.runFile, run, resumed);
  paths.writesResult("--json", options.json, Content::Results);
  paths.check();
}

/// Which data there are, as "MNIST, 60000 examples to train with and 10000 to test with, from /data".
std::string dataLine(const LoadedData& data) {
  auto line =
      fmt::format("{}, {} to train with", data.title, plural(data.train->examples().value_or(0), "example"));
  if (data.validation) line += fmt::format(", {} to validate with", data.validation->examples().value_or(0));
  if (data.test) line += fmt::format(" and {} to test with", data.test->examples().value_or(0));
  return fmt::format("{}, from {}", line, data.origin);
}

/// Prints what is trained, from where, and the plan.
void introduce(const RunSession& session) {
  const auto& [run, devices, nodes, nodeCount, resumed, data, network, warnings] = session.prepared();
  for (const auto& notice : {asOptions(devices.notice), data.placed})
    if (!notice.empty()) fmt::print("{}\n", notice);
  fmt::print("data: {}\n\n{}", dataLine(data), network->summary());
  for (const auto& line : {columnsLine(network->inputDescription()), classWeightsLine(data)})
    if (!line.empty()) fmt::print("{}\n", line);
  if (!resumed.file.empty()) {
    const auto batches = resumed.batches;
    fmt::print("resuming: {}, with {} finished{}\n", resumed.file.string(), plural(network->epoch(), "epoch"),
               batches > 0 ? fmt::format(", and {} of the next", plural(batches, "batch", "batches")) : "");
  } else if (!run.training.resume.empty()) {
    fmt::print("nothing to resume in {}: the training begins\n", run.training.resume);
  }
  if (!resumed.changes.empty())
    fmt::print(
        "it was trained with {}: the training continues, but with other bits than without the change\n",
        resumed.changes);
  const auto epochs = run.training.epochs - network->epoch();
  if (epochs <= 0)
    fmt::print("nothing is left to train, as training.epochs is {}: testing what the file holds\n",
               run.training.epochs);
  else
    fmt::print("plan: {}; {} per batch, {}\n", session.wrapper().plan(), plural(run.data.batch, "example"),
               plural(epochs, "epoch"));
  const auto period = detail::periodRemark(run, data.train->batchesPerEpoch().value_or(0), nodeCount);
  for (const auto& remark :
       {epochs > 0 ? period : "", resumed.file.empty() ? detail::replacesRemark(run) : ""})
    if (!remark.empty()) fmt::print("note: {}\n", remark);
}

/// The run with its data and network, and its paths checked.
PreparedRun prepare(const RunFile& run, const TrainOptions& options) {
  return detail::prepareRun(run, options.nodes, [&](const PreparedRun& before) {
    detail::requireOwnDirectory(before);
    if (before.first()) checkTrainingPaths(options, before.run, before.resumed.file);
  });
}

/// Trains until the end or an interruption. @return whether this process is the first one now: of elastic
/// nodes another one may have been it before.
bool trainAll(RunSession& session) {
  TrainingInterrupt interrupt;
  session.train(interrupt.token());
  const bool first = session.prepared().nodes.node() == 0;
  if (first)
    interrupt.end(session.saved());
  else
    interrupt.end();
  return first;
}

/// A warning if the training had stopped in the file that it resumes, so nothing was trained; else "".
std::string stoppedBefore(const RunSession& session) {
  const auto* const stopping = session.earlyStopping();
  if (stopping == nullptr || stopping->reason().empty() || !session.untrained()) return {};
  return fmt::format(
      "nothing was trained: early stopping had ended the training of {}, as {}; a larger "
      "listeners.earlyStopping.{}=N continues it",
      session.prepared().resumed.file.string(), stopping->reason(),
      stopping->stopped() == StopReason::Time ? "maxMinutes" : "patience");
}

/// Prints the results and writes the files asked for.
void conclude(RunSession& session, const RunScores& scores, const TrainOptions& options, double seconds) {
  const RunFile& run = session.run();
  const auto print = [&](std::string_view part, const AnyEvaluation& on, bool choseEpoch) {
    fmt::print("{}: {} on {}{}\n", part, on.line(), plural(on.examples(), "example"),
               intervalText(on, choseEpoch));
  };
  if (const auto warning = stoppedBefore(session); !warning.empty()) logWarning("{}", asOptions(warning));
  if (scores.validation) {
    print("validation", *scores.validation,
          session.earlyStopping() != nullptr && run.listeners.earlyStopping->restoreBest);
    if (const auto remark = guessRemark(*scores.validation, session.data().classWeights); !remark.empty())
      logWarning("{}", remark);
  }
  if (scores.test) print("test", *scores.test, false);
  const auto restored = session.restoredEpoch();
  fmt::print("{}saved: {}{}; {}\n", costLine(session), run.training.model,
             restored ? fmt::format(", as it was after epoch {}", *restored) : "",
             session.interrupted()
                 ? session.interruption() + ", and --resume continues from there"
                 : detail::checkSaved(session.network(), run.training.model, session.data()));
  if (!run.listeners.report.empty()) fmt::print("report: {}\n", writeReport(session, scores));
  if (options.json.empty()) return;
  if (writeResult(options.json, resultsText(session, scores, seconds)) && !options.quiet)
    fmt::print("json: {}\n", options.json.string());
}

/// Ends the error of a test after the training.
std::string savedAnyway(const RunFile& run) {
  return fmt::format("; the trained network is saved: {}", run.training.model);
}

int trainRun(const RunFile& run, TrainOptions options) {
  const auto started = std::chrono::steady_clock::now();
  endOnInterrupt(kInterruptedBefore);
  auto prepared = prepare(run, options);
  const bool first = prepared.first();
  options.quiet = options.quiet || !first;
  if (const auto& notice = prepared.data.notice; !notice.empty()) fmt::print("{}\n", notice);
  if (first)
    for (const auto& warning : prepared.warnings) logWarning("{}", asOptions(warning));
  RunSession session(std::move(prepared), {.progress = !options.quiet,
                                           .terminal = options.watch,
                                           .sink = [](std::string_view line) { fmt::print("{}\n", line); }});
  if (!options.quiet) introduce(session);
  if (!first && session.prepared().resumed.file.empty() && !run.training.resume.empty())
    detail::logNothingToResume(run.training.resume);

  const bool firstLeft = trainAll(session);
  const int status = session.interrupted() ? kInterruptedExit : 0;
  const auto scores =
      sayErrors([&](std::string text) { return session.saved() ? text + savedAnyway(run) : text; },
                [&] { return session.evaluate(); });
  if (!firstLeft) {
    const auto& nodes = session.prepared().nodes;
    if (nodes.elastic() && !options.quiet)
      fmt::print("this was process {} of the training: process 0 saves the network and tests it\n",
                 nodes.node());
    return status;
  }
  if (!session.saved()) return kInterruptedExit;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  conclude(session, scores, options, seconds.count());
  return status;
}

}  // namespace

int train(const Call& call) {
  TrainOptions options;
  CommandLine line(kTrainIntroduction);
  describeTraining(line, options);
  line.group("Output");
  line.add("json", options.json, "FILE",
           "write the run and its results; -: to standard output, and all else to standard error");
  line.flag("watch", options.watch, "draw a row for each worker and the curve of the score in the terminal");
  line.flag("quiet", options.quiet, "print the result only");
  if (!readOptions(line, call)) return 0;
  if (options.quiet) line.refuse({"watch"}, "shows what --quiet leaves out");
  if (isStandardOutput(options.json)) keepStandardOutputForResult();
  const RunFile run = readTraining(line, call, options);
  options.runFile = call.file;
  return sayErrors(asOptions, [&] {
    return detail::runOn(detail::devicesOf(run.training), [&] { return trainRun(run, options); });
  });
}

}  // namespace program
