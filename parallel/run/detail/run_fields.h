#pragma once

// Visits a run file's fields: the same code reads (JsonReader), writes (JsonWriter) and describes
// (SchemaWriter) it.

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/datasets/source/detail/data_fields.h"
#include "muster/parallel/run/run_file.h"

namespace muster::detail {

inline constexpr std::string_view kMathModes[] = {"auto", "fp32", "tf32", "bf16"};

/// Visits an object that may be missing.
template <typename Visitor, typename T, typename Each>
void optionalGroup(Visitor& v, std::string_view name, std::optional<T>& value, const Each& each) {
  if constexpr (std::same_as<Visitor, JsonWriter>)
    if (!value) return;
  v.group(name, [&](Visitor& in) {
    if (!value) value.emplace();
    each(in, *value);
  });
}

void visitStrategy(JsonReader& reader, RunTraining& training);
void visitStrategy(JsonWriter& writer, RunTraining& training);
void visitStrategy(SchemaWriter& writer, RunTraining& training);

template <typename Visitor>
void visitTraining(Visitor& v, RunTraining& t) {
  v.field("workers", t.workers, "replicas that are trained at once", "[1, 1024]");
  visitStrategy(v, t);
  v.field("epochs", t.epochs, "passes over the training examples, with those of a resumed file",
          "[1, 1073741824]");
  v.field("prefetch", t.prefetch, "batches that are prepared ahead for all workers; 0: none", "[0, 1048576]");
  v.field("threadsPerWorker", t.threadsPerWorker, "CPU threads of each worker", "[1, 1024]");
  v.field("pinThreads", t.pinThreads, "keeps each worker on its own cores");
  v.field("reportScore", t.reportScore, "logs the score after each merge");
  v.field("devices", t.devices,
          "auto: the GPUs there are, else the CPU; or as in cpu, cuda or cuda:0,cuda:1");
  v.field("placement", t.placement, "where the data are kept");
  v.describe("precision of matrix products and convolutions; auto: that of the device");
  visitWord(v, "mathMode", t.mathMode, kMathModes);
  v.field("groups", t.groups, "groups of workers that are merged first, as nodes would", "[1, 1024]");
  v.field(
      "nodes", t.nodes,
      "how several processes train together: none, mpi, gloo or elastic; auto: as the launcher, MUSTER_STORE "
      "and MUSTER_MIN_NODES say");
  v.field("initialModel", t.initialModel, "model file with the same layers to start from; empty: none");
  v.field("resume", t.resume, "checkpoint, or directory of checkpoints, to continue from; empty: none");
  v.field("model", t.model, "file of the trained model");
}

/// The monitors that run files have. Monitor::Own is for programs.
inline std::vector<std::string_view> monitorNames() {
  std::vector<std::string_view> names;
  for (const auto& [monitor, name] : EnumNames<Monitor>::kNames)
    if (monitor != Monitor::Own) names.push_back(name);
  return names;
}

template <typename Visitor>
void visitMonitor(Visitor& v, RunMonitor& m) {
  v.describe("the number to look at");
  if constexpr (std::same_as<Visitor, SchemaWriter>) {
    boost::json::array monitors;
    for (const auto name : monitorNames()) monitors.emplace_back(name);
    v.put("monitor", {{"enum", monitors}, {"default", nameOf(m.monitor)}});
  } else if constexpr (std::same_as<Visitor, JsonReader>) {
    std::string word(nameOf(m.monitor));
    v.field("monitor", word);
    if (std::size_t index = 0; word != nameOf(Monitor::Own)) v.choice("monitor", index, monitorNames());
    m.monitor = valueNamed<Monitor>("monitor", word);  // the checks refuse Own and say why
  } else {
    v.field("monitor", m.monitor);
  }
  v.describe("whether a larger number is better (max) or a smaller one (min); empty: by the monitor");
  if constexpr (std::same_as<Visitor, SchemaWriter>)
    v.put("mode", {{"enum", boost::json::array{"min", "max", ""}}, {"default", m.mode}});
  else
    v.field("mode", m.mode);
}

template <typename Visitor>
void visitListeners(Visitor& v, RunListeners& l) {
  v.field("progress", l.progress, "a line after each epoch");
  v.field("scoreEvery", l.scoreEvery, "iterations from one line with the score to the next; 0: no lines",
          kCountedRange);
  v.field("testEvery", l.testEvery,
          "epochs from one test to the next, for the lines, curves and pages; 0: only at the end",
          kCountedRange);
  v.field("testIterations", l.testIterations,
          "also a test after the first merge of every so many iterations; 0: none", kCountedRange);
  v.field("report", l.report,
          "directory for report.html: curves and scores, of classes also the confusion matrix, and of images "
          "the worst mistakes; empty: none");
  v.field("tensorBoard", l.tensorBoard, "directory for an event file for TensorBoard; empty: none");
  v.field("page", l.page, "serves a page for a browser on this machine");
  v.field("pagePort", l.pagePort, "port of the page; 0: any free one", "[0, 65535]");
  v.field("curves", l.curves, "file for muster page, whose name ends in .curves.jsonl; empty: none");
  v.field("group", l.group, "name of a group, of which the page draws the mean; needs curves");
  v.describe("files from which a training can be resumed; left out: none");
  optionalGroup(v, "checkpoints", l.checkpoints, [](Visitor& in, RunCheckpoints& c) {
    in.field("directory", c.directory, "of the files");
    in.field("everyEpochs", c.everyEpochs, "epochs from one checkpoint to the next; 0: not by epochs",
             kCountedRange);
    in.field("everyIterations", c.everyIterations,
             "iterations from one checkpoint to the next; 0: not by iterations", kCountedRange);
    in.field("everyMinutes", c.everyMinutes, "minutes from one checkpoint to the next; 0: not by time",
             "[0, 100000000]");
    in.field("keepLast", c.keepLast, "checkpoints that are kept; 0: all", kCountedRange);
    in.field("keepEveryEpochs", c.keepEveryEpochs,
             "with keepLast, also keeps that of every so many epochs; 0: none", kCountedRange);
    in.describe("also keeps the best checkpoint, by what it monitors; left out: it does not");
    optionalGroup(in, "best", c.best, [](Visitor& best, RunMonitor& m) { visitMonitor(best, m); });
  });
  v.describe("ends the training when what it monitors no longer improves; left out: never");
  optionalGroup(v, "earlyStopping", l.earlyStopping, [](Visitor& in, RunEarlyStopping& e) {
    visitMonitor(in, e.monitored);
    in.field("everyEpochs", e.everyEpochs, "epochs from one look to the next", "[1, 1099511627776]");
    in.field("patience", e.patience, "epochs without an improvement, after which it stops; 0: never",
             kCountedRange);
    in.field("minImprovement", e.minImprovement,
             "smaller improvements do not count; of an accuracy 0.01 is one point", "[0, )");
    in.field("maxMinutes", e.maxMinutes, "stops after so many minutes; 0: never", "[0, 100000000]");
    in.field("restoreBest", e.restoreBest, "the trained model is the best one, not the last");
    in.field("bestFile", e.bestFile, "file of the best model; empty: none");
  });
  v.describe("lowers the learning rate when what it monitors no longer improves; left out: never");
  optionalGroup(v, "reduceOnPlateau", l.reduceOnPlateau, [](Visitor& in, RunPlateau& p) {
    visitMonitor(in, p.monitored);
    in.field("factor", p.factor, "of the learning rate, between 0 and 1", "(0, 1)");
    in.field("patience", p.patience, "epochs without an improvement, after which the rate falls",
             "[1, 1099511627776]");
    in.field("minImprovement", p.minImprovement,
             "smaller improvements do not count; of an accuracy 0.01 is one point", "[0, )");
    in.field("minFactor", p.minFactor, "the rate falls to no less than this share of what it was", "[0, 1)");
  });
}

}  // namespace muster::detail
